"""docs/images/layout.svg matches the layout of its run."""

import pytest

from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from tests import sources
from tests import svg_texts


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('layout_picture')


def test_the_picture_is_that_of_the_layout(script):
  drawn = script.draw(script.example())
  assert script.PATH.read_text() == drawn, 'draw it again: python scripts/layout_picture.py'
  assert list(svg_texts.collisions(drawn)) == []
  layout = script.example()
  for actor in layout.actors:
    device = layout.learners[actor.learner].devices[layout.device_of(actor.env_ids[0])]
    assert f'actor/{actor.index} asks {device.name}' in drawn
    assert f'environments {actor.env_ids[0]} ... {actor.env_ids[-1]}' in drawn
  assert 'gpu:1 finishes unrolls for replay/1' in drawn


def test_another_run_has_another_picture(script):
  layout = layout_lib.Layout.of(registry.load('catch_vtrace')).with_devices(0, ['cpu:0'])
  drawn = script.draw(layout)
  assert list(svg_texts.collisions(drawn)) == []
  assert 'actor/1 asks cpu:0' in drawn and 'learner/1' not in drawn and 'gpu' not in drawn
