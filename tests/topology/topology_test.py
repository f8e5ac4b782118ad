"""Each run has the topology, or the refusal, that `record.py` has recorded."""

import pytest

from tests.topology import cases
from tests.topology import recording
from tests.topology import today

_RECORDED = recording.load()


def test_every_combination_is_recorded():
  assert list(_RECORDED) == list(cases.CASES)


@pytest.mark.parametrize('name', cases.QUICK)
def test_it_is_put_together_as_it_was(name):
  _check(name)


@pytest.mark.slow
@pytest.mark.parametrize('name', cases.ON_VERTEX)
def test_it_is_put_together_as_it_was_on_vertex_ai(name):
  _check(name)


def _check(name):
  case = cases.CASES[name]
  assert recording.of(case, today.describe(case)) == _RECORDED[name]
