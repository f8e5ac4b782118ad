"""Figures of a sweep: mean learning curves with intervals, and returns by the value of a field."""

from __future__ import annotations

from collections.abc import Sequence
import math
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from seed_acme.loggers import terminal
from seed_acme.programs.pictures import confidence_intervals
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import plot

MAX_CURVES = 8
_GRID_POINTS = 200
_MAX_COLUMNS = 4
_MAX_LABEL_OF_TWO = 56  # characters; longer labels get one legend column
_MAX_THIN_LINES = 12  # runs that can be shown one by one behind their means
_DOTS, _MEAN, _SPREAD = -0.15, 0.15, 0.2  # offsets from a value's position; values are 1 apart


class Group(NamedTuple):
  """Runs that differ only in their seed. curves: one per run, at least one."""

  label: str
  curves: Sequence[plot.Curve]


class Panel(NamedTuple):
  """A field and the returns of its values. returns: `[N]` over all other settings and seeds.

  scale: axis scale if the values are numbers of a range, `linear` or `log`; '' = categories.
  is_integer: whether a range has integers only.
  """

  field: str
  values: Sequence[str]
  returns: Sequence[np.ndarray]
  scale: str = ''
  is_integer: bool = False


def draw_curves(groups: Sequence[Group], note: str, out: str | os.PathLike[str]) -> pathlib.Path:
  """Draws the best MAX_CURVES groups, which come first. note: for the title, '' = none."""
  figure = drawing.new_figure(9, 4.8 + 0.2 * len(groups))
  panel = figure.subplots()
  num_seeds = max(len(group.curves) for group in groups)
  shows_runs = num_seeds > 1 and sum(len(group.curves) for group in groups) <= _MAX_THIN_LINES
  runs, bounds = [], []
  for i, group in enumerate(groups[:MAX_CURVES]):
    style, colour = drawing.line_style(i)
    steps, returns = common_steps(group.curves)
    interval = confidence_intervals.of_mean(returns)
    panel.plot(
      steps,
      interval.mean,
      style,
      color=colour,
      linewidth=2.2,
      label=drawing.label(group.label),
      marker='o' if len(steps) == 1 else None,
      zorder=4 + MAX_CURVES - i,
    )
    if len(returns) > 1:
      panel.fill_between(steps, interval.low, interval.high, color=colour, alpha=0.15, linewidth=0)
    if shows_runs:
      panel.plot(steps, returns.T, style, color=colour, linewidth=0.8, alpha=0.55, zorder=3)
    runs.append(returns.ravel())
    bounds.append(np.concatenate([interval.low, interval.high]))
  drawing.dress(panel, 'agent steps')
  drawing.count_steps(panel)
  panel.set_ylabel('episode return', color=drawing.INK)
  panel.set_xlim(left=0)
  panel.margins(x=0.02)
  panel.set_ylim(*plot.readable_range(np.concatenate(runs), np.concatenate(bounds)))
  what = 'one seed each'
  if num_seeds > 1:
    what = f'mean over seeds, 95% interval (Student t){", each seed thin" * shows_runs}'
  drawing.title(figure, f'Return of training episodes: {what}' + (f'\n{note}' if note else ''))
  longest = max(len(group.label) for group in groups)
  drawing.legend(figure, panel, 2 if longest <= _MAX_LABEL_OF_TWO else 1)
  return drawing.write(figure, out)


def common_steps(curves: Sequence[plot.Curve]) -> tuple[np.ndarray, np.ndarray]:
  """Returns steps `[P]` that all curves cover, and the smoothed returns there, `[S, P]`.

  Curves are interpolated linearly. P is 1 if no range is covered by all.
  """
  first = max(curve.steps[0] for curve in curves)
  last = min(curve.steps[-1] for curve in curves)
  steps = np.linspace(first, last, _GRID_POINTS) if last > first else np.array([float(last)])
  return steps, np.stack(
    [np.interp(steps, curve.steps, plot.smooth(curve.returns)) for curve in curves]
  )


def draw_settings(panels: Sequence[Panel], out: str | os.PathLike[str]) -> pathlib.Path:
  """Draws a panel per field: every run as a dot, and of categories the mean with its interval."""
  figure, grid = _grid_of_axes(panels)
  for axis in grid[:, 0]:
    axis.set_ylabel('return of the last 100 episodes', color=drawing.INK)
  axes = grid.ravel()
  for i, (axis, panel) in enumerate(zip(axes, panels)):
    _draw_setting(axis, panel, drawing.line_style(i)[1])
  for axis in axes[len(panels) :]:
    axis.remove()
  runs = [returns for panel in panels for returns in panel.returns]
  bounds = np.array([confidence_intervals.of_mean(returns)[1:] for returns in runs])
  axes[0].set_ylim(*plot.readable_range(np.concatenate(runs), bounds.ravel()))
  drawing.title(figure, f'Return by setting: {_meaning(panels)}')
  return drawing.write(figure, out)


def _meaning(panels: Sequence[Panel]) -> str:
  """Returns what the dots and the intervals are, in a line or two."""
  if all(panel.scale for panel in panels):
    return 'every run'
  where = ' of a listed value' if any(panel.scale for panel in panels) else ''
  return (
    f'every run, and the mean{where} over all other settings\n'
    'and seeds with its 95% interval (Student t over runs)'
  )


def _grid_of_axes(panels: Sequence[Panel]) -> tuple[Any, np.ndarray]:
  """Returns a figure with `[rows, columns]` axes for all panels."""
  num_rows = math.ceil(len(panels) / _MAX_COLUMNS)
  num_columns = math.ceil(len(panels) / num_rows)
  most = max(4 if panel.scale else len(panel.values) for panel in panels)
  width = min(16.0, num_columns * max(3.4, 0.9 * most))
  figure = drawing.new_figure(max(6.4, width), 0.9 + 3.5 * num_rows)
  return figure, figure.subplots(num_rows, num_columns, sharey=True, squeeze=False)


def _draw_setting(axis: Any, panel: Panel, colour: str) -> None:
  drawing.dress(axis, panel.field)
  axis.grid(visible=False, axis='x')
  if panel.scale:
    axis.set_xscale(panel.scale)
    places = np.repeat([float(value) for value in panel.values], [r.size for r in panel.returns])
    axis.plot(places, np.concatenate(panel.returns), 'o', color=colour, alpha=0.7, markersize=5)
    if panel.is_integer:
      _count(axis, panel)
    return
  for x, returns in enumerate(panel.returns):
    if not returns.size:
      continue
    axis.plot(
      x + _DOTS + _SPREAD * (spread(returns.size) - 0.5),
      np.sort(returns),
      'o',
      color=colour,
      alpha=0.4,
      markersize=4,
      markeredgewidth=0,
    )
    interval = confidence_intervals.of_mean(returns)
    if returns.size > 1:
      axis.plot([x + _MEAN] * 2, [interval.low, interval.high], color=colour, linewidth=2.0)
    axis.plot(x + _MEAN, interval.mean, 'D', color=colour, markersize=6)
    axis.annotate(
      terminal.number(float(interval.mean), 3),
      (x + _MEAN, interval.mean),
      xytext=(7, 0),
      textcoords='offset points',
      va='center',
      fontsize=8,
      color=drawing.INK,
    )
  longest = max(map(len, panel.values))
  axis.set_xticks(
    range(len(panel.values)),
    [drawing.label(value) for value in panel.values],
    **({'rotation': 30, 'ha': 'right'} if longest * len(panel.values) > 36 else {}),
  )
  axis.set_xlim(-0.5, len(panel.values) - 0.35)


def _count(axis: Any, panel: Panel) -> None:
  """Labels integers only: there is nothing between two of them."""
  from matplotlib import ticker

  values = [int(value) for value in panel.values]
  if panel.scale == 'log' and max(values) >= 10 * min(values):
    axis.set_xlim(left=max(axis.get_xlim()[0], 0.8))  # 0.5 would get a label
    drawing.logarithmic(axis.xaxis)
    return
  axis.xaxis.set_major_locator(ticker.MaxNLocator(nbins=6, integer=True))
  axis.xaxis.set_major_formatter(ticker.ScalarFormatter())
  axis.xaxis.set_minor_locator(ticker.NullLocator())


def spread(count: int) -> np.ndarray:
  """Returns `[count]` positions in (0, 1), neighbours far apart: a centred van der Corput
  sequence."""
  places = np.array(
    [sum((i >> bit & 1) / 2 ** (bit + 1) for bit in range(i.bit_length())) for i in range(count)]
  )
  return places - places.mean() + 0.5
