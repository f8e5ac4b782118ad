"""How much of its targets the value explains, and what to tell the user where that is nothing."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import transitions as transitions_lib

_ERROR, _VARIANCE, _EXPLAINED = (
  f'value/{name}' for name in ('squared_error', 'target_variance', 'explained_variance')
)
_MEAN = 'value/target_mean'
_LEAST_VARIANCE = 1e-8  # below it all targets are alike, and there is nothing to explain

# For `agent.Passes`: the first pass meets the targets with a value that has not seen them yet.
OF_FIRST_PASS = (_ERROR, _VARIANCE)

WATCH = agent_lib.Watch(
  metric=_EXPLAINED,
  bound=0.05,
  share=1 / 20,
  min_steps=50_000,
  problem='the value explains nothing yet',
  advice=(
    'An advantage is then little more than noise. If the return does not rise either, see whether '
    'the rewards reach the agent, and try another agent.optimizer.learning_rate, a greater '
    'agent.value_cost or, with images, network.torso_initializer=orthogonal'
  ),
)


def variances(config: on_policy_config.OnPolicyConfig) -> dict[str, str]:
  """For `agent.Passes`. Targets that are computed anew for each minibatch move with the weights
  from one to the next. Their variance is that within a minibatch, because the value would seem to
  explain its own movement.
  """
  return {} if config.recompute_advantages == 'minibatch' else {_VARIANCE: _MEAN}


def of_minibatch(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> dict[str, tf.Tensor]:
  """Means over unmasked steps; values and targets `[...]` in the units that values are learnt in.

    squared_error = mean( (target - V)^2 ),  target_variance = mean( (target - mean(target))^2 )

  Neither knows of `value_loss`, `value_clip` or `value_cost`.
  """
  mean = transitions_lib.masked_mean(targets, mask)
  return {
    _ERROR: transitions_lib.masked_mean(tf.square(targets - values), mask),
    _VARIANCE: transitions_lib.masked_mean(tf.square(targets - mean), mask),
    _MEAN: mean,
  }


def of_row(means: Mapping[str, float]) -> dict[str, float]:
  """explained_variance = 1 - squared_error / target_variance, of means over a row of the log.

  1 = the value is its target, 0 = it does no better than the mean of the targets.
  """
  if means[_VARIANCE] < _LEAST_VARIANCE:
    return {}
  return {_EXPLAINED: 1.0 - means[_ERROR] / means[_VARIANCE]}
