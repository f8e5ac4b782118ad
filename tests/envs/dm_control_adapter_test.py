"""dm_control: contract, time limit, settings, pictures, and a machine that cannot render."""

import subprocess
import sys

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import dm_control_adapter
from seed_acme.envs import registry
from seed_acme.envs import suite as suite_lib
from seed_acme.testing import environment_contract

pytest.importorskip('mujoco')


@pytest.fixture(scope='module', autouse=True)
def suite():
  """Returns the suite imported as the adapter does it; skips the test if dm_control is missing."""
  if not suite_lib.is_installed('dm_control'):
    pytest.skip('dm_control is not installed')
  return dm_control_adapter._suite()


def config(level, **settings):
  return config_lib.EnvironmentConfig(f'dm_control:{level}', settings)


@pytest.mark.slow
class TestCartpoleContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(config('cartpole/swingup', time_limit=0.25), num_environments, seed)


def test_observations_keep_their_names_and_become_float32():
  environment = registry.make(config('cheetah/run'), 2, seed=1)
  assert list(environment.spec.observation) == ['position', 'velocity']
  observation = environment.reset().observation
  assert observation['position'].shape == (2, 8)
  assert observation['velocity'].dtype == np.float32
  environment.close()


def test_scalar_observations_and_bounds_that_float32_has_not(monkeypatch):
  tasks, adapter = [], dm_control_adapter.DmControl

  def adapted(task, *arguments):
    tasks.append(task)
    return adapter(task, *arguments)

  monkeypatch.setattr(dm_control_adapter, 'DmControl', adapted)
  environment = registry.make(config('quadruped/walk'), 2, seed=1)
  assert environment.reset().observation['torso_upright'].shape == (2,)
  for sign in (-1, 1):
    environment.step(np.full((2, 12), sign, np.float32))
    control = tasks[-1].physics.control()
    np.testing.assert_allclose(control[:3], [sign, 1.1 if sign > 0 else -1, 0.8 * sign], rtol=1e-6)
    assert (np.abs(control) <= [1, 1.1, 0.8] * 4).all()
  environment.close()


def test_the_1000th_step_truncates():
  environment = registry.make(config('cheetah/run'), 1, seed=1)
  environment.reset()
  for step in range(1, 1001):
    row = environment.step(np.zeros((1, 6), np.float32))
    assert row.step_type[0] == (types.LAST if step == 1000 else types.MID), step
  assert row.discount[0] == 1
  assert environment.step(np.zeros((1, 6), np.float32)).step_type[0] == types.FIRST
  environment.close()


@pytest.mark.parametrize(('at_goal', 'discount'), [(True, 0), (False, 1)])
def test_the_end_of_a_task_in_the_last_step_is_its_end(suite, at_goal, discount):
  inside = suite.load('lqr', 'lqr_2_1', task_kwargs={'random': 1, 'time_limit': 0.09})
  screen = {'screen_height': 1, 'screen_width': 1, 'camera': 0}
  environment = dm_control_adapter.DmControl(inside, 'lqr', screen)
  environment.reset()
  rows = []
  while not rows or not rows[-1].last():
    if at_goal and len(rows) == 2:
      with inside.physics.reset_context():
        inside.physics.set_state(np.zeros(4))
    rows.append(environment.step(np.zeros(1)))
  assert len(rows) == 3
  assert rows[-1].discount == discount
  environment.close()


def test_settings_reach_the_suite():
  spec = registry.environment_spec(config('cheetah/run', flat_observation=True))
  assert spec.observation['observations'].shape == (17,)
  environment = registry.make(
    config('cartpole/two_poles', time_limit=0.5, control_timestep=0.1), 1, seed=1
  )
  environment.reset()
  step_types = [environment.step(np.zeros((1, 1))).step_type[0] for _ in range(6)]
  assert step_types == [types.MID] * 4 + [types.LAST, types.FIRST]
  environment.close()


def test_unbounded_actions_are_not_rescaled():
  """The suite uses 1e10 for unbounded actions."""
  spec = registry.environment_spec(config('lqr/lqr_2_1'))
  assert not hasattr(spec.action, 'minimum')
  with pytest.raises(types.UserError, match=r'action_bins \(3\) needs bounded'):
    registry.environment_spec(config('lqr/lqr_2_1', action_bins=3))


@pytest.mark.parametrize(
  ('level', 'settings', 'message'),
  [
    ('cheetah/runn', {}, r'\(near: dm_control:cheetah/run\).*tasks of cheetah: run'),
    ('cheeta/run', {}, r'near: dm_control:cheetah/run.*domains: acrobot, '),
    ('cheetah', {}, r'expected dm_control:domain/task; tasks of cheetah: run'),
    ('', {}, r'unknown environment .dm_control:.: expected dm_control:domain/task'),
    ('cheetah/run', {'limit': 3}, r"no setting 'limit': expected time_limit, .*action_bin"),
    ('cheetah/run', {'random': 3}, r"no setting 'random'"),
    ('cheetah/run', {'screen_width': 0}, r'screen_width \(0\) must be an integer >= 1'),
    ('cheetah/run', {'n_sub_steps': -1}, r'n_sub_steps \(-1\) must be an integer >= 1'),
    ('cheetah/run', {'time_limit': 'long'}, r"time_limit \('long'\) must be a number > 0"),
    ('cheetah/run', {'time_limit': -1}, r'time_limit \(-1\) must be a number > 0'),
    ('cheetah/run', {'control_timestep': 0}, r'control_timestep \(0\) must be a number > 0'),
  ],
)
def test_wrong_ids_and_settings_are_user_errors(level, settings, message):
  for use in (registry.check, registry.environment_spec):
    with pytest.raises(types.UserError, match=message):
      use(config(level, **settings))


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'control_timestep': 0.0003}, r'smaller than physics timestep'),
    ({'n_sub_steps': 2, 'control_timestep': 0.1}, r'Both n_sub_steps and control_timestep'),
  ],
)
def test_what_the_suite_refuses_is_a_user_error(settings, message):
  with pytest.raises(types.UserError, match=rf"'dm_control:cheetah/run' with .*{message}"):
    registry.make(config('cheetah/run', **settings), 1, seed=1)


def test_an_id_without_its_package_is_near():
  with pytest.raises(types.UserError, match='near: dm_control:cheetah/run'):
    registry.check(config_lib.EnvironmentConfig('cheetah/run'))


def test_missing_package_names_its_extra(monkeypatch):
  monkeypatch.setattr(suite_lib, 'is_installed', lambda name: name != 'dm_control')
  with pytest.raises(types.UserError, match=r'.*pip install -e .\.\[dm-control\]'):
    registry.check(config('cheetah/run'))
  listed = {known.id: known for known in registry.known_environments()}
  assert not listed['dm_control:DOMAIN/TASK'].is_available


def make_with_pictures(**settings):
  try:
    return registry.make(config('cheetah/run', **settings), 1, seed=1, renders=True)
  except types.UserError as error:
    if 'MUJOCO_GL' in str(error):
      pytest.skip(str(error))
    raise


@pytest.mark.slow
def test_pictures():
  environment = make_with_pictures(screen_height=32, screen_width=48)
  environment.reset()
  first = environment.render()
  assert (first.shape, first.dtype) == ((32, 48, 3), np.uint8)
  for _ in range(30):
    environment.step(np.ones((1, 6), np.float32))
  assert (environment.render() != first).any()
  environment.close()


@pytest.mark.parametrize(
  ('settings', 'message'),
  [({'camera': 77}, 'camera_id=77 is invalid'), ({'screen_width': 5000}, 'width 5000')],
)
def test_pictures_that_cannot_be_are_refused_before_an_episode(settings, message):
  with pytest.raises(types.UserError, match=message) as caught:
    make_with_pictures(**settings)
  assert '\n' not in str(caught.value)


def run(code, **environment):
  lines = [
    'import sys',
    'from seed_acme import config, types',
    'from seed_acme.envs import registry',
    "cheetah = config.EnvironmentConfig('dm_control:cheetah/run')",
    code,
  ]
  return subprocess.run(
    [sys.executable, '-c', '\n'.join(lines)],
    capture_output=True,
    text=True,
    check=False,
    env={'PATH': '/usr/bin:/bin', **environment},
  )


@pytest.mark.slow
def test_without_anything_to_draw_with_states_still_come():
  code = """
sys.modules['OpenGL'] = None  # its import fails, as without the system's libraries
registry.make(cheetah, 1, 1).reset()
print('states')
try:
  registry.make(cheetah, 1, 1, renders=True)
except types.UserError as error:
  print(error)
"""
  done = run(code)
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith(
    'states\ndm_control:cheetah/run cannot show its screen with '
    'MUJOCO_GL=disabled: No OpenGL rendering backend'
  ), done.stdout


def test_a_backend_that_does_not_exist_is_named():
  done = run(
    """
try:
  registry.check(cheetah)
except types.UserError as error:
  print(error)
""",
    MUJOCO_GL='nonsense',
  )
  assert done.stdout.startswith('dm_control cannot be imported with MUJOCO_GL=nonsense'), done
