"""Batch sizes, latencies and policy lag of the measured window, from the statuses at its ends."""

from __future__ import annotations

from typing import Any


def between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, float]]:
  """Returns count and mean in the window of batch sizes, latencies and policy lag.

  `p95_since_start` has their 95th percentiles over the newest `timing.NEWEST` values since the run
  started, because a status does not say which values are of the window.
  """
  found: dict[str, dict[str, float]] = {'p95_since_start': {}}
  earlier = _summaries(before)
  for name, last in _summaries(after).items():
    first = earlier[name]
    count = last['count'] - first['count']
    # The mean of no values is None.
    total = last['count'] * (last['mean'] or 0.0) - first['count'] * (first['mean'] or 0.0)
    # One process has no latencies, since it waits for no request.
    found[name] = {'count': count, 'mean': total / count if count else 0.0}
    found['p95_since_start'][name] = last['p95']
  return found


def _summaries(status: dict[str, Any]) -> dict[str, dict[str, float]]:
  """Returns the summaries of a status, which begin with the run (`timing.Latencies`)."""
  latency = status['inference_latency_s']
  return {
    'inference_batch_size': status['inference_batch_size'],
    'inference_latency_ms': {
      'count': latency['count'],
      **{name: 1e3 * latency[name] for name in ('mean', 'p95')},
    },
    'policy_lag': {name: status[f'policy_lag_{name}'] for name in ('count', 'mean', 'p95')},
  }
