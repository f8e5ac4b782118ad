"""Penalties on the policy: entropy and divergences, with fixed or learnt weights."""

from __future__ import annotations

from collections.abc import Mapping
import functools
from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import transitions as transitions_lib


class PenaltyTerms(NamedTuple):
  """Scalar losses. loss: penalties on the policy. adjustment: the loss of the learnt weights."""

  loss: tf.Tensor
  adjustment: tf.Tensor
  metrics: dict[str, tf.Tensor]


def quantities(
  distribution: distributions.Distribution,
  params: Any,
  behaviour_params: Any,
  penalties: Mapping[str, on_policy_config.PenaltyConfig],
) -> dict[str, tf.Tensor]:
  """Returns x `[...]` of each penalty, from params `[..., P]` of the policy and the behaviour."""
  behaviour_params = tf.stop_gradient(behaviour_params)
  compute = {
    'entropy': lambda: -distribution.entropy(params),
    'kl_to_behaviour': lambda: distribution.kl(params, behaviour_params),
    'kl_from_behaviour': lambda: distribution.kl(behaviour_params, params),
    'kl_from_reference': lambda: distribution.kl(tf.zeros_like(params), params),
  }
  return {name: compute[name]() for name in penalties}


def terms(
  values: dict[str, tf.Tensor],
  weights: dict[str, tf.Tensor],
  mask: tf.Tensor,
  penalties: Mapping[str, on_policy_config.PenaltyConfig],
) -> PenaltyTerms:
  """values: `quantities`. weights: scalars by name, the learnt ones with their gradient.

  fixed:    w mean(x)
  learnt:   sg(w) mean(x) + w sg( mean(threshold - x) ),  which raises w while x is too large
  """
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  loss, adjustment, metrics = tf.zeros([]), tf.zeros([]), {}
  for name, penalty in penalties.items():
    x, weight = values[name], weights[name]
    loss += tf.stop_gradient(weight) * mean(x)
    if penalty.threshold is not None:
      adjustment += lagrange.adjustment_loss(weight, mean(penalty.threshold - x))
    metrics.update({f'penalty/{name}': mean(x), f'penalty/{name}_weight': weight})
  return PenaltyTerms(loss, adjustment, metrics)


def in_rewards(
  rewards: tf.Tensor, values: dict[str, tf.Tensor], weights: dict[str, tf.Tensor], sign: float
) -> tf.Tensor:
  """Adds sign * weight * x of each penalty to rewards `[T, B]`, without gradient.

  sign: -1, or +1 as in the original; 0 leaves the rewards unchanged.
  """
  if not sign:
    return rewards
  total = tf.zeros_like(rewards)
  for name, x in values.items():
    total += weights[name] * x
  return rewards + sign * tf.stop_gradient(total)
