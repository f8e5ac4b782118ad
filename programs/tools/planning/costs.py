"""The costs of a run's parts, fitted to records of `seed-acme bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import json
import math
import statistics
from typing import Any

import numpy as np

from seed_acme import types

_RUN_AGAIN = 'write it with seed-acme bench --json > bench.json (without --no_bounds)'
_LAUNCH = 'local_mp'  # only there does each part have CPU-seconds of its own


@dataclasses.dataclass(frozen=True)
class Curve:
  """Cost by size, piecewise linear; the last segment is extrapolated.

  points: (size, cost) by rising size. With a single point the cost is proportional to the size.
    Below the smallest size the cost stays constant, because a call of fewer rows may not be
    cheaper.
  """

  points: tuple[tuple[float, float], ...]

  def __call__(self, size: float) -> float:
    sizes, costs = zip(*self.points)
    if len(sizes) == 1:
      return costs[0] * size / sizes[0]
    if size <= sizes[-1]:
      return float(np.interp(size, sizes, costs))
    slope = (costs[-1] - costs[-2]) / (sizes[-1] - sizes[-2])
    return costs[-1] + max(0.0, slope) * (size - sizes[-1])


@dataclasses.dataclass(frozen=True)
class Setting:
  """The settings of the measured run, which are the defaults of a plan.

  frames_per_step: environment frames per agent step. inference_rows: rows at which a batch runs;
    inference_timeout_s: time after which a smaller one runs. cores: of the machine.
  """

  actors: int
  environments_per_actor: int
  groups_per_actor: int
  frames_per_step: int
  unroll_length: int
  unrolls_per_update: int
  inference_rows: int
  inference_timeout_s: float
  queued_unrolls: int
  prefetched_updates: int
  cores: int


@dataclasses.dataclass(frozen=True)
class Costs:
  """The cost of a run's parts in seconds and bytes. A row is one environment's entry in a batch.

  environment_call: CPU-seconds to step a group, by its environments. inference_call: seconds of a
    call on a learner's device, by rows; actor_inference_call: the same on an actor's core. update:
    seconds on a training device, by unrolls. exchange_bytes: request and reply of a group.
  unroll_bytes: of one unroll, shared_unroll_bytes: what a learner host sends another of it, with
    predictions for its rows. gradient_bytes: of all gradient steps of an update.
  actor_message_s: CPU-seconds that a message costs an actor besides the above. row_s, message_s,
    call_s: the learner's cost of a row, a message and an inference call. steps_per_row: share of
    rows that are agent steps; the last rows of episodes are not. contention: wall seconds per
    CPU-second on the measured machine.
  """

  setting: Setting
  environment_call: Curve
  inference_call: Curve
  actor_inference_call: Curve
  update: Curve
  exchange_bytes: Curve
  unroll_bytes: float
  shared_unroll_bytes: float
  weights_bytes: float
  gradient_bytes: float
  actor_message_s: float = 0.0
  message_s: float = 0.0
  call_s: float = 0.0
  row_s: float = 0.0
  steps_per_row: float = 1.0
  replay_ratio: float = 1.0
  contention: float = 1.0


def read(paths: Sequence[str]) -> Costs:
  """Fits the records in files; raises `UserError` for one that is no complete record of bench."""
  records = []
  for path in paths:
    try:
      with open(path, encoding='utf-8') as handle:
        records.append(json.load(handle))
    except (OSError, ValueError) as error:
      raise types.UserError(f'cannot read the bench file {path}: {error}; {_RUN_AGAIN}') from error
  try:
    return fit(records)
  except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
    raise types.UserError(
      f'{", ".join(paths)}: no complete record of bench ({type(error).__name__}: {error}); '
      + _RUN_AGAIN
    ) from error


def fit(records: Sequence[Mapping[str, Any]]) -> Costs:
  """Fits the costs: calls of the first record that has them, and overheads that all records cost
  beyond these.

  The costs of messages, calls and rows can be separated only with several records of one
  configuration, with groups and batches of several sizes. With one record, all overhead counts as a
  cost of rows.
  """
  for record in records:
    if record.get('launch', _LAUNCH) != _LAUNCH:
      raise types.UserError(
        f'measured with --launch={record["launch"]}, where one process does everything: plan from '
        f'bench --launch={_LAUNCH}'
      )
  names = sorted({record['config'] for record in records})
  if len(names) > 1:
    raise types.UserError(f'records of several configurations: {", ".join(names)}; plan from one')
  first = records[0]
  calls = next((record['calls'] for record in records if 'calls' in record), None)
  if calls is None:
    raise types.UserError(
      'no record that --from names has `calls`, which bench leaves out if it cannot measure single '
      f'calls: {_RUN_AGAIN}'
    )
  costs = Costs(
    setting=Setting(**first['setting']),
    environment_call=_curve(calls['environment_call_s']),
    inference_call=_curve(calls['inference_call_s']),
    actor_inference_call=_curve(calls['inference_call_s']),
    update=_curve(calls['update_s']),
    exchange_bytes=_curve(calls['exchange_bytes']),
    unroll_bytes=_positive(calls['unroll_bytes']),
    shared_unroll_bytes=_positive(calls['shared_unroll_bytes']),
    weights_bytes=_positive(calls['weights_bytes']),
    gradient_bytes=_positive(calls['gradient_bytes']),
    steps_per_row=_positive(statistics.median(record['steps_per_row'] for record in records)),
    replay_ratio=_positive(first['replay_ratio']),
    contention=statistics.median(_contention(record) for record in records),
  )
  row_s, message_s, call_s = _overheads([_learner_rest(costs, record) for record in records])
  return dataclasses.replace(
    costs,
    actor_message_s=statistics.median(_actor_rest(costs, record) for record in records),
    message_s=message_s,
    call_s=call_s,
    row_s=row_s,
  )


def _curve(points: Sequence[Sequence[float]]) -> Curve:
  sizes = [_positive(size) for size, _ in points]
  if not sizes or sizes != sorted(set(sizes)):
    raise ValueError(f'sizes must rise: {sizes}')
  return Curve(tuple((size, _positive(cost)) for size, (_, cost) in zip(sizes, points)))


def _positive(value: float) -> float:
  if not 0 < value < math.inf:
    raise ValueError(f'{value} must be > 0 and finite')
  return float(value)


def _messages_and_rows(record: Mapping[str, Any]) -> tuple[float, float]:
  setting = record['setting']
  rows = record['agent_steps'] / record['steps_per_row']
  return rows * setting['groups_per_actor'] / setting['environments_per_actor'], rows


def _learner_rest(costs: Costs, record: Mapping[str, Any]) -> tuple[float, float, float, float]:
  """Returns per row: 1, messages, calls, and CPU-seconds of learner and replay beyond calls."""
  messages, rows = _messages_and_rows(record)
  batch = _positive(record['inference_batch_size']['mean'])
  known = rows / batch * costs.inference_call(batch)
  known += record['updates'] * costs.update(record['setting']['unrolls_per_update'])
  spent = sum(record['cpu_s'].get(kind, 0.0) for kind in ('learner', 'replay'))
  return 1.0, messages / rows, 1 / batch, max(0.0, spent - known) / rows


def _actor_rest(costs: Costs, record: Mapping[str, Any]) -> float:
  """Returns the CPU-seconds per message of an actor beyond its environments."""
  messages, rows = _messages_and_rows(record)
  return max(0.0, record['cpu_s']['actor'] / messages - costs.environment_call(rows / messages))


def _overheads(rests: Sequence[tuple[float, float, float, float]]) -> np.ndarray:
  """Returns seconds per row, per message and per call, a non-negative least-squares fit.

  It minimises relative errors with the fewest of the three costs that explain the data, preferred
  in this order.
  """
  table = np.array(rests)
  scaled = table / np.maximum(table[:, 3:], table[:, 3].max() * 1e-3 + 1e-12)
  known, rest = scaled[:, :3], scaled[:, 3]
  best, least = np.zeros(3), float(rest @ rest)
  for kinds in (kinds for size in (1, 2, 3) for kinds in itertools.combinations(range(3), size)):
    found = np.zeros(3)
    found[list(kinds)] = np.linalg.lstsq(known[:, kinds], rest, rcond=None)[0]
    error = float(np.sum((known @ found - rest) ** 2))
    if found.min() >= 0 and error < least - 1e-9:
      best, least = found, error
  return best


def _contention(record: Mapping[str, Any]) -> float:
  """Returns wall seconds of the learner's busy threads per CPU-second that they got; at least 1.

  It is more than 1 if other programs, or other processes of the run, competed for the cores.
  """
  shares = record['phase_shares']
  busy = 1.0 - shares['inference'].get('wait', 0.0)
  busy += sum(shares['learner'].get(phase, 0.0) for phase in ('gradient', 'publish', 'log'))
  return max(1.0, busy * record['window_s'] / _positive(record['cpu_s']['learner']))
