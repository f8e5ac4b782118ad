"""The registry: ids, settings, seeds, the user's own factories, and what is imported."""

import subprocess
import sys

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import catch
from seed_acme.envs import gym_adapter
from seed_acme.envs import memory_chain
from seed_acme.envs import registry
from seed_acme.envs import toy
from seed_acme.envs import vector
from seed_acme.testing import environment_contract

FAKES = 'seed_acme.testing.environments'

USER_MODULE = """
import numpy as np

from seed_acme.envs import catch
from seed_acme.testing import environments

calls = []


def make_plain(seed, episode_length=4):
  calls.append((seed, episode_length))
  return environments.TruncatingEnvironment(seed, episode_length)


def make_strict(seed, level, *, size=3):
  return environments.ScriptedEnvironment(seed, (size,))


def make_anything(seed, **settings):
  calls.append((seed, settings))
  return environments.ScriptedEnvironment(seed)


def make_gymnasium(seed, **settings):
  import gymnasium
  return gymnasium.make('CartPole-v1', **settings)


def make_vector(seed, num_environments, rows=10):
  calls.append((seed, num_environments))
  return catch.Catch(num_environments, seed, rows=rows)


def make_catch_without_number(seed):
  return catch.Catch(2, seed)


def make_plain_with_number(seed, num_environments):
  return environments.ScriptedEnvironment(seed)


def make_number(seed):
  return 3


class GymVector:
  observation_space = action_space = None
  num_envs = 2

  def __init__(self, seed):
    pass


not_a_function = 3
"""


def config(environment_id, **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)


@pytest.fixture
def user_module(tmp_path, monkeypatch):
  (tmp_path / 'user_levels.py').write_text(USER_MODULE)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.delitem(sys.modules, 'user_levels', raising=False)
  import user_levels

  yield user_levels
  del sys.modules['user_levels']


class TestDottedFactoryContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(config(f'{FAKES}:NestedEnvironment'), num_environments, seed)


@pytest.mark.parametrize(
  ('environment_id', 'kind', 'settings', 'size'),
  [
    ('catch', catch.Catch, {}, 50),
    ('catch', catch.Catch, {'rows': 4, 'columns': 3}, 12),
    ('memory_chain', memory_chain.MemoryChain, {'num_cues': 6}, 8),
    ('toy', toy.Toy, {'size': 5}, 7),
    ('toy_memory', toy.ToyMemory, {'delay': 5}, 5),
    ('toy', action_scaling.ScaledActions, {'action_bins': 3}, 5),
    (f'{FAKES}:TruncatingEnvironment', vector.VectorOfEnvironments, {'episode_length': 3}, 1),
    (f'{FAKES}.TruncatingEnvironment', vector.VectorOfEnvironments, {}, 1),
  ],
)
def test_make_by_id(environment_id, kind, settings, size):
  environment = registry.make(config(environment_id, **settings), 3, seed=1)
  assert isinstance(environment, kind)
  assert environment.reset().observation.shape == (3, size)
  assert registry.environment_spec(config(environment_id, **settings)) == environment.spec


@pytest.mark.parametrize(
  ('environment_id', 'package'),
  [('CartPole-v1', 'gym'), ('gym:CartPole-v1', 'gym'), ('gymnasium:CartPole-v1', 'gymnasium')],
)
def test_gym_ids_choose_their_package(environment_id, package, monkeypatch):
  asked = []
  monkeypatch.setattr(
    gym_adapter, 'check', lambda package, level, settings: asked.append((package, level))
  )
  monkeypatch.setattr(registry, '_is_installed', lambda package: True)
  registry.check(config(environment_id))
  assert asked == [(package, 'CartPole-v1')]


@pytest.mark.parametrize(
  'environment_id',
  ['ALE/Pong-v5', 'phys2d/CartPole-v1', 'my_package:My/Thing-v12', 'my.package:Thing-v0'],
)
def test_ids_with_a_version_are_gyms(environment_id, monkeypatch):
  asked = []
  monkeypatch.setattr(
    gym_adapter, 'check', lambda package, level, settings: asked.append((package, level))
  )
  monkeypatch.setattr(registry, '_is_installed', lambda package: True)
  registry.check(config(environment_id))
  assert asked == [('gym', environment_id)]


def test_made_gym_environments_start_differently():
  pytest.importorskip('gymnasium')
  row = registry.make(config('gymnasium:CartPole-v1'), 4, seed=1).reset()
  assert len(np.unique(row.observation, axis=0)) == 4


def test_environment_seeds_depend_on_seed_and_index_alone():
  seeds = registry.environment_seeds(5, 200)
  assert len(set(seeds)) == 200
  assert registry.environment_seeds(5, 3) == seeds[:3]
  assert not set(registry.environment_seeds(6, 200)) & set(seeds)
  assert all(0 <= seed < 2**32 for seed in seeds)


def test_user_factory_is_called_once_for_each_environment(user_module):
  environment = registry.make(config('user_levels:make_plain', episode_length=2), 3, seed=7)
  assert user_module.calls == [(seed, 2) for seed in registry.environment_seeds(7, 3)]
  environment.reset()
  environment.step(np.zeros(3))
  row = environment.step(np.zeros(3))
  assert (row.step_type == types.LAST).all()
  assert (row.discount == 1).all()


def test_user_factory_with_keywords_gets_every_setting(user_module):
  registry.make(config('user_levels.make_anything', difficulty=3), 1, seed=7)
  assert user_module.calls[0][1] == {'difficulty': 3}


def test_user_factory_may_return_gymnasium(user_module):
  pytest.importorskip('gymnasium')
  environment = registry.make(config('user_levels:make_gymnasium', max_episode_steps=1), 2, seed=7)
  environment.reset()
  np.testing.assert_array_equal(environment.step(np.zeros(2, np.int32)).discount, 1)


def test_user_factory_may_return_a_vector(user_module):
  environment = registry.make(config('user_levels:make_vector', rows=4), 5, seed=7)
  assert user_module.calls == [(7, 5)]
  assert isinstance(environment, catch.Catch)
  assert environment.spec.observation.shape == (20,)


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('make_catch_without_number', 'returned Catch: expected a dm_env.*num_environments'),
    ('make_plain_with_number', 'returned ScriptedEnvironment: expected a core.VectorEnvironment'),
    ('make_number', 'returned int: expected a dm_env'),
    ('GymVector', 'returned GymVector: expected a dm_env'),
  ],
)
def test_what_a_user_factory_returns_is_checked(user_module, name, message):
  with pytest.raises(types.UserError, match=message):
    registry.make(config(f'user_levels:{name}'), 2, seed=1)


@pytest.mark.parametrize(
  ('environment_id', 'settings', 'message'),
  [
    ('cach', {}, r"unknown environment 'cach' \(near: catch\)"),
    ('memorychain', {}, r'near: memory_chain'),
    ('toymemory', {}, r'near: toy_memory'),
    ('toy', {'len': 3}, r"no setting 'len': expected size, length, rescale_actions, action_bins"),
    ('', {}, r"unknown environment ''"),
    ('catch:', {}, r'unknown environment'),
    ('catch', {'row': 3}, r"'catch' has no setting 'row': expected rows, columns"),
    ('catch', {'seed': 3}, r"has no setting 'seed'"),
    ('catch', {'rows': 1}, r'rows \(1\) must be'),
    ('memory_chain', {'rows': 3}, r'expected length, num_cues'),
    ('no_such_module:make', {}, r"cannot import 'no_such_module'"),
    ('user_levels:make_plan', {}, r"has no function 'make_plan' \(near: make_plain"),
    ('user_levels:not_a_function', {}, r"has no function 'not_a_function'"),
    ('user_levels:make_plain', {'length': 3}, r"no setting 'length': expected episode_length"),
    ('user_levels:make_strict', {'size': 3}, r"needs the setting 'level'"),
  ],
)
def test_wrong_ids_and_settings_are_user_errors(user_module, environment_id, settings, message):
  del user_module
  for use in (registry.check, lambda c: registry.make(c, 2, 1), registry.environment_spec):
    with pytest.raises(types.UserError, match=message):
      use(config(environment_id, **settings))


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
@pytest.mark.parametrize(
  ('level', 'settings', 'message'),
  [
    ('CartPol-v1', {}, r"'CartPol-v1' \(near: CartPole-v1"),
    ('CartPole-v9', {}, r'near: CartPole-v1'),
    ('no_such_module:CartPole-v1', {}, r'no_such_module'),
    ('CartPole-v1', {'gravity': 1}, r"has no setting 'gravity': expected .*max_episode_steps"),
    ('CartPole-v1', {'autoreset': True}, r"has no setting 'autoreset'"),
  ],
)
def test_wrong_gym_ids_and_settings_are_user_errors(package, level, settings, message):
  pytest.importorskip(package)
  with pytest.raises(types.UserError, match=message):
    registry.check(config(f'{package}:{level}', **settings))


def test_near_names_include_gym_ids():
  pytest.importorskip('gym')
  with pytest.raises(types.UserError, match='near: CartPole-v1'):
    registry.check(config('CartPole'))


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_missing_package_names_its_extra(package, monkeypatch):
  monkeypatch.setattr(registry, '_is_installed', lambda name: name != package)
  with pytest.raises(types.UserError, match=rf'.*pip install -e .\.\[{package}\]'):
    registry.make(config(f'{package}:CartPole-v1'), 1, seed=1)
  available = {known.id: known.is_available for known in registry.known_environments()}
  assert not available[f'{package}:ID']
  assert available['catch']


def test_environment_whose_own_package_is_missing(monkeypatch):
  gymnasium = pytest.importorskip('gymnasium')

  def needs_more(**kwargs):
    raise gymnasium.error.DependencyNotInstalled('install the physics')

  gymnasium.register('NeedsMore-v0', needs_more)
  try:
    registry.check(config('gymnasium:NeedsMore-v0'))
    with pytest.raises(types.UserError, match=r'not installed: install the physics'):
      registry.make(config('gymnasium:NeedsMore-v0'), 1, seed=1)
  finally:
    del gymnasium.registry['NeedsMore-v0']


def test_listing_names_settings():
  listed = {known.id: known for known in registry.known_environments()}
  assert listed['catch'].settings == ('rows', 'columns')
  assert listed['memory_chain'].settings == ('length', 'num_cues')
  assert listed['toy'].settings[:2] == ('size', 'length')
  assert listed['toy_memory'].settings[:3] == ('size', 'delay', 'num_vectors')
  assert listed['dm_control:DOMAIN/TASK'].settings[0] == 'time_limit'
  for name in (
    'toy',
    'toy_memory',
    'gym:ID',
    'gymnasium:ID',
    'dm_control:DOMAIN/TASK',
    'package.module:factory',
  ):
    assert listed[name].settings[-4:] == action_scaling.NAMES
  assert all(known.description for known in listed.values())


@pytest.mark.parametrize('number', [0, -1])
def test_number_of_environments_is_checked(number):
  with pytest.raises(types.UserError, match=rf'num_environments \({number}\)'):
    registry.make(config('catch'), number, seed=1)


def test_environment_spec_closes_what_it_built(user_module, monkeypatch):
  closed = []
  monkeypatch.setattr(catch.Catch, 'close', lambda self: closed.append(self))
  registry.environment_spec(config('user_levels:make_vector'))
  assert len(closed) == 1


def test_actor_processes_import_nothing_heavy():
  code = """
import sys
import numpy as np
import seed_acme.envs.registry as registry
from seed_acme import config
registry.known_environments()
environment = registry.make(config.EnvironmentConfig('catch'), 2, 1)
environment.reset()
environment.step(np.ones(2, np.int32))
heavy = ['tensorflow', 'reverb', 'sonnet', 'launchpad', 'gym', 'gymnasium', 'bsuite', 'pandas',
         'scipy', 'matplotlib', 'mujoco', 'dm_control', 'OpenGL']
print([name for name in heavy if name in sys.modules])
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'
