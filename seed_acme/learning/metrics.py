"""Metrics of a sample, and the aggregation of all metrics between two rows of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme.inference import episodes as episodes_lib


def of_sample(prepared: agent_lib.Prepared, num_updates: tf.Tensor) -> dict[str, tf.Tensor]:
  """Returns the policy lag (updates between acting and learning) and number of the transitions."""
  lag = tf.cast(num_updates - prepared.policy_version, tf.float32)
  lag = tf.where(prepared.mask, lag, tf.zeros_like(lag))
  num_steps = tf.reduce_sum(tf.cast(prepared.mask, tf.float32))
  return {
    'learner/policy_lag': tf.reduce_sum(lag) / tf.maximum(num_steps, 1),
    'learner/policy_lag_max': tf.reduce_max(lag),
    'learner/trained_steps': num_steps,
  }


class Stacks:
  """Stacks metrics into one tensor, which is cheaper to fetch than many.

  what: names the graph function that computes the metrics.
  """

  def __init__(self) -> None:
    self._names: dict[str, list[str]] = {}

  def stack(self, what: str, metrics: dict[str, tf.Tensor]) -> tf.Tensor:
    """Stacks metrics to `[M]` float32, in a graph."""
    self._names[what] = list(metrics)
    return tf.stack([tf.cast(x, tf.float32) for x in metrics.values()]) if metrics else tf.zeros(0)

  def named(self, what: str, numbers: tf.Tensor) -> dict[str, float]:
    """Converts a fetched stack back to metrics by name."""
    return dict(zip(self._names[what], numbers.numpy().tolist()))

  def means(self, what: str, numbers: np.ndarray) -> dict[str, float]:
    """Returns means by name over the rows of `[N, M]`; for a `*_max`, the greatest value."""
    means, maxima = numbers.mean(axis=0), numbers.max(axis=0)
    return {
      name: float(maxima[i] if name.endswith('_max') else means[i])
      for i, name in enumerate(self._names[what])
    }

  def over_passes(
    self, what: str, numbers: np.ndarray, passes: agent_lib.Passes
  ) -> dict[str, float]:
    """Returns means like `means`, each over the rows of `[N, M]` that `passes` chooses for it. The
    rows are those of all gradient steps, in order."""
    named = (*passes.of_first, *passes.of_last, *passes.variances, *passes.variances.values())
    if unknown := sorted(set(named) - set(self._names[what])):
      raise ValueError(
        f'the passes name {", ".join(unknown)}, but the losses report {sorted(self._names[what])}'
      )
    first, last = numbers[: passes.num_minibatches], numbers[-passes.num_minibatches :]
    result, of_first, of_last = (self.means(what, rows) for rows in (numbers, first, last))
    result.update({name: of_first[name] for name in passes.of_first})
    result.update({name: of_last[name] for name in passes.of_last})
    for name, mean in passes.variances.items():
      result[name] += float(np.var(first[:, self._names[what].index(mean)], dtype=np.float64))
    return result


class MetricMeans:
  """Mean of each metric over the updates since the last row of the log; maximum for `*_max`."""

  def __init__(self, of_row: Callable[[Mapping[str, float]], dict[str, float]]) -> None:
    """of_row: see `agent.Learning`; computes further metrics from these means."""
    self._of_row = of_row
    self._sums: dict[str, float] = {}
    self._maxima: dict[str, float] = {}
    self._count = 0

  def add(self, metrics: dict[str, float]) -> None:
    for name, value in metrics.items():
      if name.endswith('_max'):
        self._maxima[name] = max(self._maxima.get(name, value), value)
      else:
        self._sums[name] = self._sums.get(name, 0.0) + value
    self._count += 1

  def take(self) -> dict[str, float]:
    """Returns the metrics for a row and resets them; `{}` without an update since the last row."""
    if not self._count:
      return {}
    means = {name: total / self._count for name, total in self._sums.items()}
    maxima = self._maxima
    self._sums, self._maxima, self._count = {}, {}, 0
    return {**means, **maxima, **self._of_row(means)}


def of_episodes(group: str, episodes: episodes_lib.EpisodeSummary) -> dict[str, float]:
  if episodes.score is None or episodes.return_ is None or episodes.length is None:
    return {}
  metrics = {f'{group}/return': episodes.score, f'{group}/length': episodes.length}
  if episodes.return_ != episodes.score:  # the environment shapes its reward
    metrics[f'{group}/training_return'] = episodes.return_
  return metrics
