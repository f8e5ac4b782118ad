"""Schedules of a setting over the run."""

from __future__ import annotations

from seed_acme import types


def scheduled_value(
  schedule: str, initial: float, steps: int, total_steps: int, final_share: float = 0.0
) -> float:
  """Returns the value after `steps` of `total_steps` agent steps. Plain numbers, no tensors.

  schedule: `constant`, or `linear`: down to a share of the initial value at the end of the run,
    where it stays.

    linear: initial * (1 - (1 - final_share) * steps / total_steps)
  """
  if total_steps < 1:
    raise ValueError(f'total_steps ({total_steps}) must be >= 1')
  if schedule == 'constant':
    return initial
  if schedule == 'linear':
    fraction = min(max(steps / total_steps, 0.0), 1.0)
    return initial * (1.0 - (1.0 - final_share) * fraction)
  raise types.UserError(f"schedule ('{schedule}') must be 'constant' or 'linear'")
