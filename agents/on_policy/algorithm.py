"""An on-policy algorithm as a record of functions and numbers.

Of the configuration it keeps only the records of the penalties and of the optimiser.
`resolve.algorithm` makes the record once, from the configuration. The functions that distinguish an
algorithm are in the module of its name: `vtrace`, `ppo`, `awr`, `vmpo`, `vpg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
from typing import NamedTuple

import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import transitions as transitions_lib


class Estimates(NamedTuple):
  """Value targets and advantages, `[T, B]` each, without gradient, in the units of the rewards."""

  targets: tf.Tensor
  advantages: tf.Tensor


class Trace(NamedTuple):
  """Inputs of an advantage estimator: values `[T+1, B]`, steps and log(pi/mu) `[T, B]`."""

  values: tf.Tensor
  steps: transitions_lib.Transitions
  log_rhos: tf.Tensor


class Played(NamedTuple):
  """Inputs of a policy loss: one entry per step, `[...]` each, and V-MPO's temperature.

  log_prob: log pi(a|x) of the action that was played, by the policy that learns.
  log_ratio: log pi(a|x) - log mu(a|x), where mu is the behaviour policy. The policy gets gradients
    through log_prob and log_ratio only.
  advantages: A. mask: True for steps that count; every mean is over these, and the others hold 0.
  temperature: scalar eta of V-MPO, None for other policy losses.
  """

  log_prob: tf.Tensor
  log_ratio: tf.Tensor
  advantages: tf.Tensor
  mask: tf.Tensor
  temperature: tf.Tensor | None


class PolicyLoss(NamedTuple):
  """Scalar losses. adjustment: the loss of a parameter that belongs to the policy loss, if any."""

  loss: tf.Tensor
  adjustment: tf.Tensor | float = 0.0


class Temperature(NamedTuple):
  """V-MPO's eta = exp(speed p), where p is learnt. initial: initial value of eta."""

  initial: float
  speed: float


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """Everything that preparation and loss know of the configuration.

  An attribute with the name of a configuration field holds its value or, for `policy_loss` and
  `value_loss`, the chosen function.

  steps(inputs): rows `[T+1, B]` -> transitions `[T, B]`, with the rewards to learn.
  estimates_in_loss: targets and advantages come from the forward pass of the loss itself, instead
    of from one before it.
  policy_loss(played): the algorithm's function, applied to preprocessed advantages.
  value_loss(values, targets, behaviour_values, mask): scalar mean over `[...]`, in the units that
    values are learnt in.
  penalties: the active penalties by name.
  penalty_sign: sign with which weight * x of each step is added to its reward; 0 = penalties are
    terms of the loss.
  temperature: None unless the policy loss learns one.
  passes: None for a single gradient step.
  by_transitions: minibatches hold transitions, not unrolls.
  renews_before_normalizing: PopArt's statistics are updated with the targets before they normalise
    them.
  ratio_bounds: bounds of pi/mu, for the metric that says how often the ratio leaves them.
  """

  unroll_length: int
  overlap: int
  steps: Callable[[types.AgentInput], transitions_lib.Transitions]
  estimate: Callable[[Trace], Estimates]
  estimates_in_loss: bool
  policy_loss: Callable[[Played], PolicyLoss]
  value_loss: Callable[[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]
  value_cost: float
  kl_cost: float
  penalties: Mapping[str, on_policy_config.PenaltyConfig]
  penalty_sign: float
  temperature: Temperature | None
  passes: agent_lib.Passes | None
  by_transitions: bool
  renews_before_normalizing: bool
  ratio_bounds: tuple[float, float]
  rho_clip: float
  optimizer: config_lib.OptimizerConfig


def ratio_bounds(*, ppo_epsilon: float, ppo_lower_bound: str) -> tuple[float, float]:
  """Returns 1 - epsilon (PPO's paper) or 1 / (1 + epsilon) (SEED RL), and 1 + epsilon."""
  upper = 1.0 + ppo_epsilon
  return 1.0 - ppo_epsilon if ppo_lower_bound == 'linear' else 1.0 / upper, upper
