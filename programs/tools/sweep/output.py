"""What `seed-acme sweep` prints: its heading, its results, and which runs failed."""

from __future__ import annotations

import json
import math
import os
import pathlib
import sys
from typing import Any

from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import results as sweep_results
from seed_acme.programs.tools.sweep import runs as sweep_runs
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep import state as sweep_state

_MAX_LISTED = 20  # combinations, and failures, to list
_MAX_REASON = 200  # characters


def heading(plan: sweep_plan.Plan, out: pathlib.Path, runs: sweep_runs.Runs) -> str:
  """Returns the folder, the combinations or the search space, and the number of runs."""
  return _grid_heading(plan, out, runs) if plan.search is None else _search_heading(plan, out, runs)


def _grid_heading(plan: sweep_plan.Plan, out: pathlib.Path, runs: sweep_runs.Runs) -> str:
  names = plan.names()
  labels = [sweep_labels.label(c.settings, names) for c in plan.combinations]
  listed = [f'  {label}\n' for label in labels[:_MAX_LISTED]]
  if len(labels) > _MAX_LISTED:
    listed.append(f'  and {len(labels) - _MAX_LISTED} more\n')
  already = f', {runs.num_over()} of them finished' if runs.num_over() else ''
  return (
    f'Sweep: {os.path.relpath(out)}\n{"".join(listed)}'
    f'{_count(len(labels), "combination")} x {_seeds(plan)} = '
    f'{_count(runs.num_in_all(), "run")}{already}'
  )


def _search_heading(plan: sweep_plan.Plan, out: pathlib.Path, runs: sweep_runs.Runs) -> str:
  assert plan.search
  listed = ''.join(
    f'  {search_space.text({field: domain})}\n' for field, domain in plan.search.space.items()
  )
  already = f', {_count(runs.num_over(), "run")} of them over' if runs.num_over() else ''
  return (
    f'Search: {os.path.relpath(out)}\n{listed}'
    f'{_count(plan.search.num_trials, "trial")} x {_seeds(plan)}{already}'
  )


def _seeds(plan: sweep_plan.Plan) -> str:
  first, last = plan.base.seed, plan.base.seed + plan.num_seeds - 1
  return _count(plan.num_seeds, 'seed') + (f' ({first} to {last})' if last > first else '')


def _count(number: int, what: str) -> str:
  return f'{number:,} {what}{"" if number == 1 else "s"}'


def print_results(results: sweep_results.Results, as_json: bool) -> None:
  """Prints the number of runs by status and the table, of which text has the best rows only."""
  if as_json:
    runs, table = sweep_results.count(results), sweep_results.records(results)
    shown = {'out': str(results.out), 'runs': runs, 'table': list(map(_in_json, table))}
    print(json.dumps(shown, allow_nan=False))
    return
  print(f'{sweep_results.describe_count(results)}:')
  print(sweep_results.text_table(results, _MAX_LISTED))
  written = [
    name
    for name in (
      sweep_results.TABLE_TEXT,
      sweep_results.TABLE,
      sweep_results.RUNS,
      sweep_results.CURVES,
      sweep_results.SETTINGS,
    )
    if (results.out / name).exists()
  ]
  print(f'Written to {os.path.relpath(results.out)}: {", ".join(written)}')


def _in_json(record: dict[str, Any]) -> dict[str, Any]:
  """Replaces infinite settings by text, because JSON has no infinity."""
  is_infinite = lambda value: isinstance(value, float) and not math.isfinite(value)
  return {name: sweep_grid.text(x) if is_infinite(x) else x for name, x in record.items()}


def print_failures(results: sweep_results.Results) -> None:
  """Prints to stderr which runs failed, and why; nothing if none has."""
  failed = [(run, state) for run, state in results.runs if state.status == sweep_state.FAILED]
  if failed:
    sys.stdout.flush()
    names = results.plan.names()
    print(f'error: {len(failed)} of {_count(len(results.runs), "run")} failed', file=sys.stderr)
    for run, state in failed[:_MAX_LISTED]:
      reason = ' '.join(state.message.split())[:_MAX_REASON]
      log = os.path.relpath(sweep_schedule.log_path(run))
      print(
        f'  {sweep_labels.label(run.combination.settings, names)} seed {run.seed}: {reason} '
        f'(log: {log})',
        file=sys.stderr,
      )
