"""Runs of the stack before (TensorFlow 2.8.4, Reverb 0.7.2): their checkpoints are read and go on.

They were made by the commit before the move, with small networks and their replay memories:

  seed-acme train --config=catch_vtrace --config.network.core=lstm ...
  seed-acme train --config=catch_r2d2 --config.agent.replay_capacity=200 ...
  seed-acme train --config=pendulum_sac --config.agent.replay_capacity=500 ...

`outputs.npz` of each is what `play.play` returned there.
"""

import pathlib

import numpy as np
import pytest

from tests.earlier_runs import play

_FOLDER = pathlib.Path(__file__).parent
_RUNS = ('on_policy', 'r2d2', 'sac')


@pytest.mark.parametrize('name', _RUNS)
def test_its_network_answers_as_it_did(name):
  found = play.play(_FOLDER / name)
  with np.load(_FOLDER / name / 'outputs.npz') as expected:
    assert found.keys() == set(expected)
    for output, values in found.items():
      assert np.ptp(values) > 0.1
      np.testing.assert_allclose(values, expected[output], atol=1e-5)
