"""The settings of actions: environments that accept them, and valid values."""

import sys

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import registry
from tests.envs import configs

FACTORIES = """
import numpy as np
from dm_env import specs
from seed_acme import types
from seed_acme.envs import toy
from seed_acme.envs import vector
from tests import scripted_environments


def make_wide(seed, size=2):
  import gymnasium

  class Wide(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-100, 100, (size,), np.float32)
    action_space = gymnasium.spaces.Box(0, 10, (size,), np.float32)

    def reset(self, seed=None, options=None):
      return np.zeros(size, np.float32), {}

    def step(self, action):
      return action, 0.0, False, False, {}

  return Wide()


def make_vector(seed, num_environments):
  return toy.Toy(num_environments, seed)


def make_clash(seed, action_bins=3):
  return scripted_environments.ScriptedEnvironment(seed)


def make_anything(seed, **settings):
  assert not settings, settings
  return scripted_environments.NestedEnvironment(seed)
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
  (tmp_path / 'action_levels.py').write_text(FACTORIES)
  monkeypatch.syspath_prepend(tmp_path)
  yield
  sys.modules.pop('action_levels', None)


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'action_bins': 1}, r'action_bins \(1\) must be an integer >= 2, or 0'),
    ({'action_bins': -3}, r'action_bins \(-3\)'),
    ({'action_bins': 2.0}, r'action_bins \(2\.0\)'),
    ({'action_bins': True}, r'action_bins \(True\)'),
    (
      {'action_bins': 3, 'action_spacing': 'lin'},
      r"action_spacing \('lin'\) must be one of 'linear', 'log'",
    ),
    ({'action_spacing': 'log'}, r'action_spacing .* without action_bins: set action_bins'),
    ({'action_ratio': 9}, r'action_ratio \(9\) does nothing without action_bins'),
    ({'action_bins': 3, 'action_ratio': 9}, r'action_ratio \(9\) is for action_spacing log'),
    (
      {'action_bins': 3, 'action_spacing': 'log', 'action_ratio': 1},
      r'action_ratio \(1\) must be > 1',
    ),
    ({'rescale_actions': 1}, r'rescale_actions \(1\) is of type int; expected bool'),
    ({'rescale_actions': False, 'action_bins': 3}, r'rescale_actions \(False\) does nothing with'),
  ],
)
@pytest.mark.parametrize('environment_id', ['Pendulum-v1', 'toy', 'action_levels:make_wide'])
def test_wrong_settings_are_user_errors(factories, environment_id, settings, message):
  del factories
  for use in (registry.check, registry.environment_spec):
    with pytest.raises(types.UserError, match=f'{environment_id}.*{message}'):
      use(configs.of(environment_id, **settings))


@pytest.mark.parametrize(
  ('environment_id', 'high'),
  [('Pendulum-v1', 2), ('gymnasium:Pendulum-v1', 2), ('action_levels:make_wide', 10)],
)
def test_gym_and_factories_are_rescaled_unless_told_otherwise(factories, environment_id, high):
  del factories
  for settings, maximum in ({}, 1), ({'rescale_actions': False}, high), ({'action_bins': 7}, 6):
    spec = registry.environment_spec(configs.of(environment_id, **settings)).action
    np.testing.assert_array_equal(spec.maximum, np.full(spec.shape, maximum))


def test_a_factory_never_sees_these_settings(factories):
  del factories
  environment = registry.make(configs.of('action_levels:make_anything', action_bins=3), 2, seed=1)
  np.testing.assert_array_equal(environment.spec.action['force'].maximum, 2)
  environment = registry.make(configs.of('action_levels:make_vector', action_bins=3), 2, seed=1)
  np.testing.assert_array_equal(environment.spec.action.maximum, 2)


def test_a_factory_with_a_parameter_of_that_name_is_refused(factories):
  del factories
  with pytest.raises(types.UserError, match=r"parameter 'action_bins', but .* rename it"):
    registry.check(configs.of('action_levels:make_clash'))


def test_environments_that_never_have_float_actions_do_not_take_the_settings():
  for environment_id in ('catch', 'memory_chain'):
    with pytest.raises(types.UserError, match="has no setting 'action_bins'"):
      registry.check(configs.of(environment_id, action_bins=3))
  with pytest.raises(types.UserError, match='leave action_bins out'):
    registry.make(configs.of('CartPole-v1', action_bins=3), 1, seed=1)
