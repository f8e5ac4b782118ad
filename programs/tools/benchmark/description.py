"""A record of `bench.bench` as text."""

from __future__ import annotations

from typing import Any


def describe(result: dict[str, Any]) -> str:
  """Returns the record as aligned text."""
  batch, latency, lag = (
    result[name] for name in ('inference_batch_size', 'inference_latency_ms', 'policy_lag')
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
    'inference: batches of {mean:.0f} rows (p95 {p95:.0f}), '.format(**batch)
    + 'latency {mean:.1f} ms (p95 {p95:.1f} ms)'.format(**latency),
    'policy lag: {mean:.1f} updates (p95 {p95:.1f}, highest {max:.0f})'.format(**lag),
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
