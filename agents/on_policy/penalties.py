"""Penalties on the policy: entropy and divergences, with fixed or learnt weights."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import transitions as transitions_lib


class PenaltyTerms(NamedTuple):
  """loss: scalar of the policy's penalties. adjustment: scalar, the loss of learnt weights."""

  loss: tf.Tensor
  adjustment: tf.Tensor
  metrics: dict[str, tf.Tensor]


def quantities(
  distribution: distributions.Distribution,
  params: Any,
  behaviour_params: Any,
  config: on_policy_config.OnPolicyConfig,
) -> dict[str, tf.Tensor]:
  """x `[...]` of each active penalty, from params `[..., P]` of the policy and the behaviour."""
  behaviour_params = tf.stop_gradient(behaviour_params)
  compute = {
    'entropy': lambda: -distribution.entropy(params),
    'kl_to_behaviour': lambda: distribution.kl(params, behaviour_params),
    'kl_from_behaviour': lambda: distribution.kl(behaviour_params, params),
    'kl_from_reference': lambda: distribution.kl(tf.zeros_like(params), params),
  }
  return {name: compute[name]() for name in on_policy_config.penalties(config)}


def terms(
  values: dict[str, tf.Tensor],
  weights: dict[str, tf.Tensor],
  mask: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> PenaltyTerms:
  """values: `quantities`. weights: scalars by name, the learnt ones with their gradient.

  fixed:    w mean(x)
  learnt:   sg(w) mean(x) + w sg( mean(threshold - x) ),  which raises w while x is too large
  """
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  loss, adjustment, metrics = tf.zeros([]), tf.zeros([]), {}
  for name, penalty in on_policy_config.penalties(config).items():
    x, weight = values[name], weights[name]
    loss += tf.stop_gradient(weight) * mean(x)
    if penalty.threshold is not None:
      adjustment += lagrange.adjustment_loss(weight, mean(penalty.threshold - x))
    metrics.update({f'penalty/{name}': mean(x), f'penalty/{name}_weight': weight})
  return PenaltyTerms(loss, adjustment, metrics)


def in_rewards(
  values: dict[str, tf.Tensor], weights: dict[str, tf.Tensor], like: tf.Tensor
) -> tf.Tensor:
  """sum over the penalties of weight * x, `[...]` as `like`."""
  total = tf.zeros_like(like)
  for name, x in values.items():
    total += weights[name] * x
  return total
