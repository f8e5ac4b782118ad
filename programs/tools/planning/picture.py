"""The picture of a plan: the rate against the number of environments, and its bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from seed_acme.programs.pictures import drawing
from seed_acme.programs.tools.planning import costs as costs_lib
from seed_acme.programs.tools.planning import model

_NUM_POINTS = 60
_RANGE = 64  # the x axis begins at this fraction of the actors


def draw(costs: costs_lib.Costs, scale: model.Scale, out: str) -> None:
  """Draws the rate of both kinds of inference against the actors, with all else as in `scale`.

  Raises `UserError` if `out` cannot be written.
  """
  figure = drawing.new_figure(9, 5)
  panel = figure.subplots()
  scales = _scales(scale)
  environments = np.array([one.environments for one in scales])
  for i, (name, planned) in enumerate(
    (('central', model.central), ('at the actors', model.actor_side))
  ):
    plans = [planned(costs, one) for one in scales]
    rates = np.array([plan.frames_per_s for plan in plans])
    colour = drawing.line(panel, i, environments, rates, f'inference {name}')
    _mark(panel, environments, plans, colour)
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


def _mark(panel: Any, environments: np.ndarray, plans: Sequence[model.Plan], colour: str) -> None:
  """Writes the bottleneck's name where a line begins and wherever it changes.

  The names stand below the points, at the right, because rates rise with the environments.
  """
  last = ''
  for x, plan in zip(environments, plans):
    if plan.bottleneck != last:
      last = plan.bottleneck
      panel.plot([x], [plan.frames_per_s], 'o', color=colour)
      panel.annotate(
        last,
        (x, plan.frames_per_s),
        xytext=(6, -14),
        textcoords='offset points',
        color=colour,
        fontsize=9,
        bbox={'facecolor': 'white', 'edgecolor': 'none', 'pad': 1, 'alpha': 0.8},
      )
