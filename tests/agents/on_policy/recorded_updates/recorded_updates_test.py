"""Losses, gradients, metrics and updates equal those that `record.py` has recorded."""

import pytest

from tests.agents.on_policy.recorded_updates import cases
from tests.agents.on_policy.recorded_updates import recording
from tests.agents.on_policy.recorded_updates import updates

_RECORDED = recording.load()


# Cases that are learnt in graphs, which takes twice as long. Together they have every part of an
# update which tracing could change: passes over transitions and over unrolls, targets of each epoch
# and of each minibatch, statistics, learnt weights, choices by rank, recurrent cores, and each kind
# of action.
_TRACED = [
  'vtrace, nstep',
  'ppo, passes over unrolls',
  'awr, advantages of each epoch',
  'awr, top half',
  'vmpo, over transitions',
  'vtrace, every penalty learnt',
  'ppo, penalties added',
  'ppo, PopArt with forgetting',
  'ppo, PopArt and clipped value',
  'vmpo, PopArt on an LSTM',
  'vtrace, LSTM with overlap',
  'ppo, GRU and a value of its own',
  'ppo, nested actions',
]


def test_every_combination_is_recorded():
  assert list(_RECORDED) == list(cases.CASES)


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in cases.CASES if name not in _TRACED])
def test_it_learns_as_it_did(name, eagerly):
  assert not recording.differences(_RECORDED[name], updates.numbers(cases.CASES[name]))


@pytest.mark.slow
@pytest.mark.parametrize('name', _TRACED)
def test_it_learns_as_it_did_in_the_graphs_of_a_run(name):
  assert not recording.differences(_RECORDED[name], updates.numbers(cases.CASES[name]))
