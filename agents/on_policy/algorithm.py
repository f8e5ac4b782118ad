"""An algorithm of the on-policy agent: functions and numbers, and no configuration.

`resolve.algorithm` makes the record once, from the configuration. The functions that set one
algorithm apart from another stand on its page: `vtrace`, `ppo`, `awr`, `vmpo`, `vpg`.
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
  """`[T, B]` each, without gradient, in the units of the rewards."""

  targets: tf.Tensor
  advantages: tf.Tensor


class Trace(NamedTuple):
  """What advantages are estimated from: values `[T+1, B]`, steps and log(pi/mu) `[T, B]`."""

  values: tf.Tensor
  steps: transitions_lib.Transitions
  log_rhos: tf.Tensor


class Played(NamedTuple):
  """What a policy loss is made of: steps, `[...]` each, and V-MPO's temperature.

  log_prob: log pi(a|x) of the action that was played, by the policy that learns.
  log_ratio: log pi(a|x) - log mu(a|x), mu the behaviour. Gradients flow through these two alone.
  advantages: A. mask: which steps count; every mean is over these, and the others hold 0.
  temperature: scalar eta of V-MPO, None for the others.
  """

  log_prob: tf.Tensor
  log_ratio: tf.Tensor
  advantages: tf.Tensor
  mask: tf.Tensor
  temperature: tf.Tensor | None


class PolicyLoss(NamedTuple):
  """Scalars. adjustment: the loss of a parameter that the policy loss learns, if it has one."""

  loss: tf.Tensor
  adjustment: tf.Tensor | float = 0.0


class Temperature(NamedTuple):
  """V-MPO's eta = exp(speed p), p learnt; initial: where eta starts."""

  initial: float
  speed: float


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """All that the agent below `make_agent` knows of its configuration.

  What has the name of a field of the configuration is that number, or, of `policy_loss` and
  `value_loss`, the function that is chosen.

  steps(inputs): rows `[T+1, B]` -> transitions `[T, B]`, with the rewards to learn.
  estimates_in_loss: targets and advantages are those of the forward pass of the loss itself, and
    not of one before it.
  policy_loss(played): the page's function, after what is done to all advantages before it.
  value_loss(values, targets, behaviour_values, mask): scalar mean, of `[...]` in learnt units.
  penalties: the active ones by name.
  penalty_sign: with which weight * x of each step enters its reward; 0 = it is in the loss.
  temperature: None where no policy loss learns one.
  passes: None for a single gradient step. by_transitions: they deal transitions, not unrolls.
  renews_before_normalizing: PopArt's statistics take in the targets that they then normalise.
  ratio_bounds: of pi/mu, for the metric of how often it leaves them.
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
  """From 1 - epsilon (PPO's paper) or 1 / (1 + epsilon) (SEED RL) to 1 + epsilon."""
  upper = 1.0 + ppo_epsilon
  return 1.0 - ppo_epsilon if ppo_lower_bound == 'linear' else 1.0 / upper, upper
