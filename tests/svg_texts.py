"""A check that texts in our SVGs overlap no other text, frame or line.

Widths are measured in DejaVu Sans, the widest font that the pictures name.
"""

import re
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib import font_manager
from matplotlib import textpath

_SVG = '{http://www.w3.org/2000/svg}'
_SMALL, _NORMAL = 11, 12
_STEP = re.compile(r'([MHV])([\d. ]+)')


class Box(NamedTuple):
  """The bounding box of a text, a frame or a piece of a line."""

  name: str
  left: float
  top: float
  right: float
  bottom: float

  def meets(self, other):
    return (
      self.left < other.right
      and other.left < self.right
      and self.top < other.bottom
      and other.top < self.bottom
    )

  def holds(self, other):
    return (
      self.left <= other.left
      and other.right <= self.right
      and self.top <= other.top
      and other.bottom <= self.bottom
    )


def _width(text, classes, size):
  weight = 'bold' if 'title' in classes else 'normal'
  font = font_manager.FontProperties(family='DejaVu Sans', weight=weight, size=size)
  return textpath.TextToPath().get_text_width_height_descent(text, font, ismath=False)[0]


def _size(element, default):
  classes = element.get('class', '').split()
  return _SMALL if 'small' in classes else float(element.get('font-size', default))


def _text_box(element):
  classes, size = element.get('class', '').split(), _size(element, _NORMAL)
  parts = [(element.text or '', classes, size, 0.0)] + [
    (part.text, part.get('class', '').split(), _size(part, size), float(part.get('dx', 0)))
    for part in element
  ]
  width = sum(dx + _width(*rest) for *rest, dx in parts)
  x, y = float(element.get('x')), float(element.get('y'))
  left = x - width * (0.5 if 'c' in classes else 1.0 if 'e' in classes else 0.0)
  text = ' '.join(part[0] for part in parts).strip()
  return Box(text, left, y - 0.76 * size, left + width, y + 0.1 * size)


def _lines(element):
  x = y = 0.0
  for letter, numbers in _STEP.findall(element.get('d')):
    old_x, old_y = x, y
    values = [float(number) for number in numbers.split()]
    x = values[0] if letter in 'MH' else x
    y = values[-1] if letter in 'MV' else y
    if letter != 'M':
      yield Box(
        element.get('d'), min(x, old_x) - 1, min(y, old_y) - 1, max(x, old_x) + 1, max(y, old_y) + 1
      )


def collisions(svg):
  """Returns a description of each overlap."""
  root = ElementTree.fromstring(svg)
  texts = [_text_box(element) for element in root.iter(f'{_SVG}text')]
  frames = [
    Box(
      element.get('class', 'picture'),
      x,
      y,
      x + float(element.get('width')),
      y + float(element.get('height')),
    )
    for element in root.iter(f'{_SVG}rect')
    for x, y in [(float(element.get('x', 0)), float(element.get('y', 0)))]
  ]
  lines = [
    line for element in root.iter(f'{_SVG}path') if element.get('class') for line in _lines(element)
  ]
  assert texts and frames and lines
  for i, text in enumerate(texts):
    yield from (
      f'{text.name!r} and {other.name!r}' for other in [*texts[:i], *lines] if text.meets(other)
    )
    yield from (
      f'{text.name!r} and the edge of a {frame.name}'
      for frame in frames
      if text.meets(frame) and not frame.holds(text)
    )
