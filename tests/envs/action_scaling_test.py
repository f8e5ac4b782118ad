"""Rescaled actions, tables of choices, refused values, and every place that applies them."""

import dm_env
from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import registry
from seed_acme.envs import vector
from seed_acme.testing import environment_contract
from tests import scripted_environments
from tests.envs import configs


class Echo(dm_env.Environment):
  """An environment that records the actions it receives; its action specification is given."""

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
  """Returns (the wrapped vector, the plain environments inside it), after a reset."""
  inner = [Echo(spec) for _ in range(num_environments)]
  environment = action_scaling.wrap(
    vector.VectorOfEnvironments(inner, 'echo'), action_scaling.Settings(**settings), 'echo'
  )
  environment.reset()
  return environment, inner


class TestRescaledContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(configs.of('Pendulum-v1', max_episode_steps=20), num_environments, seed)


class TestChoicesContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(
      configs.of('Pendulum-v1', max_episode_steps=20, action_bins=5, action_spacing='log'),
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
  unbounded = dm_specs.Array(spec.shape, spec.dtype)
  assert environment.spec.action == (unbounded if spec.dtype == np.float32 else spec)
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


@pytest.mark.parametrize('shape', [(), (1,), (1, 1)])
def test_an_action_of_one_number_becomes_one_discrete_choice(shape):
  environment, inner = scaled(bounded(0, 4, shape=shape), num_environments=2, action_bins=3)
  assert environment.spec.action == dm_specs.DiscreteArray(3, np.int32, 'force')
  assert types.num_discrete_actions(environment.spec) == 3
  environment.step(np.array([1, 2]))
  assert [e.actions[0].shape for e in inner] == [shape, shape]
  assert [e.actions[0].item() for e in inner] == [2, 4]


@pytest.mark.parametrize('shape, advice', [((1,), 'action_bins 5'), ((2,), 'choose an agent')])
def test_an_agent_of_one_choice_says_how_to_make_it_so(shape, advice):
  environment, _ = scaled(bounded(0, 4, shape=shape))
  with pytest.raises(types.UserError, match=f'float32 from -1 to 1; .*: .*{advice}'):
    types.num_discrete_actions(environment.spec)


@pytest.mark.parametrize('settings', [{}, {'action_bins': 3}])
def test_other_leaves_of_the_action_pass(settings):
  nested = vector.VectorOfEnvironments([scripted_environments.NestedEnvironment(1)], 'nested')
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


def test_a_refusal_is_what_is_raised_though_the_environment_cannot_be_closed(capsys):
  class Unclosable(Echo):
    def close(self):
      raise RuntimeError('the window is gone')

  made = vector.VectorOfEnvironments([Unclosable(dm_specs.Array((2,), np.float32))], 'echo')
  with pytest.raises(types.UserError, match='finite bounds'):
    action_scaling.wrap(made, action_scaling.Settings(action_bins=3), 'echo')
  assert 'environment echo: close() raised RuntimeError' in capsys.readouterr().err


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
