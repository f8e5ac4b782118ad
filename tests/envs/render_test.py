"""Environments that render, and error messages for those that cannot."""

import contextlib
import sys

import dm_env
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import catch
from seed_acme.envs import gym_adapter
from seed_acme.envs import memory_chain
from seed_acme.envs import registry
from seed_acme.envs import vector
from tests import scripted_environments

FACTORIES = """
import numpy as np
from seed_acme.envs import catch
from tests import scripted_environments

closed = []


class Shows(scripted_environments.ScriptedEnvironment):

  def render(self):
    return np.full((4, 6, 3), self._row, np.uint8)


class Blind:

  def __init__(self, num_environments):
    self.num_environments, self.spec = num_environments, catch.Catch(1, 0).spec

  def close(self):
    closed.append(self)


def make_vector(seed, num_environments):
  return Blind(num_environments)
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
  (tmp_path / 'picture_levels.py').write_text(FACTORIES)
  monkeypatch.syspath_prepend(tmp_path)
  import picture_levels

  yield picture_levels
  del sys.modules['picture_levels']


def config(environment_id, **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)


def cells(picture):
  """Returns a pixel of each cell `[rows, columns, 3]`, after checking that the others are equal."""
  small = picture[::16, ::16]
  np.testing.assert_array_equal(picture, np.kron(small, np.ones((16, 16, 1), np.uint8)))
  return small


def test_catch_shows_ball_and_paddle_of_environment_0():
  environment = registry.make(config('catch', rows=4, columns=3), 5, seed=1, renders=True)
  assert isinstance(environment, catch.Catch)
  row = environment.reset()
  for _ in range(4):
    picture = environment.render()
    assert picture.shape == (64, 48, 3)
    assert picture.dtype == np.uint8
    lit = cells(picture).any(axis=2)
    np.testing.assert_array_equal(lit.reshape(-1), row.observation[0] == 1)
    if row.step_type[0] != types.LAST:
      ball, paddle = (cells(picture)[line][lit[line]][0] for line in (np.argmax(lit.any(1)), 3))
      assert (ball != paddle).any()
    row = environment.step(np.zeros(5, int))


def test_memory_chain_shows_the_observation_of_environment_0():
  environment = registry.make(config('memory_chain', length=3), 5, seed=1, renders=True)
  assert isinstance(environment, memory_chain.MemoryChain)
  row = environment.reset()
  for _ in range(5):
    picture = environment.render()
    assert picture.shape == (16, 64, 3)
    grays = cells(picture)[0]
    assert (grays == grays[:, :1]).all()
    np.testing.assert_allclose(grays[:, 0] / 255, row.observation[0], atol=1 / 255)
    row = environment.step(np.zeros(5, int))


def test_bit_flip_shows_the_bits_of_environment_0_above_the_goals():
  environment = registry.make(config('bit_flip', num_bits=4), 5, seed=1, renders=True)
  row = environment.reset()
  for _ in range(5):
    picture = environment.render()
    assert picture.shape == (32, 64, 3)
    for line, name in enumerate(('achieved_goal', 'desired_goal')):
      lit = cells(picture)[line, :, 0] == 255
      np.testing.assert_array_equal(lit, row.observation[name][0] == 1)
    row = environment.step(np.zeros(5, int))


def test_a_factorys_environment_shows_environment_0(factories):
  del factories
  environment = registry.make(config('picture_levels:Shows'), 2, seed=1, renders=True)
  environment.reset()
  environment.step(np.zeros(2, int))
  np.testing.assert_array_equal(environment.render(), np.ones((4, 6, 3), np.uint8))


@pytest.mark.parametrize(
  'environment_id',
  ['tests.scripted_environments:ScriptedEnvironment', 'picture_levels:make_vector'],
)
def test_an_environment_without_render_is_refused_only_if_it_has_to(factories, environment_id):
  registry.make(config(environment_id), 2, seed=1).close()
  factories.closed.clear()
  with pytest.raises(types.UserError, match=rf"'{environment_id}' cannot show .*render\(\) ->"):
    registry.make(config(environment_id), 2, seed=1, renders=True)
  assert len(factories.closed) == ('vector' in environment_id), 'what was built must be closed'


def test_a_refusal_is_what_is_raised_though_close_raises(factories, monkeypatch):
  def close(self):
    raise RuntimeError('the window is gone')

  name = 'picture_levels:make_vector'
  monkeypatch.setattr(factories.Blind, 'close', close)
  with pytest.raises(types.UserError, match=f'{name}.* cannot show'):
    registry.make(config(name), 2, seed=1, renders=True)


def test_the_vector_complains_if_environment_0_cannot():
  environment = vector.VectorOfEnvironments([scripted_environments.ScriptedEnvironment()], 'plain')
  assert not environment.can_render
  with pytest.raises(types.UserError, match=r'plain cannot show its screen: give'):
    environment.render()


@pytest.mark.parametrize(
  ('screen', 'message'),
  [
    (np.zeros((4, 6, 3)), r'render\(\): expected uint8 .* got float64 of shape \(4, 6, 3\)'),
    (np.zeros((4, 6), np.uint8), r'got uint8 of shape \(4, 6\)'),
    (np.zeros((4, 6, 4), np.uint8), r'got uint8 of shape \(4, 6, 4\)'),
    (None, r'got NoneType'),
  ],
)
def test_wrong_screens_are_refused(screen, message):
  class Shows(scripted_environments.ScriptedEnvironment):
    def render(self):
      return screen

  with pytest.raises(types.UserError, match=message):
    vector.VectorOfEnvironments([Shows()], 'shows').render()


def gym_like(render):
  """Returns an object with gym's interface and this render method."""
  gymnasium = pytest.importorskip('gymnasium')

  class Level:
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

  Level.render = render
  return gym_adapter.GymEnvironment(Level(), 1, 'level')


def test_gym_screens_old_and_new():
  picture = np.zeros((2, 3, 3), np.uint8)
  np.testing.assert_array_equal(gym_like(lambda self: picture).render(), picture)
  old = gym_like(lambda self, mode='human': picture + 1 if mode == 'rgb_array' else None)
  np.testing.assert_array_equal(old.render(), picture + 1)


def test_gym_environments_that_cannot_show_say_why():
  class DependencyNotInstalled(Exception):
    """The same name as gym's and gymnasium's exception."""

  def fails(self, error):
    raise error

  for render, message in (
    (lambda self: None, r"level .* returned NoneType: build it with render_mode='rgb_array'"),
    (lambda self: fails(self, DependencyNotInstalled('install a display')), 'install a display'),
    (lambda self: fails(self, NotImplementedError('not yet')), 'not yet'),
  ):
    with pytest.raises(types.UserError, match=message):
      gym_like(render).render()
  with pytest.raises(ZeroDivisionError):  # a bug is not hidden
    gym_like(lambda self: fails(self, ZeroDivisionError())).render()


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_gym_environments_are_built_to_render(package):
  if package == 'gym':
    pytest.importorskip('gym_notices.notices').notices.clear()
  module = pytest.importorskip(package)

  class Level(module.Env):
    observation_space = module.spaces.Box(-1, 1, (2,), np.float32)
    action_space = module.spaces.Discrete(2)
    metadata = {'render_modes': ['rgb_array'], 'render_fps': 10}

    def __init__(self, render_mode=None):
      self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
      super().reset(seed=seed)
      return np.zeros(2, np.float32), {}

    def step(self, action):
      return np.zeros(2, np.float32), 0.0, False, False, {}

    def render(self):
      return np.full((2, 3, 3), 9, np.uint8) if self.render_mode == 'rgb_array' else None

  class Blind(Level):
    def __init__(self):
      super().__init__()

  module.register('Shows-v0', Level)
  module.register('Blind-v0', Blind)
  registered = module.envs.registry
  try:
    environment = registry.make(config(f'{package}:Shows-v0'), 2, seed=1, renders=True)
    environment.reset()
    np.testing.assert_array_equal(environment.render(), np.full((2, 3, 3), 9, np.uint8))
    with pytest.raises(types.UserError, match=r"pictures of 'Blind-v0': .*'render_mode'"):
      registry.make(config(f'{package}:Blind-v0'), 2, seed=1, renders=True)
    plain = registry.make(config(f'{package}:Shows-v0'), 2, seed=1)
    plain.reset()
    with pytest.raises(types.UserError, match="build it with render_mode='rgb_array'"):
      plain.render()
  finally:
    del registered['Shows-v0'], registered['Blind-v0']


def test_dm_env_environments_need_no_render():
  assert not hasattr(dm_env.Environment, 'render')  # otherwise `can_render` would be meaningless


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_cartpole_is_drawn(package):
  pytest.importorskip(package)
  pytest.importorskip('pygame')
  environment = registry.make(config(f'{package}:CartPole-v1'), 2, seed=1, renders=True)
  with contextlib.closing(environment):
    environment.reset()
    before = environment.render()
    for _ in range(4):
      environment.step(np.zeros(2, np.int32))
    after = environment.render()
  assert before.shape == after.shape == (400, 600, 3) and before.dtype == np.uint8
  assert (before != after).any()


def test_cartpole_without_pygame_names_the_extra(monkeypatch):
  pytest.importorskip('gymnasium')
  monkeypatch.setitem(sys.modules, 'pygame', None)
  environment = registry.make(config('gymnasium:CartPole-v1'), 1, seed=1, renders=True)
  environment.reset()
  with pytest.raises(types.UserError, match=r"it needs pygame: .*'\.\[video\]'"):
    environment.render()
