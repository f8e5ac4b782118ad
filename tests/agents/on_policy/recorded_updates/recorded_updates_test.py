"""Losses, gradients, metrics and updates equal those that `record.py` has recorded."""

import pytest
import tensorflow as tf

from tests.agents.on_policy.recorded_updates import cases
from tests.agents.on_policy.recorded_updates import recording
from tests.agents.on_policy.recorded_updates import updates

_RECORDED = recording.load()


@pytest.fixture
def eagerly():
  """Turns off tracing, which would take most of the time; the results are the same."""
  tf.config.run_functions_eagerly(True)
  yield
  tf.config.run_functions_eagerly(False)


def test_every_combination_is_recorded():
  assert list(_RECORDED) == list(cases.CASES)


@pytest.mark.parametrize('name', cases.CASES)
def test_it_learns_as_it_did(name, eagerly):
  assert not recording.differences(_RECORDED[name], updates.numbers(cases.CASES[name]))


@pytest.mark.slow
@pytest.mark.parametrize('name', cases.CASES)
def test_it_learns_as_it_did_in_the_graphs_of_a_run(name):
  assert not recording.differences(_RECORDED[name], updates.numbers(cases.CASES[name]))
