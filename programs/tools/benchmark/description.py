"""A record of `bench.bench` as text."""

from __future__ import annotations

from typing import Any

from seed_acme.progress import timing


def describe(result: dict[str, Any]) -> str:
  """Returns the record as aligned text."""
  batch, latency, lag = (
    result[name]['mean'] for name in ('inference_batch_size', 'inference_latency_ms', 'policy_lag')
  )
  lines = [
    '{config}: {steps_per_s:,.0f} agent steps/s, {steps_per_cpu_s:,.0f} agent steps per '
    'CPU-second, {cores_in_use:.2f} cores in use, {launch}, window {window_s:.1f} s'.format(
      **result
    ),
    'CPU-seconds per million steps: ' + _listed(result['cpu_s_per_million_steps'], '.1f'),
    'share of time:',
    *(
      f'  {thread:14} ' + _listed(shares, '.0%')
      for thread, shares in result['phase_shares'].items()
    ),
    f'inference: batches of {batch:.0f} rows, latency {latency:.1f} ms',
    f'policy lag: {lag:.1f} updates',
    f'p95 of the newest {timing.NEWEST:,} since the start: '
    'batches of {inference_batch_size:.0f} rows, latency {inference_latency_ms:.1f} ms, '
    'policy lag {policy_lag:.1f} updates'.format(**result['p95_since_start']),
    'rows: {rows_trained:,} trained, {rows_inserted:,} inserted, {steps_per_row:.0%} of them '
    'agent steps'.format(**result),
  ]
  if 'bound' in result:
    bound = result['bound']
    lines.append(
      'bound: {steps_per_cpu_s:,.0f} steps per CPU-second ('.format(**bound)
      + _listed(bound['cpu_s_per_million_steps'], '.1f')
      + ' CPU-seconds per million steps); efficiency {efficiency:.0%}'.format(**bound)
    )
  return '\n'.join(lines)


def _listed(values: dict[str, float], form: str) -> str:
  ordered = sorted(values.items(), key=lambda item: -item[1])
  return ', '.join(f'{name} {value:{form}}' for name, value in ordered if value > 0)
