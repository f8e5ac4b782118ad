"""Metrics of how well the value explains its targets, and a notice to the user if it does not."""

from __future__ import annotations

from collections.abc import Mapping

from seed_acme import agent as agent_lib

ERROR, VARIANCE, _EXPLAINED = (
  f'value/{name}' for name in ('squared_error', 'target_variance', 'explained_variance')
)
MEAN, NORMALIZER_STD = 'value/target_mean', 'value/normalizer_std'
_LEAST_VARIANCE = 1e-8  # below it, all targets are alike and there is no variance to explain

# For `agent.Passes`: the first pass meets the targets with a value that has not seen them yet.
OF_FIRST_PASS = (ERROR, VARIANCE)
VARIANCES = {VARIANCE: MEAN}


def _variance_of_rewards(row: Mapping[str, float]) -> float:
  """The variance of the targets in units of the reward, squared: with PopArt that in learnt units
  is about 1 however little is left to explain."""
  return row[VARIANCE] * row.get(NORMALIZER_STD, 1.0) ** 2


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
  amount=_variance_of_rewards,
)


def of_row(means: Mapping[str, float]) -> dict[str, float]:
  """explained_variance = 1 - squared_error / target_variance, from means over a row of the log.

  1 = the value equals its target, 0 = it does no better than the mean of the targets.
  """
  if means[VARIANCE] < _LEAST_VARIANCE:
    return {}
  return {_EXPLAINED: 1.0 - means[ERROR] / means[VARIANCE]}
