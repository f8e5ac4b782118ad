"""Rescaled actions, tables of choices, what is refused, and every place that applies them."""

import sys

import dm_env
from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import registry
from seed_acme.envs import vector
from seed_acme.testing import environment_contract
from seed_acme.testing import environments

FACTORIES = """
import numpy as np
from dm_env import specs
from seed_acme import types
from seed_acme.envs import toy
from seed_acme.envs import vector
from seed_acme.testing import environments


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
  return environments.ScriptedEnvironment(seed)


def make_anything(seed, **settings):
  assert not settings, settings
  return environments.NestedEnvironment(seed)
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
  (tmp_path / 'action_levels.py').write_text(FACTORIES)
  monkeypatch.syspath_prepend(tmp_path)
  yield
  sys.modules.pop('action_levels', None)


def config(environment_id, **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)


class Echo(dm_env.Environment):
  """Keeps the actions it receives; its action specification is given."""

  def __init__(self, action_spec):
    self._action_spec = action_spec
    self.actions = []

  def reset(self):
    return dm_env.restart(np.zeros(1, np.float32))

  def step(self, action):
    self.actions.append(action)
    return dm_env.transition(0.0, np.zeros(1, np.float32))

  def observation_spec(self):
    return dm_specs.Array((1,), np.float32)

  def action_spec(self):
    return self._action_spec


def bounded(low, high, dtype=np.float32, shape=(2,), name='force'):
  return dm_specs.BoundedArray(shape, dtype, low, high, name)


def scaled(spec, num_environments=1, **settings):
  """(the wrapped vector, the plain environments inside it), after a reset."""
  inner = [Echo(spec) for _ in range(num_environments)]
  environment = action_scaling.wrap(
    vector.VectorOfEnvironments(inner, 'echo'), action_scaling.Settings(**settings), 'echo'
  )
  environment.reset()
  return environment, inner


class TestRescaledContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(config('Pendulum-v1', max_episode_steps=20), num_environments, seed)


class TestChoicesContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(
      config('Pendulum-v1', max_episode_steps=20, action_bins=5, action_spacing='log'),
      num_environments,
      seed,
    )


def test_rescaled_numbers_by_hand():
  environment, inner = scaled(bounded([-2, 0], [2, 10]), num_environments=3)
  spec = environment.spec.action
  assert spec == dm_specs.BoundedArray((2,), np.float32, [-1, -1], [1, 1], 'force')
  environment.step(np.array([[-1, -1], [0, 0], [1, 0.5]], np.float32))
  np.testing.assert_array_equal([e.actions[0] for e in inner], [[-2, 0], [0, 5], [2, 7.5]])
  assert inner[0].actions[0].dtype == np.float32


def test_bounds_that_float32_has_not_are_not_left():
  low, high = np.array([-0.1, -0.8]), np.array([0.7, 1.1])  # as dm_control's quadruped
  for settings in ({}, {'action_bins': 2}):
    environment, (inner,) = scaled(bounded(low, high, np.float64), **settings)
    for action in environment.spec.action.minimum, environment.spec.action.maximum:
      environment.step(action[None])
    for action, bound in zip(inner.actions, (low, high)):
      assert action.dtype == np.float64
      assert (low <= action).all() and (action <= high).all()
      np.testing.assert_allclose(action, bound, atol=1e-7)


def test_actions_beyond_rounding_errors_are_refused():
  environment, (inner,) = scaled(bounded(-2, 2))
  environment.step(np.array([[1 + 5e-6, -1 - 5e-6]]))
  np.testing.assert_array_equal(inner.actions[0], [2, -2])
  for wrong in (1.001, -1.001, np.nan, np.inf):
    with pytest.raises(ValueError, match=r'expected numbers in \[-1, 1\]'):
      environment.step(np.array([[0, wrong]]))
  with pytest.raises(ValueError, match='shape'):
    environment.step(np.zeros((2, 2)))
  assert len(inner.actions) == 1


def test_without_rescaling_the_agent_meets_the_environments_bounds():
  environment, (inner,) = scaled(bounded(-2, 2), rescale_actions=False)
  np.testing.assert_array_equal(environment.spec.action.maximum, 2)
  environment.step(np.array([[2, -1.5]]))
  np.testing.assert_array_equal(inner.actions[0], [2, -1.5])


@pytest.mark.parametrize(
  'spec',
  [
    dm_specs.Array((2,), np.float32),
    bounded(-np.inf, np.inf),
    bounded([-1, -np.inf], [1, 1]),
    dm_specs.DiscreteArray(3, np.int32),
  ],
)
def test_what_has_no_bounds_or_is_not_float_stays(spec):
  environment, (inner,) = scaled(spec)
  assert environment.spec.action == spec
  action = np.full((1, *spec.shape), 2, spec.dtype)
  environment.step(action)
  np.testing.assert_array_equal(inner.actions[0], action[0])


@pytest.mark.parametrize(
  ('spacing', 'bins', 'ratio', 'table'),
  [
    ('linear', 2, 30, [-1, 1]),
    ('linear', 3, 30, [-1, 0, 1]),
    ('linear', 5, 30, [-1, -0.5, 0, 0.5, 1]),
    ('linear', 4, 30, [-1, -1 / 3, 1 / 3, 1]),
    ('log', 2, 30, [-1, 1]),
    ('log', 3, 30, [-1, 0, 1]),
    ('log', 4, 30, [-1, -1 / 30, 1 / 30, 1]),
    ('log', 5, 30, [-1, -1 / 30, 0, 1 / 30, 1]),
    ('log', 7, 100, [-1, -0.1, -0.01, 0, 0.01, 0.1, 1]),
  ],
)
def test_value_tables(spacing, bins, ratio, table):
  settings = action_scaling.Settings(action_bins=bins, action_spacing=spacing, action_ratio=ratio)
  np.testing.assert_allclose(action_scaling.value_table(settings), table, atol=1e-12)


def test_log_magnitudes_grow_by_one_factor():
  settings = action_scaling.Settings(action_bins=11, action_spacing='log')
  table = action_scaling.value_table(settings)
  positive = table[6:]
  np.testing.assert_allclose(positive[1:] / positive[:-1], 30**0.25)
  assert table[5] == 0
  np.testing.assert_array_equal(table, -table[::-1])


def test_choices_reach_the_environment_as_rescaled_values():
  environment, inner = scaled(bounded([-2, 0], [2, 10]), num_environments=2, action_bins=5)
  spec = environment.spec.action
  assert spec == dm_specs.BoundedArray((2,), np.int32, [0, 0], [4, 4], 'force')
  environment.step(np.array([[0, 4], [1, 2]], np.int32))
  np.testing.assert_array_equal([e.actions[0] for e in inner], [[-2, 10], [-1, 5]])
  for wrong in ([[0, 5], [0, 0]], [[-1, 0], [0, 0]], [[0.5, 0], [0, 0]]):
    with pytest.raises(ValueError, match=r'expected integers 0 \.\.\. 4'):
      environment.step(np.array(wrong))


def test_a_scalar_action_becomes_one_discrete_choice():
  environment, (inner,) = scaled(bounded(0, 4, shape=()), action_bins=3)
  assert environment.spec.action == dm_specs.DiscreteArray(3, np.int32, 'force')
  assert types.num_discrete_actions(environment.spec) == 3
  environment.step(np.array([1]))
  assert inner.actions == [2]


@pytest.mark.parametrize('settings', [{}, {'action_bins': 3}])
def test_other_leaves_of_the_action_pass(settings):
  nested = vector.VectorOfEnvironments([environments.NestedEnvironment(1)], 'nested')
  environment = action_scaling.wrap(nested, action_scaling.Settings(**settings), 'nested')
  assert environment.spec.action['button'] == nested.spec.action['button']
  assert environment.spec.action['force'].dtype == (np.int32 if settings else np.float32)
  environment.reset()
  environment.step({'button': np.zeros(1, np.int32), 'force': np.ones((1, 2), np.int32)})


@pytest.mark.parametrize(
  ('spec', 'fix'),
  [
    (dm_specs.DiscreteArray(3, np.int32), 'leave action_bins out'),
    (dm_specs.Array((2,), np.float32), 'give it finite bounds'),
    (bounded([-1, -np.inf], [1, 1]), 'give it finite bounds'),
  ],
)
def test_choices_need_bounded_floats(spec, fix):
  with pytest.raises(types.UserError, match=rf"'echo': action_bins \(3\) needs .*{fix}"):
    scaled(spec, action_bins=3)


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'action_bins': 1}, r'action_bins \(1\) must be an integer >= 2, or 0'),
    ({'action_bins': -3}, r'action_bins \(-3\)'),
    ({'action_bins': 2.0}, r'action_bins \(2\.0\)'),
    ({'action_bins': True}, r'action_bins \(True\)'),
    (
      {'action_bins': 3, 'action_spacing': 'lin'},
      r"action_spacing \('lin'\) must be one of linear, log",
    ),
    ({'action_spacing': 'log'}, r'action_spacing .* without action_bins: set action_bins'),
    ({'action_ratio': 9}, r'action_ratio \(9\) does nothing without action_bins'),
    ({'action_bins': 3, 'action_ratio': 9}, r'action_ratio \(9\) is for action_spacing log'),
    (
      {'action_bins': 3, 'action_spacing': 'log', 'action_ratio': 1},
      r'action_ratio \(1\) must be a number > 1',
    ),
    ({'rescale_actions': 1}, r'rescale_actions \(1\) must be True or False'),
    ({'rescale_actions': False, 'action_bins': 3}, r'rescale_actions \(False\) does nothing with'),
  ],
)
@pytest.mark.parametrize('environment_id', ['Pendulum-v1', 'toy', 'action_levels:make_wide'])
def test_wrong_settings_are_user_errors(factories, environment_id, settings, message):
  del factories
  for use in (registry.check, registry.environment_spec):
    with pytest.raises(types.UserError, match=f'{environment_id}.*{message}'):
      use(config(environment_id, **settings))


@pytest.mark.parametrize(
  ('environment_id', 'high'),
  [('Pendulum-v1', 2), ('gymnasium:Pendulum-v1', 2), ('action_levels:make_wide', 10)],
)
def test_gym_and_factories_are_rescaled_unless_told_otherwise(factories, environment_id, high):
  del factories
  for settings, maximum in ({}, 1), ({'rescale_actions': False}, high), ({'action_bins': 7}, 6):
    spec = registry.environment_spec(config(environment_id, **settings)).action
    np.testing.assert_array_equal(spec.maximum, np.full(spec.shape, maximum))


def test_a_factory_never_sees_these_settings(factories):
  del factories
  environment = registry.make(config('action_levels:make_anything', action_bins=3), 2, seed=1)
  np.testing.assert_array_equal(environment.spec.action['force'].maximum, 2)
  environment = registry.make(config('action_levels:make_vector', action_bins=3), 2, seed=1)
  np.testing.assert_array_equal(environment.spec.action.maximum, 2)


def test_a_factory_with_a_parameter_of_that_name_is_refused(factories):
  del factories
  with pytest.raises(types.UserError, match=r"parameter 'action_bins', but .* rename it"):
    registry.check(config('action_levels:make_clash'))


def test_environments_that_never_have_float_actions_do_not_take_the_settings():
  for environment_id in ('catch', 'memory_chain'):
    with pytest.raises(types.UserError, match="has no setting 'action_bins'"):
      registry.check(config(environment_id, action_bins=3))
  with pytest.raises(types.UserError, match='leave action_bins out'):
    registry.make(config('CartPole-v1', action_bins=3), 1, seed=1)


def test_a_wrapped_environment_closes_and_renders_what_is_inside():
  closed = []

  class Shows(Echo):
    def render(self):
      return np.full((2, 3, 3), 7, np.uint8)

    def close(self):
      closed.append(self)

  settings = action_scaling.Settings()
  for kind, can_render in (Shows, True), (Echo, False):
    environment = action_scaling.wrap(
      vector.VectorOfEnvironments([kind(bounded(-2, 2))], 'shows'), settings, 'shows'
    )
    assert environment.can_render == can_render
  environment = action_scaling.wrap(
    vector.VectorOfEnvironments([Shows(bounded(-2, 2))], 'shows'), settings, 'shows'
  )
  assert environment.render().max() == 7
  environment.close()
  assert len(closed) == 1
