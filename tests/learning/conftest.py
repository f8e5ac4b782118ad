"""Fixtures of the learning tests."""

import pytest

from seed_acme.learning import training_loop
from tests.learning import loop_run


@pytest.fixture
def clock(monkeypatch):
  clock = loop_run.Clock()
  monkeypatch.setattr(training_loop, 'time', clock)
  yield clock
  for run in loop_run.Run.opened:
    run.loop.close()
  loop_run.Run.opened.clear()
