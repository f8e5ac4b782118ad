"""A user's own factories, and refused ids and settings."""

import functools
import sys

import dm_env
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import catch
from seed_acme.envs import registry
from seed_acme.envs import suite
from tests import scripted_environments
from tests.envs import configs

USER_MODULE = """
import numpy as np

from seed_acme.envs import catch
from seed_acme.envs import suite
from tests import scripted_environments

calls = []


def make_plain(seed, episode_length=4):
  calls.append((seed, episode_length))
  return scripted_environments.TruncatingEnvironment(seed, episode_length)


def make_strict(seed, level, *, size=3):
  return scripted_environments.ScriptedEnvironment(seed, (size,))


def make_anything(seed, **settings):
  calls.append((seed, settings))
  return scripted_environments.ScriptedEnvironment(seed)


def make_gymnasium(seed, **settings):
  import gymnasium
  return gymnasium.make('CartPole-v1', **settings)


def make_two(seed):
  if len(calls) == 2:
    raise OSError('no more licences')
  calls.append(scripted_environments.ScriptedEnvironment(seed))
  return calls[-1]


def make_unequal(seed):
  if len(calls) == 2:
    calls.append(scripted_environments.TruncatingEnvironment(seed))
  else:
    calls.append(scripted_environments.ScriptedEnvironment(seed))
  return calls[-1]


def make_vector(seed, num_environments, rows=10):
  calls.append((seed, num_environments))
  return catch.Catch(num_environments, seed, rows=rows)


def make_too_few(seed, num_environments):
  return catch.Catch(num_environments - 1, seed)


class PassesOn:
  # A gym environment that passes on what is inside, as wrappers of dm_control do.

  def __init__(self, seed):
    import gymnasium
    self._level = gymnasium.make('CartPole-v1')
    self._env = scripted_environments.ScriptedEnvironment(seed)
    self.observation_space = self._level.observation_space
    self.action_space = self._level.action_space

  def __getattr__(self, name):
    return getattr(self._env, name)

  def reset(self, seed=None):
    return self._level.reset(seed=seed)

  def step(self, action):
    return self._level.step(action)


class LikeRobosuite:
  # A gym environment with names of dm_env that mean something else.

  def __init__(self, seed):
    import gymnasium
    self._level = gymnasium.make('CartPole-v1')
    self.observation_space = self._level.observation_space
    self.action_space = self._level.action_space
    self.reset, self.step = self._level.reset, self._level.step

  def observation_spec(self):
    return {'state': np.zeros(4)}

  @property
  def action_spec(self):
    return np.full(2, -1.0), np.full(2, 1.0)


def make_catch_without_number(seed):
  return catch.Catch(2, seed)


def make_plain_with_number(seed, num_environments):
  return scripted_environments.ScriptedEnvironment(seed)


def make_number(seed):
  return 3


def make_vector_number_first(num_environments, rows=10, seed=None):
  calls.append((seed, num_environments))
  return catch.Catch(num_environments, seed, rows=rows)


class GymVector:
  observation_space = action_space = None
  num_envs = 2

  def __init__(self, seed):
    pass


not_a_function = 3
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
  (tmp_path / 'user_levels.py').write_text(USER_MODULE)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.delitem(sys.modules, 'user_levels', raising=False)
  import user_levels

  yield user_levels
  del sys.modules['user_levels']


def test_user_factory_is_called_once_for_each_environment(user_module):
  environment = registry.make(configs.of('user_levels:make_plain', episode_length=2), 3, seed=7)
  assert user_module.calls == [(seed, 2) for seed in suite.environment_seeds(7, 3)]
  environment.reset()
  environment.step(np.zeros(3))
  row = environment.step(np.zeros(3))
  assert (row.step_type == types.LAST).all()
  assert (row.discount == 1).all()


def test_user_factory_with_keywords_gets_every_setting(user_module):
  registry.make(configs.of('user_levels.make_anything', difficulty=3), 1, seed=7)
  assert user_module.calls[0][1] == {'difficulty': 3}


def test_user_factory_may_return_gymnasium(user_module):
  pytest.importorskip('gymnasium')
  environment = registry.make(
    configs.of('user_levels:make_gymnasium', max_episode_steps=1), 2, seed=7
  )
  environment.reset()
  np.testing.assert_array_equal(environment.step(np.zeros(2, np.int32)).discount, 1)


@pytest.mark.parametrize('name', ['PassesOn', 'LikeRobosuite'])
def test_a_gym_environment_may_have_names_of_dm_env(user_module, name):
  """Those of one inside, or others."""
  pytest.importorskip('gymnasium')
  environment = registry.make(configs.of(f'user_levels:{name}'), 2, seed=7)
  assert environment.spec.observation.shape == (4,)
  assert environment.reset().observation.shape == (2, 4)
  assert (environment.step(np.zeros(2, np.int32)).step_type == types.MID).all()


def test_user_factory_may_return_a_vector(user_module):
  environment = registry.make(configs.of('user_levels:make_vector', rows=4), 5, seed=7)
  assert user_module.calls == [(7, 5)]
  assert isinstance(environment, catch.Catch)
  assert environment.spec.observation.shape == (20,)


def test_a_vector_gets_the_seed_by_its_name(user_module):
  registry.make(configs.of('user_levels:make_vector_number_first', rows=4), 5, seed=7)
  assert user_module.calls == [(7, 5)]


_received = []  # what the factories below have got


class _Meta(type(dm_env.Environment)):
  """Hides what its classes take, as the metaclass of Sonnet's modules does."""

  def __call__(cls, *args, **kwargs):
    return super().__call__(*args, **kwargs)


class _Robot(scripted_environments.ScriptedEnvironment):
  def __init__(self, length=5):
    super().__init__()


class _Hidden(scripted_environments.ScriptedEnvironment, metaclass=_Meta):
  def __init__(self, length=5, seed=None):
    super().__init__()
    _received.append((seed, length))


class _HiddenRobot(_Robot, metaclass=_Meta):
  pass


def _returns(*got):
  _received.append(got)
  return scripted_environments.ScriptedEnvironment()


_SEED = suite.environment_seeds(7, 1)[0]


@pytest.fixture
def make(user_module, monkeypatch):
  """Returns a function that makes an environment by a user's factory."""
  _received.clear()

  def make(factory, **settings):
    monkeypatch.setattr(user_module, 'tried', factory, raising=False)
    registry.make(configs.of('user_levels:tried', **settings), 1, seed=7)

  return make


@pytest.mark.parametrize(
  ('factory', 'settings', 'got'),
  [
    (lambda seed, length=5: _returns(seed, length), {}, (_SEED, 5)),
    (lambda max_steps=200, seed=None: _returns(max_steps, seed), {}, (200, _SEED)),
    (lambda max_steps, seed: _returns(max_steps, seed), {'max_steps': 9}, (9, _SEED)),
    (lambda *, length=5, seed: _returns(seed, length), {'length': 8}, (_SEED, 8)),
    (lambda seed, /, length=5: _returns(seed, length), {'length': 8}, (_SEED, 8)),
    (lambda number, length=5: _returns(number, length), {'length': 8}, (_SEED, 8)),
    (lambda rng_seed=0, length=5: _returns(rng_seed, length), {}, (_SEED, 5)),
    (lambda _=0, length=5: _returns(_, length), {}, (_SEED, 5)),
    (lambda _, **settings: _returns(_, settings), {'seed': 3}, (_SEED, {'seed': 3})),
    (
      lambda *given, **settings: _returns(given, settings),
      {'length': 8},
      ((_SEED,), {'length': 8}),
    ),
    (functools.partial(lambda length, seed: _returns(length, seed), 8), {}, (8, _SEED)),
    (functools.partial(lambda length, seed: _returns(length, seed), length=8), {}, (8, _SEED)),
    (_Hidden, {'length': 8}, (_SEED, 8)),
    (functools.partial(_Hidden, 8), {}, (_SEED, 8)),
  ],
)
def test_the_seed_goes_to_the_parameter_that_is_meant_for_it(make, factory, settings, got):
  make(factory, **settings)
  assert _received == [got]


@pytest.mark.parametrize(
  ('factory', 'settings', 'takes'),
  [
    (_Robot, {}, 'length'),
    (_HiddenRobot, {}, 'length'),
    (functools.partial(_HiddenRobot, length=8), {}, 'length'),
    (lambda render_mode=None: _returns(), {}, 'render_mode'),
    (lambda length=5, random_seed=0: _returns(), {}, 'length, random_seed'),
    (lambda length: _returns(), {'length': 8}, 'length'),
    (lambda num_environments, rows=10: _returns(), {}, 'num_environments, rows'),
    (lambda **settings: _returns(), {}, 'settings'),
    (lambda *, number: _returns(), {}, 'number'),
    (lambda: _returns(), {}, 'nothing'),
    (dict, {}, None),
  ],
)
def test_a_setting_never_gets_the_seed(make, factory, settings, takes):
  takes = 'no signature found' if takes is None else rf'it takes {takes}\)'
  message = rf'does not take a seed \({takes}.*: write it tried\(seed, \*\*settings\)'
  with pytest.raises(types.UserError, match=message):
    make(factory, **settings)


@pytest.mark.parametrize(
  ('name', 'error', 'message', 'num_made'),
  [
    ('make_two', OSError, 'no more licences', 2),
    ('make_unequal', types.UserError, 'environment 2 of .*: specification: .*observation', 3),
  ],
)
def test_those_made_are_closed_if_others_fail(user_module, name, error, message, num_made):
  with pytest.raises(error, match=message):
    registry.make(configs.of(f'user_levels:{name}'), 3, seed=0)
  assert [environment.is_closed for environment in user_module.calls] == [True] * num_made


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('make_catch_without_number', 'returned Catch: expected a dm_env.*num_environments'),
    ('make_too_few', 'returned 1 environments instead of 2, its argument num_environments'),
    ('make_plain_with_number', 'returned ScriptedEnvironment: expected a core.VectorEnvironment'),
    ('make_number', 'returned int: expected a dm_env'),
    ('GymVector', 'returned GymVector: expected a dm_env'),
  ],
)
def test_what_a_user_factory_returns_is_checked(user_module, name, message):
  with pytest.raises(types.UserError, match=message):
    registry.make(configs.of(f'user_levels:{name}'), 2, seed=1)


@pytest.mark.parametrize(
  ('environment_id', 'settings', 'message'),
  [
    ('cach', {}, r"unknown environment 'cach' \(near: catch\)"),
    ('memorychain', {}, r'near: memory_chain'),
    ('toymemory', {}, r'near: toy_memory'),
    ('toy', {'len': 3}, r"no setting 'len': expected size, length, rescale_actions, action_bins"),
    ('', {}, r"unknown environment ''"),
    ('pong', {}, r"'pong' \(the Atari game is atari:Pong here\)"),
    ('ALE/Pong-v5', {}, r"'ALE/Pong-v5' \(the Atari game is atari:Pong here\)"),
    ('PongNoFrameskip-v4', {}, r'atari:Pong here'),
    ('gymnasium:ALE/MontezumaRevenge-ram-v5', {}, r'atari:MontezumaRevenge here'),
    ('catch:', {}, r'unknown environment'),
    ('catch', {'row': 3}, r"'catch' has no setting 'row': expected rows, columns"),
    ('catch', {'seed': 3}, r"has no setting 'seed'"),
    ('catch', {'rows': 1}, r'rows \(1\) must be'),
    ('memory_chain', {'rows': 3}, r'expected length, num_cues'),
    ('no_such_module:make', {}, r"cannot import 'no_such_module': .* set PYTHONPATH"),
    ('user_levels:make_plan', {}, r"has no function 'make_plan' \(near: make_plain"),
    ('user_levels:not_a_function', {}, r"has no function 'not_a_function'"),
    ('user_levels:make_plain', {'length': 3}, r"no setting 'length': expected episode_length"),
    ('user_levels:make_strict', {'size': 3}, r"needs the setting 'level'"),
    ('user_levels:make_anything', {'seed': 3}, r"has no setting 'seed'"),
    ('__main__:make', {}, r'cannot import .*another __main__: put the code into a module'),
  ],
)
def test_wrong_ids_and_settings_are_user_errors(user_module, environment_id, settings, message):
  del user_module
  for use in (registry.check, lambda c: registry.make(c, 2, 1), registry.environment_spec):
    with pytest.raises(types.UserError, match=message):
      use(configs.of(environment_id, **settings))


def test_environment_spec_closes_what_it_built(user_module, monkeypatch):
  closed = []
  monkeypatch.setattr(catch.Catch, 'close', lambda self: closed.append(self))
  registry.environment_spec(configs.of('user_levels:make_vector'))
  assert len(closed) == 1
