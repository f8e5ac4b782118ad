"""The common look of all figures: colours, axes, lines, title, legend."""

from __future__ import annotations

from collections.abc import Callable
import os
import pathlib
from typing import Any, TypeVar
import warnings

import numpy as np

from seed_acme import types
from seed_acme.files import local
from seed_acme.libraries import matplotlib_loading
from seed_acme.programs.system import processes

_T = TypeVar('_T')
_MAX_REASON = 300  # characters

# Okabe and Ito's palette, which people with colour blindness can tell apart, too.
_COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
INK, _FAINT = '#333333', '#DDDDDD'
LINE_WIDTH = 2.0  # points


def new_figure(width: float, height: float) -> Any:
  """Returns an empty white figure, size in inches. pyplot would keep it and choose a display."""
  matplotlib_loading.load()
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(width, height), facecolor='white', layout='constrained')
  FigureCanvasAgg(figure)
  return figure


def or_notice(draw: Callable[[], _T], what: str, tell: Callable[[str], None]) -> _T | None:
  """Returns the result of `draw`; if it fails, None, after passing the reason to `tell`.

  A run or a measurement is complete even if its picture cannot be drawn.
  """
  try:
    return draw()
  except Exception as error:
    reason = ' '.join(processes.describe(error).split())[:_MAX_REASON]
    tell(f'{what} could not be drawn: {reason}')
  return None


def line_style(i: int) -> tuple[str, str]:
  """Returns style and colour of the i-th line, the same in every figure; 21 of them differ."""
  return ('-', '--', ':')[i // len(_COLOURS) % 3], _COLOURS[i % len(_COLOURS)]


def dress(panel: Any, x_label: str) -> None:
  """Applies the style that all panels have in common."""
  panel.set_xlabel(x_label, color=INK)
  panel.grid(color=_FAINT, linewidth=0.7)
  panel.set_axisbelow(True)
  panel.tick_params(colors=INK, length=0, labelleft=True)
  for side, spine in panel.spines.items():
    spine.set_visible(side in ('left', 'bottom'))
    spine.set_color('#999999')


def count_steps(panel: Any) -> None:
  """Formats steps on the x axis as `200k`."""
  from matplotlib import ticker

  panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=''))


def logarithmic(axis: Any) -> None:
  """Labels 1, 2 and 5 of each power of ten, as `200k`: labels of all nine would overlap."""
  from matplotlib import ticker

  axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  axis.set_major_formatter(ticker.EngFormatter(sep=''))
  axis.set_minor_formatter(ticker.NullFormatter())


def title(figure: Any, text: str) -> None:
  """Sets the title above all panels, at the left; a long one takes several lines."""
  figure.suptitle(label(text), color=INK, fontsize=12, x=0.01, ha='left', wrap=True)


def label(text: str) -> str:
  """Returns a text that matplotlib shows as it is.

  In a legend it would leave out what begins with an underscore, and take `$` for the beginning of a
  formula.
  """
  shown = text.replace('$', r'\$')
  return f' {shown}' if shown.startswith('_') else shown


def legend(figure: Any, panel: Any, num_columns: int) -> None:
  """Draws the legend below all panels, with the labels of one of them."""
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
  """Writes the figure in the format of `out`'s suffix, atomically.

  Raises `UserError` for a path or a format that cannot be, and `Failure` if the machine fails, with
  a full disk for instance. A picture that was there before is then still whole.
  """
  local.refuse_url(out, 'file')
  target = pathlib.Path(out)
  if not target.suffix:  # matplotlib would write another file
    raise types.UserError(
      f'cannot write the plot {target}: give it an ending, such as .png or .pdf'
    )
  with local.explained(target, 'write the plot'):
    target.parent.mkdir(parents=True, exist_ok=True)
    with local.replacing(target) as partial:
      _save(figure, partial, target)
  return target


def _save(figure: Any, partial: pathlib.Path, target: pathlib.Path) -> None:
  """Writes the figure to `partial`, which has the suffix of `target`. An `OSError` passes."""
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', 'Glyph')  # a letter of a label that the font lacks
    try:
      figure.savefig(partial, dpi=150)
    # RuntimeError: LaTeX, if the user's settings use it
    except (ValueError, RuntimeError) as error:
      raise types.UserError(f'cannot write the plot {target}: {error}') from error


def line(
  panel: Any,
  i: int,
  x: np.ndarray,
  y: np.ndarray,
  name: str,
  linewidth: float = LINE_WIDTH,
  **more: Any,
) -> str:
  """Draws the i-th line, and returns its colour.

  name: for the legend; '' = none. linewidth: in points. more: for matplotlib.
  """
  style, colour = line_style(i)
  marker = 'o' if len(x) == 1 else None  # a line of one point is invisible
  panel.plot(
    x,
    y,
    style,
    color=colour,
    linewidth=linewidth,
    marker=marker,
    label=label(name),
    solid_capstyle='round',
    **more,
  )
  return colour
