"""docs/images/architecture.svg: no text runs into another one, a frame or a line."""

import pathlib

import pytest

from tests import svg_texts

_PICTURE = pathlib.Path(__file__).parent.parent / 'docs' / 'images' / 'architecture.svg'


def test_no_text_collides():
  assert list(svg_texts.collisions(_PICTURE.read_text())) == []


@pytest.mark.parametrize(
  'old, new',
  [
    ('x="34" y="157"', 'x="34" y="145"'),
    ('x="48" y="203"', 'x="170" y="203"'),
    ('x="354" y="241"', 'x="354" y="248"'),
  ],
)
def test_a_collision_is_found(old, new):
  svg = _PICTURE.read_text()
  assert old in svg
  assert list(svg_texts.collisions(svg.replace(old, new)))
