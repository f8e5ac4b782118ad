"""Learning curves of runs: episode return against agent steps and against wall time."""

from __future__ import annotations

from collections.abc import Sequence
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from seed_acme import run_directory
from seed_acme import types
from seed_acme.loggers import csv_file

RETURN = 'episode/return'
# Okabe and Ito's palette: told apart also by people who see few colours.
_COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
INK, _FAINT = '#333333', '#DDDDDD'


class Curve(NamedTuple):
  """One run. steps, minutes, returns: `[N]`, N >= 1, steps rising, returns finite."""

  label: str
  steps: np.ndarray
  minutes: np.ndarray
  returns: np.ndarray


def plot(run_dirs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> pathlib.Path:
  """Draws all runs into one PNG (or any format of matplotlib, by suffix) and returns its path.

  Raises `UserError` for a folder that is no run, a run without episodes, or a bad `out`.
  """
  if not run_dirs:
    raise types.UserError('no run to plot: give at least one run folder, such as runs/latest')
  labels = _labels([pathlib.Path(path).resolve() for path in run_dirs])
  curves = [read_curve(path, label) for path, label in zip(run_dirs, labels)]
  return write(_draw(curves), out)


def read_curve(path: str | os.PathLike[str], label: str) -> Curve:
  """The curve of one run folder."""
  run = run_directory.open_existing(path)
  if not run.metrics.is_file():
    raise types.UserError(f'{path} has no metrics.csv yet: let the run write its first row')
  columns = csv_file.read(run.metrics)
  missing = [name for name in (RETURN, 'wall_s') if not columns.get(name)]
  if missing:
    raise types.UserError(
      f'{run.metrics} has nothing to plot ({", ".join(missing)} is empty): '
      'let the run finish its first episodes'
    )
  steps = np.asarray(columns[csv_file.KEY])
  returns, wall_s = np.asarray(columns[RETURN]), np.asarray(columns['wall_s'])
  known = np.isfinite(returns) & np.isfinite(wall_s)
  if not known.any():
    raise types.UserError(
      f'{run.metrics} has no episode yet: let the run finish its first episodes'
    )
  return Curve(label, steps[known], wall_s[known] / 60.0, returns[known])


def smooth(values: np.ndarray) -> np.ndarray:
  """Centred triangular mean over about a fifteenth of the curve; the ends are not pulled.

  Near an end the window is cut, and what is left is weighted to sum to 1.
  """
  half = len(values) // 30
  if half < 1:
    return values
  weights = np.concatenate([np.arange(1, half + 2), np.arange(half, 0, -1)]).astype(float)
  total = np.convolve(np.ones(len(values)), weights, mode='same')
  return np.convolve(values, weights, mode='same') / total


def _labels(paths: Sequence[pathlib.Path]) -> list[str]:
  """`config/time` for each run; whole paths where that does not tell them apart."""
  labels = ['/'.join(path.parts[-2:]) for path in paths]
  return labels if len(set(labels)) == len(labels) else [str(path) for path in paths]


def new_figure(width: float, height: float) -> Any:
  """An empty white figure, inches. Not pyplot's: it keeps every figure and chooses a window."""
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(width, height), facecolor='white', layout='constrained')
  FigureCanvasAgg(figure)
  return figure


def line_style(i: int) -> tuple[str, str]:
  """Style and colour of the i-th line, the same on every figure; 21 of them differ."""
  return ('-', '--', ':')[i // len(_COLOURS) % 3], _COLOURS[i % len(_COLOURS)]


def dress(panel: Any, x_label: str) -> None:
  """What all panels have in common."""
  panel.set_xlabel(x_label, color=INK)
  panel.grid(color=_FAINT, linewidth=0.7)
  panel.set_axisbelow(True)
  panel.tick_params(colors=INK, length=0, labelleft=True)
  for side, spine in panel.spines.items():
    spine.set_visible(side in ('left', 'bottom'))
    spine.set_color('#999999')


def count_steps(panel: Any) -> None:
  """Steps on the x axis as `200k`."""
  from matplotlib import ticker

  panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=''))


def title(figure: Any, text: str) -> None:
  """Above all panels, from the left."""
  figure.suptitle(text, color=INK, fontsize=12, x=0.01, ha='left')


def legend(figure: Any, panel: Any, num_columns: int) -> None:
  """Below all panels, the labels of one of them."""
  handles, labels = panel.get_legend_handles_labels()
  figure.legend(
    handles,
    labels,
    loc='outside lower left',
    ncols=num_columns,
    frameon=False,
    fontsize=9,
    labelcolor=INK,
  )


def write(figure: Any, out: str | os.PathLike[str]) -> pathlib.Path:
  """In the format of the suffix of `out`; `UserError` for a bad `out`."""
  target = pathlib.Path(out)
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150)
  except (OSError, ValueError) as error:
    raise types.UserError(f'cannot write the plot {target}: {error}') from error
  return target


def _draw(curves: Sequence[Curve]) -> Any:
  figure = new_figure(11, 4.6 + 0.2 * len(curves))
  panels = figure.subplots(1, 2, sharey=True)
  for i, curve in enumerate(curves):
    style, colour = line_style(i)
    for panel, x in zip(panels, (curve.steps, curve.minutes)):
      panel.plot(x, curve.returns, color=colour, alpha=0.22, linewidth=0.9)
      marker = 'o' if len(x) == 1 else None  # a line of one point is invisible
      panel.plot(
        x,
        smooth(curve.returns),
        style,
        color=colour,
        linewidth=2.0,
        marker=marker,
        label=curve.label,
        solid_capstyle='round',
      )
  panels[0].set_ylabel('episode return', color=INK)
  for panel, x_label in zip(panels, ('agent steps', 'wall time (minutes)')):
    dress(panel, x_label)
    panel.set_xlim(left=0)
    panel.margins(x=0.02)
  count_steps(panels[0])
  title(figure, 'Return of training episodes: every row of the log, and smoothed')
  legend(figure, panels[0], min(len(curves), 3))
  return figure
