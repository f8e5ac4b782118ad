"""Runs of the previous stack (TensorFlow 2.8.4, Reverb 0.7.2): their checkpoints can be resumed.

The commit before the move made them, with small networks and with replay memories:

  seed-acme train --config=catch_vtrace --config.network.core=lstm ...
  seed-acme train --config=catch_r2d2 --config.agent.replay_capacity=200 ...
  seed-acme train --config=pendulum_sac --config.agent.replay_capacity=500 ...

`outputs.npz` of each holds what `play.play` returned there.
"""

import json
import pathlib

import numpy as np
import pytest

from seed_acme.programs.building import build
from seed_acme.programs.trial import specification
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests import built
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


@pytest.mark.parametrize('name', _RUNS)
def test_its_configuration_says_what_it_said(name):
  path = _FOLDER / name / 'config.json'
  config = saved_config.load(path)
  _assert_holds(saved_config.to_json(config), json.loads(path.read_text(encoding='utf-8')), '')
  saved_config.compare_for_resume(saved_config.load(path), config)


def _assert_holds(now, before, where):
  """Compares records; fields that the older version did not have are ignored."""
  if not isinstance(before, dict):
    assert now == before, where
    return
  for key, value in before.items():
    _assert_holds(now[key], value, f'{where}.{key}')


@pytest.mark.slow
@pytest.mark.parametrize('name', _RUNS)
def test_a_learner_takes_over_all_of_its_checkpoint(name):
  run = run_directory.RunDirectory(_FOLDER / name)
  config, saved = saved_config.load(run.config), checkpoint.load_newest(run.checkpoints)
  learner = built.make_learner(
    config, build.make_acting(config.agent, config.network, specification.saved(run))
  )
  learner.restore(saved.arrays, saved.counts.updates)
  restored = learner.save()
  assert restored.keys() == saved.arrays.keys()
  for key, array in saved.arrays.items():
    np.testing.assert_array_equal(restored[key], array, err_msg=key)
  status = json.loads(run.status.read_text(encoding='utf-8'))
  assert (saved.counts.updates, saved.counts.agent_steps) == (
    status['updates'],
    status['agent_steps'],
  )
  assert learner.num_updates == saved.counts.updates and saved.resumptions == 0
