"""The figures of a sweep, drawn from its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import functools
import pathlib
from typing import Any

import numpy as np

from seed_acme import types
from seed_acme.loggers import terminal
from seed_acme.programs.pictures import confidence_intervals
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import plot
from seed_acme.programs.tools.reports import sweep_plot
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import results as sweep_results
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep import state as sweep_state


def write(results: sweep_results.Results, tell: Callable[[str], None]) -> list[pathlib.Path]:
  """Writes the figures that have data; each file is replaced atomically.

  tell: called with the reason if one could not be drawn.
  """
  figures: dict[str, Callable[[pathlib.Path], pathlib.Path]] = {}
  groups = _groups(results)
  if groups:
    figures[sweep_results.CURVES] = lambda path: _draw_best(groups, path)
  panels = _panels(results)
  if panels:
    figures[sweep_results.SETTINGS] = lambda path: sweep_plot.draw_settings(panels, path)
  written = []
  for name, draw in figures.items():
    path = drawing.or_notice(functools.partial(draw, results.out / name), f'Notice: {name}', tell)
    written += [path] if path else []
  return written


def _draw_best(groups: Sequence[sweep_plot.Group], path: pathlib.Path) -> pathlib.Path:
  best = groups[: sweep_plot.MAX_CURVES]
  is_cut = len(groups) > len(best)
  note = f'the best {len(best)} of {len(groups)} combinations' if is_cut else ''
  return sweep_plot.draw_curves(best, note, path)


def _groups(results: sweep_results.Results) -> list[sweep_plot.Group]:
  """Returns the finished runs that have a curve by combination, the best combination first."""
  names = results.plan.names()
  curves: dict[str, list[plot.Curve]] = {}
  for run, state in results.runs:
    if state.status == sweep_state.FINISHED:
      with contextlib.suppress(types.UserError):  # no episode has ended
        curve = plot.read_curve(run.run_dir.path, str(run.seed))
        curves.setdefault(run.combination.slug, []).append(curve)
  return [
    sweep_plot.Group(_label(row, names), curves[row.combination.slug])
    for row in results.rows
    if row.combination.slug in curves
  ]


def _label(row: sweep_results.Row, names: dict[str, str]) -> str:
  label = sweep_labels.label(row.combination.settings, names)
  if not row.returns.size:
    return label
  interval = confidence_intervals.of_mean(row.returns)
  half = float(interval.high - interval.mean)
  spread = '' if np.isnan(half) else f' ± {terminal.number(half, 2)}'
  seeds = 'seed' if row.returns.size == 1 else 'seeds'
  return f'{label}: {terminal.number(float(interval.mean), 3)}{spread} ({row.returns.size} {seeds})'


def _panels(results: sweep_results.Results) -> list[sweep_plot.Panel]:
  """Returns a panel for each field that takes several values, with the returns at each value."""
  returns_of = {row.combination.slug: row.returns for row in results.rows}
  panels = []
  for field, name in results.plan.names().items():
    values: dict[str, Any] = {}
    returns: dict[str, list[np.ndarray]] = {}
    for combination in results.plan.combinations:
      if field in combination.settings:
        value = combination.settings[field]
        values[sweep_grid.text(value)] = value
        returns.setdefault(sweep_grid.text(value), []).append(returns_of[combination.slug])
    pooled = {text: np.concatenate(found) for text, found in returns.items()}
    if len(values) > 1 and any(found.size for found in pooled.values()):
      order = sorted(values, key=lambda text: _order(values[text]))
      found = [pooled[text] for text in order]
      panels.append(sweep_plot.Panel(name, order, found, *_scale(results.plan, field)))
  return panels


def _scale(plan: sweep_plan.Plan, field: str) -> tuple[str, bool]:
  """Returns the axis scale for a searched range, '' for a list of values; and whether the range has
  integers only."""
  domain = plan.search.space.get(field) if plan.search else None
  if not isinstance(domain, search_space.Range):
    return '', False
  return 'log' if domain.is_log else 'linear', isinstance(domain.low, int)


def _order(value: Any) -> tuple[bool, float]:
  """Returns a sort key: numbers by size, then everything else in the grid's order."""
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  return not is_number, float(value) if is_number else 0.0
