"""Draws docs/images/layout.svg, the layout of one run: `python scripts/layout_picture.py`

The contents come from a `Layout`, so the picture shows what `seed-acme train --show_layout` prints.
A test compares the file with this script.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import math
import pathlib
import sys

from seed_acme import layout as layout_lib
from seed_acme.configs import registry

PATH = pathlib.Path(__file__).resolve().parents[1] / 'docs' / 'images' / 'layout.svg'
_DEVICES = ('gpu:0', 'gpu:1')
_WIDTH, _MARGIN = 790, 20
_ACTOR, _DEVICE, _SHARD = (20, 230), (360, 130), (590, 150)  # left edge and width of each column
_HEIGHT, _STEP, _HEAD = 42, 52, 46  # of a box; from one box to the next; above a host's first box
_LANE = 16  # distance between two vertical lines
_STYLE = """
    .process { fill: #f6f7f9; stroke: #5f6b7a; stroke-width: 1.6; }
    .worker { fill: #ffffff; stroke: #5f6b7a; stroke-width: 1.6; }
    .thread { fill: #fff3dc; stroke: #d08a00; stroke-width: 1.4; }
    .data { fill: #ffffff; stroke: #8a94a0; stroke-width: 1.2; }
    .line { fill: none; stroke: #333; stroke-width: 1.5; marker-end: url(#arrow); }
    .unrolls { fill: none; stroke: #0072B2; stroke-width: 2; marker-end: url(#blue); }
    .title { font-weight: bold; fill: #222; }
    .small { font-size: 11px; fill: #444; }
"""
_FONT = 'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="12"'
_MARKER = (
  '<marker id="{}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
  'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{}"/></marker>'
)


def example() -> layout_lib.Layout:
  """Returns two learner hosts with two replay shards and two inference devices each."""
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config,
    num_learner_hosts=2,
    num_actors=8,
    num_evaluation_environments=4,
    replay=dataclasses.replace(config.replay, num_shards=2),
    learner=dataclasses.replace(config.learner, xla=False),
  )
  layout = layout_lib.Layout.of(config)
  for learner in layout.learners:
    layout = layout.with_devices(learner.index, _DEVICES)
  return layout


def draw(layout: layout_lib.Layout) -> str:
  """Returns the SVG. layout: with the devices of each host."""
  lines, top = [], _MARGIN
  for learner in layout.learners:
    host = _Host(layout, learner, top)
    lines += host.draw()
    top += host.height + _MARGIN
  label = 'Which actor belongs to which learner host, inference device and replay shard'
  return '\n'.join(
    [
      f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" {_FONT} role="img"',
      f'  aria-label="{label}">',
      f'  <defs>{_MARKER.format("arrow", "#333")}{_MARKER.format("blue", "#0072B2")}',
      f'  <style>{_STYLE}  </style></defs>',
      f'  <rect width="{_WIDTH}" height="{top}" rx="10" fill="#ffffff"/>',
      *lines,
      '</svg>\n',
    ]
  )


class _Host:
  """The drawing of a learner host and its actors, below `top`."""

  def __init__(self, layout: layout_lib.Layout, learner: layout_lib.Learner, top: int):
    self._layout, self._learner, self._top = layout, learner, top
    its = [actor for actor in layout.actors if actor.learner == learner.index]
    self._actors = sorted(its, key=self._device_of)  # so that no lines cross
    self._rows = max(len(its), len(learner.devices), len(learner.shards))
    self.height = _HEAD + self._rows * _STEP

  def draw(self) -> Iterator[str]:
    """Yields the lines of the SVG."""
    learner, left = self._learner, _DEVICE[0] - 20
    yield _rect('process', left, self._top, _WIDTH - _MARGIN - left, self.height)
    yield _text('title', left + 14, self._top + 20, f'learner/{learner.index}')
    learns = f'trains with {learner.batch_size} unrolls of an update'
    yield _text('small', left + 84, self._top + 20, learns)
    for row, actor in enumerate(self._actors):
      ids = actor.env_ids
      what = f'environments {ids[0]} ... {ids[-1]}'
      what += ', evaluates' if actor.shard is None else ''
      yield from self._box('worker', _ACTOR, row, f'actor/{actor.index}', what)
      index = self._device_of(actor)
      name = f'actor/{actor.index} asks {learner.devices[index].name}'
      to = self._row_of(index, len(learner.devices))
      yield _path('line', name, self._y(row), self._y(to), _ACTOR, _DEVICE, index)
    for index, device in enumerate(learner.devices):
      row, rows = self._row_of(index, len(learner.devices)), f'batches of {device.rows} rows'
      yield from self._box('thread', _DEVICE, row, device.name, rows)
    for index, shard in enumerate(learner.shards):
      row, what = (
        self._row_of(index, len(learner.shards)),
        f'{shard.batch_size} unrolls for an update',
      )
      yield from self._box('data', _SHARD, row, f'replay/{shard.index}', what)
    for index, shard_index in sorted(self._deliveries()):
      name = f'{learner.devices[index].name} finishes unrolls for replay/{shard_index}'
      row, to = (
        self._row_of(index, len(learner.devices)),
        self._row_of(shard_index, len(learner.shards)),
      )
      yield _path('unrolls', name, self._y(row), self._y(to), _DEVICE, _SHARD, shard_index)

  def _deliveries(self) -> set[tuple[int, int]]:
    """Returns the pairs of device and shard between which unrolls flow."""
    return {
      (self._device_of(actor), actor.shard) for actor in self._actors if actor.shard is not None
    }

  def _device_of(self, actor: layout_lib.Actor) -> int:
    return self._layout.device_of(actor.env_ids[0])

  def _row_of(self, index: int, number: int) -> int:
    """Returns the row of one of `number` boxes, which are spread over the rows of the actors."""
    return math.ceil(index * self._rows / number)

  def _y(self, row: int) -> int:
    return self._top + _HEAD - 8 + row * _STEP

  def _box(
    self, kind: str, column: tuple[int, int], row: int, title: str, what: str
  ) -> Iterator[str]:
    left, width = column
    yield _rect(kind, left, self._y(row), width, _HEIGHT)
    yield _text('title', left + 10, self._y(row) + 17, title)
    yield _text('small', left + 10, self._y(row) + 34, what)


def _rect(kind: str, left: int, top: int, width: int, height: int) -> str:
  return f'  <rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'


def _text(kind: str, left: int, baseline: int, text: str) -> str:
  return f'  <text class="{kind}" x="{left}" y="{baseline}">{text}</text>'


def _path(
  kind: str,
  name: str,
  top: int,
  to: int,
  column: tuple[int, int],
  next_: tuple[int, int],
  lane: int,
) -> str:
  """Returns a line between boxes of neighbouring columns, in a vertical lane of its own."""
  start, end = column[0] + column[1], next_[0]
  bend = end - 36 - lane * _LANE
  middle = _HEIGHT // 2
  drawn = f'M{start} {top + middle}H{bend}V{to + middle}H{end}'
  return f'  <path class="{kind}" d="{drawn}"><title>{name}</title></path>'


def main(path: pathlib.Path = PATH) -> None:
  """Writes the picture to a file."""
  path.write_text(draw(example()), encoding='utf-8')


if __name__ == '__main__':
  main(*map(pathlib.Path, sys.argv[1:2]))
