"""The tables of a sweep: one row per combination, and one per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import csv
import io
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from seed_acme.files import local
from seed_acme.loggers import terminal
from seed_acme.programs.pictures import confidence_intervals
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import state as sweep_state

TABLE, TABLE_TEXT, RUNS = 'table.csv', 'table.md', 'runs.csv'
CURVES, SETTINGS = 'curves.png', 'settings.png'
_LEAD = (
  'Return: mean over seeds of the mean return of the last 100 training episodes, with its 95% '
  'interval (Student t over the seeds; none for one seed). Steps and CPU-seconds: mean of a run. '
  'Only finished runs count.'
)


class Row(NamedTuple):
  """A combination over its finished runs. is_pruned: a search has pruned it.

  returns: `[S]`, mean of the last 100 training episodes of each run that had any. evaluations:
    `[S']`.
  agent_steps, cpu_s: means over runs; None if no run is finished (or its CPU-seconds are unknown).
  """

  combination: sweep_plan.Combination
  num_finished: int
  returns: np.ndarray
  evaluations: np.ndarray
  agent_steps: float | None
  cpu_s: float | None
  is_pruned: bool = False


class Results(NamedTuple):
  """The data of all tables and plots.

  rows: best mean return first, unknown ones last. If a search has evaluation episodes, it maximises
    their return, and its rows are ordered by that.
  """

  plan: sweep_plan.Plan
  out: pathlib.Path
  runs: list[tuple[sweep_plan.Run, sweep_state.State]]
  rows: list[Row]


def read(plan: sweep_plan.Plan, out: pathlib.Path, failures: Mapping[pathlib.Path, str]) -> Results:
  """Reads the current state of the runs' folders.

  failures: by run folder, why runs ended that could not write a failure.json themselves.
  """
  runs = []
  for run in plan.runs(out):
    state = sweep_state.read(run)
    if run.run_dir.path in failures and state.status != sweep_state.FINISHED:
      state = state._replace(status=sweep_state.FAILED, message=failures[run.run_dir.path])
    runs.append((run, state))
  by_slug: dict[str, list[sweep_state.State]] = {c.slug: [] for c in plan.combinations}
  for run, state in runs:
    by_slug[run.combination.slug].append(state)
  rows = [_row(combination, by_slug[combination.slug]) for combination in plan.combinations]
  rows.sort(key=lambda row: _rank(plan, row))
  return Results(plan, out, runs, rows)


def _rank(plan: sweep_plan.Plan, row: Row) -> float:
  is_by_evaluation = plan.search is not None and row.evaluations.size
  returns = row.evaluations if is_by_evaluation else row.returns
  return -returns.mean() if returns.size else np.inf


def _row(combination: sweep_plan.Combination, of_runs: Sequence[sweep_state.State]) -> Row:
  states = [state for state in of_runs if state.status == sweep_state.FINISHED]
  return Row(
    combination,
    len(states),
    _known([state.mean_return for state in states]),
    _known([state.evaluation_return for state in states]),
    _mean([state.agent_steps for state in states]),
    _mean([state.cpu_s for state in states]),
    any(state.status == sweep_state.PRUNED for state in of_runs),
  )


def _known(values: Sequence[float | None]) -> np.ndarray:
  return np.array([value for value in values if value is not None], np.float64)


def _mean(values: Sequence[float | None]) -> float | None:
  known = _known(values)
  return float(known.mean()) if known.size else None


def records(results: Results) -> list[dict[str, Any]]:
  """Returns the rows with a value for each column; None if it is unknown."""
  fields = results.plan.fields()
  evaluates = any(row.evaluations.size for row in results.rows)
  return [
    {
      **{field: sweep_grid.get(row.combination.config, field) for field in fields},
      'seeds': row.num_finished,
      **({'is_pruned': row.is_pruned} if results.plan.search else {}),
      **_statistics('return', row.returns),
      **(_statistics('evaluation_return', row.evaluations) if evaluates else {}),
      'agent_steps': row.agent_steps,
      'cpu_s': row.cpu_s,
      'folder': row.combination.slug,
    }
    for row in results.rows
  ]


def _statistics(name: str, values: np.ndarray) -> dict[str, float | None]:
  if not values.size:
    return dict.fromkeys(
      (f'{name}_{part}' for part in ('mean', 'low', 'high', 'median', 'min', 'max')), None
    )
  interval = confidence_intervals.of_mean(values)
  low, high = (None if np.isnan(bound) else float(bound) for bound in (interval.low, interval.high))
  return {
    f'{name}_mean': float(interval.mean),
    f'{name}_low': low,
    f'{name}_high': high,
    f'{name}_median': float(np.median(values)),
    f'{name}_min': float(values.min()),
    f'{name}_max': float(values.max()),
  }


def write_tables(results: Results) -> None:
  """Writes table.csv, table.md and runs.csv, each atomically."""
  fields = results.plan.fields()
  runs = [_run_record(results, run, state) for run, state in results.runs]
  local.write_text(results.out / TABLE, _csv(records(results), fields))
  local.write_text(results.out / RUNS, _csv(runs, fields))
  local.write_text(results.out / TABLE_TEXT, _page(results))


def _run_record(results: Results, run: sweep_plan.Run, state: sweep_state.State) -> dict[str, Any]:
  return {
    **{field: sweep_grid.get(run.config, field) for field in results.plan.fields()},
    'seed': run.seed,
    'status': state.status,
    'return_last_100': state.mean_return,
    'evaluation_return': state.evaluation_return,
    'agent_steps': state.agent_steps,
    'episodes': state.episodes,
    'wall_s': state.wall_s,
    'cpu_s': state.cpu_s,
    'run_dir': os.path.relpath(run.run_dir.path, results.out),
    'message': state.message,
  }


def _csv(rows: Sequence[dict[str, Any]], fields: Sequence[str]) -> str:
  """Returns CSV with field values as in a grid; unknown results are empty."""
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator='\n')
  for row in rows[:1]:  # a search may have drawn nothing yet
    writer.writerow(row)
  for row in rows:
    writer.writerow(
      [sweep_grid.text(value) if name in fields else _cell(value) for name, value in row.items()]
    )
  return buffer.getvalue()


def _cell(value: Any) -> str:
  if value is None:
    return ''
  return f'{value:.8g}' if isinstance(value, float) else str(value)


def text_table(results: Results, max_rows: int) -> str:
  """Returns a Markdown table with aligned columns, the best rows first."""
  names = results.plan.names()
  evaluates = any(row.evaluations.size for row in results.rows)
  header = [
    *names.values(),
    'seeds',
    'return',
    '95% interval',
    'median',
    'min',
    'max',
    *(['evaluation', '95% interval'] if evaluates else []),
    'steps',
    'CPU-s',
  ]
  cells = [header]
  for row in results.rows[:max_rows]:
    settings = [sweep_grid.text(sweep_grid.get(row.combination.config, field)) for field in names]
    seeds = 'pruned' if row.is_pruned else f'{row.num_finished} of {results.plan.num_seeds}'
    cells.append([*settings, seeds, *_reached(row, evaluates)])
  widths = [max(map(len, column)) for column in zip(*cells)]
  lines = [
    '| ' + ' | '.join(cell.rjust(width) for cell, width in zip(line, widths)) + ' |'
    for line in cells
  ]
  lines.insert(1, '|' + '|'.join('-' * (width + 1) + ':' for width in widths) + '|')
  return '\n'.join(lines)


def _reached(row: Row, evaluates: bool) -> list[str]:
  """Returns the cells from `return` on."""
  spread = [
    _number(function(row.returns)) if row.returns.size else '-'
    for function in (np.median, np.min, np.max)
  ]
  return [
    *_mean_and_interval(row.returns),
    *spread,
    *(_mean_and_interval(row.evaluations) if evaluates else []),
    '-' if row.agent_steps is None else f'{row.agent_steps:,.0f}',
    '-' if row.cpu_s is None else f'{row.cpu_s:,.0f}',
  ]


def _mean_and_interval(values: np.ndarray) -> list[str]:
  if not values.size:
    return ['-', '-']
  interval = confidence_intervals.of_mean(values)
  if np.isnan(interval.low):
    return [_number(interval.mean), '-']
  return [_number(interval.mean), f'{_number(interval.low)} to {_number(interval.high)}']


def _number(value: Any) -> str:
  return terminal.number(float(value))


def count(results: Results) -> dict[str, int]:
  """Returns the number of runs by status."""
  statuses = [state.status for _, state in results.runs]
  shown = [sweep_state.FINISHED, sweep_state.UNFINISHED, sweep_state.FAILED, sweep_state.WAITING]
  if results.plan.search:
    shown.append(sweep_state.PRUNED)
  return {status: statuses.count(status) for status in shown}


def describe_count(results: Results) -> str:
  """Returns a text such as `3 of 4 runs finished, 1 failed`."""
  by_status = count(results)
  finished = by_status.pop(sweep_state.FINISHED)
  others = [f'{number} {status}' for status, number in by_status.items() if number]
  return ', '.join([f'{finished} of {len(results.runs)} runs finished', *others])


def _page(results: Results) -> str:
  """Returns the contents of table.md."""
  plan = results.plan
  parts = [
    f'# Sweep of {plan.base.name}',
    f'{describe_count(results)}. {_LEAD}',
    text_table(results, len(results.rows)),
  ]
  failures = _failures(results)
  if failures:
    parts.append('Failed:\n\n' + '\n'.join(failures))
  parts += [f'![{name}]({name})' for name in (CURVES, SETTINGS) if (results.out / name).exists()]
  return '\n\n'.join(parts) + '\n'


def _failures(results: Results) -> list[str]:
  names = results.plan.names()
  return [
    f'- {sweep_labels.label(run.combination.settings, names)} seed {run.seed}: '
    f'{" ".join(state.message.split())}'
    for run, state in results.runs
    if state.status == sweep_state.FAILED
  ]
