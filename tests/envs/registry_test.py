"""The registry: ids, settings, seeds, and imports."""

import re
import subprocess
import sys

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import catch
from seed_acme.envs import gym_levels
from seed_acme.envs import memory_chain
from seed_acme.envs import registry
from seed_acme.envs import suite
from seed_acme.envs import toy
from seed_acme.envs import vector
from seed_acme.testing import environment_contract
from tests import sources
from tests.envs import configs

FAKES = 'tests.scripted_environments'


class TestDottedFactoryContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(configs.of(f'{FAKES}:NestedEnvironment'), num_environments, seed)


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
  environment = registry.make(configs.of(environment_id, **settings), 3, seed=1)
  assert isinstance(environment, kind)
  assert environment.reset().observation.shape == (3, size)
  assert registry.environment_spec(configs.of(environment_id, **settings)) == environment.spec


@pytest.mark.parametrize(
  ('environment_id', 'package'),
  [('CartPole-v1', 'gym'), ('gym:CartPole-v1', 'gym'), ('gymnasium:CartPole-v1', 'gymnasium')],
)
def test_gym_ids_choose_their_package(environment_id, package, monkeypatch):
  asked = []
  monkeypatch.setattr(
    gym_levels, 'check', lambda package, level, settings: asked.append((package, level))
  )
  monkeypatch.setattr(suite, 'is_installed', lambda package: True)
  registry.check(configs.of(environment_id))
  assert asked == [(package, 'CartPole-v1')]


@pytest.mark.parametrize(
  'environment_id',
  ['ALE/Pong-v5', 'phys2d/CartPole-v1', 'my_package:My/Thing-v12', 'my.package:Thing-v0'],
)
def test_ids_with_a_version_are_gyms(environment_id, monkeypatch):
  asked = []
  monkeypatch.setattr(
    gym_levels, 'check', lambda package, level, settings: asked.append((package, level))
  )
  monkeypatch.setattr(suite, 'is_installed', lambda package: True)
  registry.check(configs.of(environment_id))
  assert asked == [('gym', environment_id)]


def test_made_gym_environments_start_differently():
  pytest.importorskip('gymnasium')
  row = registry.make(configs.of('gymnasium:CartPole-v1'), 4, seed=1).reset()
  assert len(np.unique(row.observation, axis=0)) == 4


def test_environment_seeds_depend_on_seed_and_index_alone():
  seeds = suite.environment_seeds(5, 200)
  assert len(set(seeds)) == 200
  assert suite.environment_seeds(5, 3) == seeds[:3]
  assert not set(suite.environment_seeds(6, 200)) & set(seeds)
  assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
@pytest.mark.parametrize(
  ('level', 'settings', 'message'),
  [
    ('CartPol-v1', {}, r"'CartPol-v1' \(near: CartPole-v1"),
    ('CartPole-v9', {}, r'near: CartPole-v1'),
    ('no_such_module:CartPole-v1', {}, r"No module named 'no_such_module'\. .* set PYTHONPATH"),
    ('__main__:CartPole-v1', {}, r'another __main__: put the code into a module'),
    ('CartPole-v1', {'gravity': 1}, r"has no setting 'gravity': expected .*max_episode_steps"),
    ('CartPole-v1', {'autoreset': True}, r'autoreset \(True\) cannot be set, because it would'),
    ('tests.envs.gym_levels:Any-v0', {'autoreset': True}, r'autoreset \(True\) cannot be set'),
    ('tests.envs.gym_levels:Any-v0', {'id': 3}, r'id \(3\) cannot be set, because the name of'),
  ],
)
def test_wrong_gym_ids_and_settings_are_user_errors(package, level, settings, message):
  pytest.importorskip(package)
  with pytest.raises(types.UserError, match=message):
    registry.check(configs.of(f'{package}:{level}', **settings))


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_settings_may_have_the_names_of_our_own_arguments(package):
  pytest.importorskip(package)
  settings = {'level': 2, 'package': 'box', 'function': 'sin'}
  config = configs.of(f'{package}:tests.envs.gym_levels:Any-v0', **settings)
  registry.check(config)
  environment = registry.make(config, 1, seed=1)
  assert environment.reset().observation == 2
  environment.close()


def test_settings_that_a_vector_of_gymnasium_gets_from_us_are_refused():
  pytest.importorskip('gymnasium', minversion='1.1')
  for name, value in (('num_envs', 5), ('vector_kwargs', 'x')):
    settings = {'vectorization_mode': 'sync', name: value}
    with pytest.raises(types.UserError, match=rf'{name} \({value!r}\) cannot be set'):
      registry.check(configs.of('gymnasium:tests.envs.gym_levels:Any-v0', **settings))


def test_a_level_that_is_only_a_vector_works_as_one():
  pytest.importorskip('gymnasium', minversion='1.1')
  name = 'gymnasium:tests.envs.gym_levels:OnlyVector-v0'
  for settings in ({}, {'vectorization_mode': 'sync'}):
    with pytest.raises(types.UserError, match='exists only as a vector: set vectorization_mode to'):
      registry.check(configs.of(name, **settings))
  config = configs.of(name, vectorization_mode='vector_entry_point')
  registry.check(config)
  environment = registry.make(config, 3, seed=1)
  assert environment.reset().observation.shape[0] == 3
  environment.close()


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_an_error_in_the_module_of_a_gym_id_is_named_with_its_place(package, tmp_path, monkeypatch):
  pytest.importorskip(package)
  (tmp_path / 'broken_levels.py').write_text('\n1 / 0')
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(types.UserError, match=r'ZeroDivisionError: .*broken_levels.py:2\)'):
    registry.check(configs.of(f'{package}:broken_levels:Mine-v0'))


@pytest.mark.parametrize(
  ('environment_id', 'others'),
  [
    ('HalfCheetah-v5', ['gymnasium:HalfCheetah-v5']),
    ('gym:Ant-v5', ['gymnasium:Ant-v5']),
    ('ALE/Pong-v5', ['atari:Pong', 'gymnasium:ale_py:ALE/Pong-v5']),
    ('gymnasium:ALE/Breakout-v5', ['atari:Breakout', 'gymnasium:ale_py:ALE/Breakout-v5']),
  ],
)
def test_ids_of_another_suite_name_the_spelling_that_works(environment_id, others, monkeypatch):
  for package in ('gym', 'gymnasium', 'ale_py', 'mujoco'):
    pytest.importorskip(package)
  with monkeypatch.context() as before:
    # As in a process without ale_py, which registers its games on import.
    registered = gym_levels.import_package('gymnasium').envs.registry
    for name in [name for name in registered if name.startswith('ALE/')]:
      before.delitem(registered, name)
    with pytest.raises(types.UserError) as raised:
      registry.check(configs.of(environment_id))
  assert re.findall(r'\b(?:gymnasium|atari):[\w:/-]+', str(raised.value)) == others
  assert 'proper package' not in str(raised.value)  # gym's message about its own ids
  for other in others:
    registry.check(configs.of(other))


def test_an_id_that_a_module_registers_with_gymnasium_alone_is_spelled_so():
  for package in ('gym', 'gymnasium'):
    pytest.importorskip(package)
  level = 'tests.envs.gym_levels:Only-v0'
  with pytest.raises(types.UserError, match=f'gymnasium does; write gymnasium:{level}$'):
    registry.check(configs.of(level))
  registry.check(configs.of(f'gymnasium:{level}'))


def test_without_gym_an_id_is_spelled_as_gymnasium_has_it(monkeypatch):
  pytest.importorskip('gymnasium')
  is_installed = suite.is_installed
  monkeypatch.setattr(suite, 'is_installed', lambda name: name != 'gym' and is_installed(name))
  with pytest.raises(types.MissingPackage, match='needs gym: .*write gymnasium:CartPole-v1'):
    registry.check(configs.of('CartPole-v1'))


def test_near_names_include_gym_ids():
  pytest.importorskip('gym')
  with pytest.raises(types.UserError, match='near: CartPole-v1'):
    registry.check(configs.of('CartPole'))


@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_missing_package_names_its_extra(package, monkeypatch):
  monkeypatch.setattr(suite, 'is_installed', lambda name: name != package)
  with pytest.raises(types.UserError, match=rf'.*pip install -e .\.\[{package}\]'):
    registry.make(configs.of(f'{package}:CartPole-v1'), 1, seed=1)
  available = {known.id: known.is_available for known in registry.known_environments()}
  assert not available[f'{package}:ID']
  assert available['catch']


@pytest.mark.parametrize('package', ['Box2D', 'pygame'])
@pytest.mark.parametrize('level', ['LunarLander-v2', 'gymnasium:LunarLander-v3'])
def test_a_package_of_box2d_that_is_missing_is_in_its_extra(level, package, monkeypatch):
  """What gym and gymnasium advise cannot be installed."""
  extra = sources.setup().EXTRAS_REQUIRE['box2d']
  assert any(line.startswith(package.lower()) for line in extra)
  pytest.importorskip('gym')
  for name in [name for name in sys.modules if '.envs.box2d' in name]:
    monkeypatch.delitem(sys.modules, name)
  monkeypatch.setitem(sys.modules, package, None)
  with pytest.raises(
    types.UserError, match=r'needs Box2D and pygame: .*pip install -e .\.\[box2d\]'
  ):
    registry.make(configs.of(level), 1, seed=1)


@pytest.mark.parametrize('level', ['LunarLander-v2', 'gymnasium:BipedalWalker-v3'])
def test_box2d_plays(level):
  pytest.importorskip('Box2D')
  environments = registry.make(configs.of(level), 2, seed=1)
  assert np.isfinite(environments.reset().observation).all()
  environments.close()


def test_environment_whose_own_package_is_missing(monkeypatch):
  gymnasium = pytest.importorskip('gymnasium')

  def needs_more(**kwargs):
    raise gymnasium.error.DependencyNotInstalled('install the physics')

  gymnasium.register('NeedsMore-v0', needs_more)
  try:
    registry.check(configs.of('gymnasium:NeedsMore-v0'))
    with pytest.raises(types.UserError, match=r'not installed: install the physics'):
      registry.make(configs.of('gymnasium:NeedsMore-v0'), 1, seed=1)
  finally:
    del gymnasium.registry['NeedsMore-v0']


@pytest.mark.parametrize('number', [0, -1])
def test_number_of_environments_is_checked(number):
  with pytest.raises(types.UserError, match=rf'num_environments \({number}\)'):
    registry.make(configs.of('catch'), number, seed=1)


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
