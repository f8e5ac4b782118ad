"""The environments' specification is kept in the run folder, and compared with later ones."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry as configs
from seed_acme.envs import choices
from seed_acme.programs.trial import door
from seed_acme.programs.trial import specification
from seed_acme.storage import run_directory

_SPEC = types.EnvironmentSpec(
  {
    'position': specs.BoundedArray((2,), np.float32, -np.inf, [1.0, np.inf], 'position'),
    'board': specs.Array((3, 3), np.uint8),
  },
  specs.DiscreteArray(4),
  frames_per_step=4,
)


@pytest.fixture
def run(tmp_path):
  return run_directory.create(tmp_path / 'run')


def _with_position(**changes):
  values = {
    'shape': (2,), 'dtype': np.float32, 'minimum': -np.inf, 'maximum': [1.0, np.inf], **changes
  }  # fmt: skip
  position = specs.BoundedArray(**values)
  return dataclasses.replace(_SPEC, observation={**_SPEC.observation, 'position': position})


def test_what_was_saved_comes_back(run):
  assert specification.saved(run) is None
  specification.save(run, _SPEC)
  assert specification.saved(run) == _SPEC


def test_a_run_that_has_it_makes_no_environment(run, monkeypatch):
  monkeypatch.setattr(door, 'environment_spec', None)
  specification.save(run, _SPEC)
  assert specification.of_run(configs.load('catch_vtrace'), run) == _SPEC


def test_a_run_from_before_asks_a_process_of_its_own(run):
  spec = specification.of_run(configs.load('catch_vtrace'), run)
  assert spec.action.num_values == 3


@pytest.mark.parametrize('text', ['', '{', '[]', 'null', '{"observation": 3}'])
def test_a_file_that_is_none_is_named(run, text):
  run.specification.write_text(text)
  with pytest.raises(types.UserError, match='environment.json cannot be read.*delete it'):
    specification.saved(run)


@pytest.mark.parametrize(
  'now, named',
  [
    (_with_position(shape=(3,), maximum=1.0), r'observation/position: float32\[2\].*float32\[3\]'),
    (_with_position(dtype=np.float64), r'observation/position: float32.* -> float64'),
    (_with_position(maximum=[2.0, np.inf]), 'observation/position.*1.0.*2.0'),
    (dataclasses.replace(_SPEC, action=specs.DiscreteArray(5)), 'action.*4 values.*5 values'),
    (dataclasses.replace(_SPEC, frames_per_step=2), 'frames_per_step: 4 -> 2'),
    (
      dataclasses.replace(_SPEC, observation=_SPEC.observation['board']),
      'observation/board, observation/position -> action, observation',
    ),
  ],
)
def test_a_resumed_run_refuses_another_environment_by_its_field(run, now, named):
  specification.save(run, _SPEC)
  with pytest.raises(types.UserError, match=f'then -> now.*{named}'):
    specification.check_resume(run, now)


def test_names_of_arrays_may_change(run):
  specification.check_resume(run, _SPEC)  # a run of an earlier version
  specification.save(run, _SPEC)
  specification.check_resume(run, _with_position(name='another'))


def test_a_resumed_run_goes_on_with_the_specification_that_its_network_was_built_for(run):
  assert specification.check_resume(run, _SPEC) == _SPEC
  bounds = specs.BoundedArray((2,), np.int32, 0, [2, 3])
  before = dataclasses.replace(_SPEC, observation=bounds)
  specification.save(run, before)
  now = dataclasses.replace(_SPEC, observation=choices.ChoicesArray([3, 4]))
  assert choices.num_values(specification.check_resume(run, now).observation) is None
