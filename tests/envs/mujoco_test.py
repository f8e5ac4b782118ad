"""MuJoCo tasks of gym and gymnasium: contract, time limit, pictures, missing packages."""

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import gym_adapter
from seed_acme.envs import mujoco_setup
from seed_acme.envs import registry
from seed_acme.testing import environment_contract

pytest.importorskip('mujoco')

TASKS = (
  'Ant',
  'HalfCheetah',
  'Hopper',
  'Humanoid',
  'HumanoidStandup',
  'InvertedDoublePendulum',
  'InvertedPendulum',
  'Pusher',
  'Reacher',
  'Swimmer',
  'Walker2d',
)
LEVELS = ('HalfCheetah-v4', 'gymnasium:HalfCheetah-v5')


def config(environment_id, **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)


class TestGymHalfCheetahContract(environment_contract.EnvironmentContract):
  environment_id = 'HalfCheetah-v4'

  def make_environment(self, num_environments, seed):
    return registry.make(config(self.environment_id, max_episode_steps=25), num_environments, seed)


class TestGymnasiumHalfCheetahContract(TestGymHalfCheetahContract):
  environment_id = 'gymnasium:HalfCheetah-v5'


class TestHopperContract(environment_contract.EnvironmentContract):
  """The contract with a robot whose episodes terminate when it falls."""

  def make_environment(self, num_environments, seed):
    return registry.make(config('gym:Hopper-v4'), num_environments, seed)


@pytest.mark.slow
@pytest.mark.parametrize('level', LEVELS)
def test_the_1000th_step_truncates(level):
  environment = registry.make(config(level), 2, seed=1)
  row = environment.reset()
  assert row.observation.dtype == np.float32  # float64 inside
  actions = np.zeros((2, 6), np.float32)
  for step in range(1, 1001):
    row = environment.step(actions)
    expected = types.LAST if step == 1000 else types.MID
    assert (row.step_type == expected).all(), step
  np.testing.assert_array_equal(row.discount, 1)
  assert (environment.step(actions).step_type == types.FIRST).all()
  environment.close()


def test_a_fall_terminates():
  environment = registry.make(config('Hopper-v4'), 1, seed=1)
  row = environment.reset()
  while row.step_type[0] != types.LAST:
    row = environment.step(np.zeros((1, 3), np.float32))
  assert row.discount[0] == 0
  environment.close()


@pytest.mark.parametrize(
  'level', [f'{task}-v4' for task in TASKS] + [f'gymnasium:{task}-v5' for task in TASKS]
)
def test_every_task_runs_and_is_rescaled(level):
  environment = registry.make(config(level), 1, seed=1)
  np.testing.assert_array_equal(environment.spec.action.minimum, -1)
  np.testing.assert_array_equal(environment.spec.action.maximum, 1)
  environment.reset()
  for _ in range(3):
    environment.step(np.ones((1, *environment.spec.action.shape), np.float32))
  environment.close()


def test_the_environment_gets_its_own_range(monkeypatch):
  """Humanoid acts within 0.4; its actuators show the value that arrived."""
  tasks, adapter = [], gym_adapter.GymEnvironment

  def adapted(task, *arguments):
    tasks.append(task)
    return adapter(task, *arguments)

  monkeypatch.setattr(gym_adapter, 'GymEnvironment', adapted)
  environment = registry.make(config('Humanoid-v4'), 1, seed=1)
  environment.reset()
  environment.step(np.linspace(-1, 1, 17, dtype=np.float32)[None])
  np.testing.assert_allclose(tasks[-1].unwrapped.data.ctrl, np.linspace(-0.4, 0.4, 17), rtol=1e-6)
  environment.close()


def test_settings_reach_the_task():
  spec = registry.environment_spec(
    config('HalfCheetah-v4', exclude_current_positions_from_observation=False)
  )
  assert spec.observation.shape == (18,)


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_a_setting_that_only_the_task_can_know_to_be_wrong(package):
  with pytest.raises(types.UserError, match=r"'HalfCheetah-v4' with .*'gravty': 1.*argument"):
    registry.make(config(f'{package}:HalfCheetah-v4', gravty=1), 1, seed=1)


@pytest.mark.parametrize('level', ['HalfCheetah-v2', 'Ant-v3', 'gymnasium:HalfCheetah-v2'])
def test_levels_of_mujoco_py_are_refused(level):
  with pytest.raises(types.UserError, match=r'needs mujoco_py.*take .*-v4'):
    registry.check(config(level))


@pytest.mark.parametrize('level', LEVELS)
def test_a_missing_mujoco_names_its_extra(level, monkeypatch):
  monkeypatch.setattr(
    mujoco_setup.importlib.util, 'find_spec', lambda name: None if name == 'mujoco' else name
  )
  with pytest.raises(types.UserError, match=r'needs mujoco: .*pip install -e .\.\[mujoco\]'):
    registry.check(config(level))


@pytest.mark.slow
@pytest.mark.parametrize('level', LEVELS)
def test_pictures(level):
  environment = registry.make(config(level, width=64, height=32), 1, seed=1, renders=True)
  environment.reset()
  try:
    picture = environment.render()
  except types.UserError as error:
    pytest.skip(str(error))
  finally:
    environment.close()
  assert (picture.shape, picture.dtype) == ((32, 64, 3), np.uint8)
  assert picture.std() > 1


def test_no_pictures_says_what_to_set(monkeypatch):
  monkeypatch.setenv('MUJOCO_GL', 'disabled')
  environment = registry.make(config('HalfCheetah-v4'), 1, seed=1, renders=True)
  environment.reset()
  with pytest.raises(types.UserError, match=r'cannot show its screen with MUJOCO_GL=disabled.*egl'):
    environment.render()
  environment.close()


def test_without_a_choice_egl_draws(monkeypatch):
  monkeypatch.setenv('MUJOCO_GL', 'osmesa')
  mujoco_setup.choose_backend()
  assert mujoco_setup.os.environ['MUJOCO_GL'] == 'osmesa'
  monkeypatch.delenv('MUJOCO_GL')
  mujoco_setup.choose_backend()
  assert mujoco_setup.os.environ['MUJOCO_GL'] == 'egl'
