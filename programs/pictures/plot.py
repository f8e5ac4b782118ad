"""Learning curves of runs: episode return against agent steps and against wall time."""

from __future__ import annotations

from collections.abc import Sequence
import math
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from seed_acme import types
from seed_acme.loggers import csv_file
from seed_acme.programs.pictures import confidence_intervals
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import published
from seed_acme.programs.pictures import run_groups
from seed_acme.storage import opening

RETURN = 'episode/return'
_MAX_CURVES = 5  # drawn one by one; with more runs, those of equal configuration become a band
_GRID_POINTS = 200
_SAME_END = 0.05  # runs that end so much later, as a fraction of the end, are taken to end together
_THIN = 0.8  # points; the width of a line over fewer runs than its label says
_BEYOND = 0.3  # fraction of the runs' range that intervals may extend beyond it
_MARKS = ('s', '^', 'D', 'o', 'v', 'P', 'X')  # markers of published points
_LEGEND_CHARACTERS = 150  # characters in a row of the legend
_OF_BANDS = 'mean over runs of equal {sameness}, 95% interval (Student t)'
_THIN_PIECES = ', thin where some runs have ended'
_OF_CURVES = 'every row of the log, and smoothed'


class NoEpisode(types.UserError):
  """A run has nothing to draw yet."""


class Curve(NamedTuple):
  """The curve of one run. steps, minutes, returns: `[N]`, N >= 1, steps rising, returns finite."""

  label: str
  steps: np.ndarray
  minutes: np.ndarray
  returns: np.ndarray


class Piece(NamedTuple):
  """A piece of a band: mean and interval `[P]` of the same runs at each x `[P]`."""

  x: np.ndarray
  interval: confidence_intervals.Interval
  num_runs: int


_Band = tuple[str, Sequence[int]]  # a label and the indices of the curves


def plot(
  run_dirs: Sequence[str | os.PathLike[str]],
  out: str | os.PathLike[str],
  reference: str | os.PathLike[str] = '',
  labels: Sequence[str] = (),
) -> pathlib.Path:
  """Draws all runs into one PNG (or any format of matplotlib, by suffix) and returns its path.

  reference: file of published points, see `published.read`; '' = none. labels: a name for each run
    in the legend; runs of one name are joined into their mean. () = names from the folders and
    configurations. Raises `UserError` for a folder that is no run, a run without episodes, a bad
    `reference` or `out`, or another number of labels.
  """
  if not run_dirs:
    raise types.UserError('no run to plot: give at least one run folder, such as runs/latest')
  if labels and len(labels) != len(run_dirs):
    raise types.UserError(
      f'{len(labels)} labels for {len(run_dirs)} runs: give each run a label, in the same order'
    )
  settings = [run_groups.settings(path) for path in run_dirs]
  folders = _folders(run_dirs)
  names = labels or _labels(folders, settings)
  curves = [read_curve(path, name) for path, name in zip(run_dirs, names)]
  heading = run_groups.heading(settings)
  what = f'{heading}: return' if heading else 'Return'
  points = published.read(reference) if reference else []
  bands = _named_bands(labels) if labels else _bands(folders, settings)
  below = _OF_BANDS.format(sameness='label' if labels else 'configuration') if bands else _OF_CURVES
  if _has_fewer_runs(curves, bands):
    below += _THIN_PIECES
  figure = _draw(curves, bands, points, f'{what} of training episodes\n{below}')
  return drawing.write(figure, out)


def read_curve(path: str | os.PathLike[str], label: str) -> Curve:
  """Returns the curve of one run folder."""
  run = opening.open_run(path)
  if not run.metrics.is_file():
    raise NoEpisode(f'{path} has no metrics.csv yet: let the run write its first row')
  columns = csv_file.read(run.metrics)
  missing = [name for name in (RETURN, 'wall_s') if not columns.get(name)]
  if missing:
    raise NoEpisode(
      f'{run.metrics} has nothing to plot ({", ".join(missing)} is empty): '
      'let the run finish its first episodes'
    )
  steps = np.asarray(columns[csv_file.KEY])
  returns, wall_s = np.asarray(columns[RETURN]), np.asarray(columns['wall_s'])
  known = np.isfinite(returns) & np.isfinite(wall_s)
  if not known.any():
    raise NoEpisode(f'{run.metrics} has no episode yet: let the run finish its first episodes')
  return Curve(label, steps[known], wall_s[known] / 60.0, returns[known])


def smooth(values: np.ndarray) -> np.ndarray:
  """Returns a centred triangular mean over about a fifteenth of the curve.

  Near an end the window is cut and its weights are normalised, so that the ends are not biased.
  """
  half = len(values) // 30
  if half < 1:
    return values
  weights = np.concatenate([np.arange(1, half + 2), np.arange(half, 0, -1)]).astype(float)
  total = np.convolve(np.ones(len(values)), weights, mode='same')
  return np.convolve(values, weights, mode='same') / total


def band(xs: Sequence[np.ndarray], curves: Sequence[Curve]) -> list[Piece]:
  """Returns the pieces of a band by rising x; the first is over all runs where these share a range.

  A piece is over the same runs everywhere. It ends with the first of them, and so do those that end
  soon after, because runs go over their last step by unequal amounts. The next piece is over the
  others. There is none over fewer than half of the runs, unless no more of them share any x.

  xs: x values of the rows of each curve, steps or minutes. Curves are smoothed and interpolated
    linearly.
  """
  pieces: list[Piece] = []
  left, reached = list(range(len(xs))), -math.inf
  while left and 2 * len(left) >= len(xs):
    start = max([reached, *(xs[k][0] for k in left)])
    end = min(xs[k][-1] for k in left)
    if start < end:
      pieces.append(_piece(np.linspace(start, end, _GRID_POINTS), left, xs, curves))
    reached = max(reached, end)
    left = [k for k in left if xs[k][-1] > end + _SAME_END * abs(end)]
  if not pieces:  # runs of one row, or runs that share no range
    there = lambda start: [k for k, x in enumerate(xs) if x[0] <= start <= x[-1]]
    start = max((x[0] for x in xs), key=lambda start: (len(there(start)), start))
    pieces = [_piece(np.array([start]), there(start), xs, curves)]
  return pieces


def _has_fewer_runs(curves: Sequence[Curve], bands: Sequence[_Band]) -> bool:
  """Whether a piece of a band, in one of the panels, lacks some of its runs."""
  return any(
    piece.num_runs < len(group)
    for _, xs in _x_axes(curves)
    for _, group in bands
    for piece in band([xs[k] for k in group], [curves[k] for k in group])
  )


def _piece(
  grid: np.ndarray, runs: Sequence[int], xs: Sequence[np.ndarray], curves: Sequence[Curve]
) -> Piece:
  returns = np.stack([np.interp(grid, xs[k], smooth(curves[k].returns)) for k in runs])
  return Piece(grid, confidence_intervals.of_mean(returns), len(runs))


def readable_range(runs: np.ndarray, bounds: np.ndarray) -> tuple[float, float]:
  """Returns a y range that shows all runs, and intervals as far as they do not dwarf these.

  With two seeds an interval is 13 times as wide as their distance. bounds: may contain NaN.
  """
  low, high = runs.min(), runs.max()
  width = (high - low) or 1.0
  bounds = np.append(bounds[np.isfinite(bounds)], [low, high])
  return (
    max(bounds.min(), low - _BEYOND * width) - 0.05 * width,
    min(bounds.max(), high + _BEYOND * width) + 0.05 * width,
  )


def _folders(run_dirs: Sequence[str | os.PathLike[str]]) -> list[str]:
  """Returns a name for each folder: `config/time`, or whole paths if that is ambiguous."""
  paths = [pathlib.Path(path).resolve() for path in run_dirs]
  short = ['/'.join(path.parts[-2:]) for path in paths]
  return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _labels(folders: Sequence[str], settings: Sequence[run_groups.Settings]) -> list[str]:
  """Returns a label for each run: its folder, the name of its configuration if the folder lacks it,
  and the fields of the configuration in which it differs from the other runs."""
  labels = []
  for folder, values, fields in zip(
    folders, settings, run_groups.differences_of_runs(settings), strict=True
  ):
    name = values.get('name')
    named = name in (None, pathlib.PurePath(folder).parent.name)
    labels.append(', '.join([folder if named else f'{folder} ({name})', *fields]))
  return labels


def _named_bands(labels: Sequence[str]) -> list[_Band]:
  """Returns a band for each label; [] if all differ, so that each curve is drawn separately."""
  groups: dict[str, list[int]] = {}
  for place, label in enumerate(labels):
    groups.setdefault(label, []).append(place)
  if len(groups) == len(labels):
    return []
  return [(_counted(label, group), group) for label, group in groups.items()]


def _counted(label: str, group: Sequence[int]) -> str:
  return f'{label} ({len(group)} run{"s" * (len(group) > 1)})'


def _bands(folders: Sequence[str], settings: Sequence[run_groups.Settings]) -> list[_Band]:
  """Returns the bands of runs with equal configuration; [] if each curve is drawn separately."""
  if len(settings) <= _MAX_CURVES or not all('name' in values for values in settings):
    return []
  groups = run_groups.equal(settings)
  firsts = [group[0] for group in groups]
  labels = run_groups.labels([settings[i] for i in firsts], [folders[i] for i in firsts])
  return [(_counted(label, group), group) for label, group in zip(labels, groups)]


def _draw(
  curves: Sequence[Curve], bands: Sequence[_Band], points: Sequence[published.Points], heading: str
) -> Any:
  """Draws the figure. bands: replace the curves, if any. points: drawn over steps only."""
  labels = [label for label, _ in bands] or [curve.label for curve in curves]
  labels += [of_one.label for of_one in points]
  num_columns = max(1, min(3, len(labels), _LEGEND_CHARACTERS // (max(map(len, labels)) + 8)))
  figure = drawing.new_figure(11, 4.6 + 0.2 * math.ceil(len(labels) / num_columns))
  panels = figure.subplots(1, 2, sharey=True)
  _draw_panels(panels, curves, bands, points)
  drawing.title(figure, heading)
  drawing.legend(figure, panels[0], num_columns)
  return figure


def _draw_panels(
  panels: Sequence[Any],
  curves: Sequence[Curve],
  bands: Sequence[_Band],
  points: Sequence[published.Points],
) -> None:
  _draw_points(panels[0], points)  # first, so that the axes include them
  bounds: list[np.ndarray] = []
  for panel, (x_label, xs) in zip(panels, _x_axes(curves)):
    if bands:
      bounds.append(_draw_bands(panel, xs, curves, bands))
    else:
      _draw_curves(panel, xs, curves)
    drawing.dress(panel, x_label)
    panel.set_xlim(left=0)
    panel.margins(x=0.02)
  panels[0].set_ylabel('episode return', color=drawing.INK)
  drawing.count_steps(panels[0])
  if bands:
    shown = [*(smooth(curve.returns) for curve in curves), *(of_one.returns for of_one in points)]
    panels[0].set_ylim(*readable_range(np.concatenate(shown), np.concatenate(bounds)))


def _x_axes(curves: Sequence[Curve]) -> list[tuple[str, list[np.ndarray]]]:
  """Returns for each of the two panels its label and the x values of each curve."""
  steps = [curve.steps for curve in curves]
  minutes = [curve.minutes for curve in curves]
  if max(x[-1] for x in minutes) < 1:
    wall_time = ('wall time (seconds)', [x * 60 for x in minutes])
  else:
    wall_time = ('wall time (minutes)', minutes)
  return [('agent steps', steps), wall_time]


def _draw_curves(panel: Any, xs: Sequence[np.ndarray], curves: Sequence[Curve]) -> None:
  for i, (x, curve) in enumerate(zip(xs, curves)):
    _, colour = drawing.line_style(i)
    panel.plot(x, curve.returns, color=colour, alpha=0.22, linewidth=0.9)
    drawing.line(panel, i, x, smooth(curve.returns), curve.label)


def _draw_bands(
  panel: Any, xs: Sequence[np.ndarray], curves: Sequence[Curve], bands: Sequence[_Band]
) -> np.ndarray:
  """Draws the bands, and pieces without all of their runs as thin lines alone, because intervals
  of other widths would seem to be of the same runs. Returns the ends of all intervals."""
  bounds = []
  for i, (label, group) in enumerate(bands):
    pieces = band([xs[k] for k in group], [curves[k] for k in group])
    for piece in pieces:
      x, interval = piece.x, piece.interval
      is_whole = piece.num_runs == len(group)
      width = drawing.LINE_WIDTH if is_whole else _THIN
      name = label if piece is pieces[0] else ''  # one entry in the legend
      colour = drawing.line(panel, i, x, interval.mean, name, zorder=4, linewidth=width)
      if is_whole and np.isfinite(interval.low).any():
        panel.fill_between(x, interval.low, interval.high, color=colour, alpha=0.18, linewidth=0)
        bounds += [interval.low, interval.high]
  return np.concatenate([*bounds, []])


def _draw_points(panel: Any, points: Sequence[published.Points]) -> None:
  for i, of_one in enumerate(points):
    panel.plot(
      of_one.steps,
      of_one.returns,
      _MARKS[i % len(_MARKS)],
      color=drawing.INK,
      markersize=7,
      markerfacecolor='white',
      label=drawing.label(of_one.label),
      zorder=5,
    )
