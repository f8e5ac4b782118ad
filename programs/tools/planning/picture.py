"""The picture of a plan: the rate against the number of environments, and its bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from seed_acme.programs.pictures import drawing
from seed_acme.programs.tools.planning import costs as costs_lib
from seed_acme.programs.tools.planning import model

_NUM_POINTS = 60
_RANGE = 64  # the x axis begins at this fraction of the actors
# Places of a name beside its mark, the best first: rates rise with the environments, so lines leave
# room below at the right and above at the left.
_SIDES = ((6, -5), (-6, 5), (6, 5), (-6, -5))
_OFFSETS = tuple(
  (x, y + (y > 0) * far - (y < 0) * far) for far in (0, 12, 24, 36) for x, y in _SIDES
)
_MARK_RADIUS = 4  # points, with some room
_SAMPLES = 20  # points on each straight piece of a line


class _Mark(NamedTuple):
  """A point where the bottleneck changes. x: environments. y: frames a second."""

  x: float
  y: float
  bottleneck: str
  colour: str


def draw(costs: costs_lib.Costs, scale: model.Scale, out: str) -> None:
  """Draws the rate of both kinds of inference against the actors, with all else as in `scale`.

  Raises `UserError` if `out` cannot be written.
  """
  figure = drawing.new_figure(9, 5)
  panel = figure.subplots()
  scales = _scales(scale)
  environments = np.array([one.environments for one in scales])
  marks: list[_Mark] = []
  for i, (name, planned) in enumerate(
    (('central', model.central), ('at the actors', model.actor_side))
  ):
    plans = [planned(costs, one) for one in scales]
    rates = np.array([plan.frames_per_s for plan in plans])
    colour = drawing.line(panel, i, environments, rates, f'inference {name}')
    marks += _marks(environments, plans, colour)
  for mark in marks:
    panel.plot([mark.x], [mark.y], 'o', color=mark.colour, zorder=5)
  panel.set_xscale('log')
  panel.set_yscale('log')
  drawing.dress(panel, 'environments')
  drawing.logarithmic(panel.xaxis)
  drawing.logarithmic(panel.yaxis)
  panel.margins(y=0.1)  # for the labels of the lowest and the highest point
  panel.set_ylabel('environment frames a second', color=drawing.INK)
  hosts = f'{scale.learners} learner host{"s" if scale.learners > 1 else ""}'
  drawing.title(figure, f'{hosts}, {scale.environments_per_actor} environments an actor')
  drawing.legend(figure, panel, 2)
  _write_names(figure, panel, marks)
  drawing.write(figure, out)


def _scales(scale: model.Scale) -> list[model.Scale]:
  """Returns scales with rising numbers of actors up to the given one, at least one per learner."""
  least = max(scale.learners, scale.actors // _RANGE)
  actors = np.unique(np.geomspace(least, scale.actors, _NUM_POINTS).round().astype(int))
  return [
    dataclasses.replace(
      scale,
      actors=int(number),
      inference_rows=max(1, round(scale.inference_rows * number / scale.actors)),
    )
    for number in actors
  ]


def _marks(environments: np.ndarray, plans: Sequence[model.Plan], colour: str) -> list[_Mark]:
  """Returns a mark where a line begins and wherever its bottleneck changes."""
  marks: list[_Mark] = []
  for x, plan in zip(environments, plans):
    if not marks or plan.bottleneck != marks[-1].bottleneck:
      marks.append(_Mark(float(x), plan.frames_per_s, plan.bottleneck, colour))
  return marks


def _write_names(figure: Any, panel: Any, marks: Sequence[_Mark]) -> None:
  """Writes the bottleneck's name beside each mark, where it covers least.

  It is inside the axes and off all marks and other names if there is such a place, and off the
  lines if there is one among these.
  """
  figure.canvas.draw()  # places the axes
  to_pixels = panel.transData.transform
  points = to_pixels([(mark.x, mark.y) for mark in marks])
  paths = [line.get_path().interpolated(_SAMPLES) for line in panel.lines]
  on_lines = to_pixels(np.concatenate([path.vertices for path in paths]))
  taken: list[Any] = []

  def covered(box: Any) -> tuple[int, int]:
    is_outside = not all(panel.bbox.contains(*corner) for corner in box.corners())
    around = box.padded(_MARK_RADIUS * figure.dpi / 72)
    on_names = sum(box.overlaps(other) for other in taken)
    return is_outside + on_names + _num_inside(around, points), _num_inside(box, on_lines)

  for mark in marks:
    boxes = []
    for offset in _OFFSETS:
      name = _write_name(panel, mark, offset)
      boxes.append(name.get_window_extent())
      name.remove()
    best = min(range(len(boxes)), key=lambda i: covered(boxes[i]))
    _write_name(panel, mark, _OFFSETS[best])
    taken.append(boxes[best])


def _num_inside(box: Any, points: np.ndarray) -> int:
  """Returns how many of the points `[N, 2]` are in a box, both in pixels."""
  return int(np.all((points > box.min) & (points < box.max), axis=1).sum())


def _write_name(panel: Any, mark: _Mark, offset: tuple[int, int]) -> Any:
  """Writes a mark's name. offset: of the corner next to the mark, in points."""
  x, y = offset
  return panel.annotate(
    mark.bottleneck,
    (mark.x, mark.y),
    xytext=offset,
    textcoords='offset points',
    horizontalalignment='left' if x > 0 else 'right',
    verticalalignment='bottom' if y > 0 else 'top',
    color=mark.colour,
    fontsize=9,
    bbox={'facecolor': 'white', 'edgecolor': 'none', 'pad': 1, 'alpha': 0.8},
  )
