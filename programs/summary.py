"""What a run says at its end: the record of summary.json, and the text of a failure."""
from __future__ import annotations

from typing import Any

from seed_acme import config as config_lib
from seed_acme import run_directory


def summarise(config: config_lib.ExperimentConfig, status: dict[str, Any],
              cpu_s: dict[str, float], how: str, earlier_cpu_s: dict[str, float]) -> dict[str, Any]:
  """The record of summary.json.

  cpu_s: CPU-seconds by kind of node, over all resumptions, starting up included.
  """
  kinds = {*cpu_s, *earlier_cpu_s}
  cpu = {kind: cpu_s.get(kind, 0.0) + earlier_cpu_s.get(kind, 0.0) for kind in sorted(kinds)}
  steps, wall_s = status.get('agent_steps', 0), status.get('wall_s', 0.0)
  total_cpu_s = sum(cpu.values())
  return {
      'status': how,
      'config': config.name,
      'seed': config.seed,
      **{name: status.get(name, 0) for name in (
          'agent_steps', 'frames', 'updates', 'episodes', 'trained_steps', 'wall_s')},
      'cpu_s': cpu,
      'steps_per_s': steps / wall_s if wall_s else 0.0,
      'steps_per_cpu_s': steps / total_cpu_s if total_cpu_s else 0.0,
      **{name: status.get(name) for name in (
          'episode_return_last_100', 'evaluation_return', 'policy_lag_mean', 'policy_lag_max')},
  }


def failure_text(failure: dict[str, Any] | None, run_dir: run_directory.RunDirectory) -> str:
  """At most four lines: what, where, and where to look."""
  if failure is None:
    return f'error: the run ended without a reason; look into {run_dir.logs}'
  if failure['is_user_error']:
    return '\n'.join(f'error: {failure["message"]}'.splitlines()[:4])
  message = failure['message'].strip().splitlines() or ['']
  return (f'error in {failure["node"]}: {message[0][:300]}\n'
          f'log: {failure["log"]}')
