"""`load_policy`: single observations, batches, and observations of another shape or type."""

import dataclasses
import types as python_types

import dm_env
import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import choices
from seed_acme.envs import registry as environments
from seed_acme.programs.tools.reports import loaded_policy
from tests import built


def _configured(name, **network_changes):
  config = registry.load(name)
  return dataclasses.replace(config, network=dataclasses.replace(config.network, **network_changes))


@pytest.fixture(scope='module', name='of_catch')
def _of_catch():
  """Returns the acting side of a small network for Catch, with initial weights."""
  return built.make_acting(_configured('catch_vtrace', mlp_sizes=(4,)))


@pytest.fixture(scope='module', name='of_memory')
def _of_memory():
  """Returns the configuration of a recurrent network, a policy, and a recorder of its calls."""
  config = _configured(
    'memory_chain_vtrace',
    core_size=8,
    mlp_sizes=(8,),
    previous_action_input=True,
    previous_reward_input=True,
  )
  acting = built.make_acting(config)
  recorder = _Recorded(acting.policy)
  acting = dataclasses.replace(acting, policies=(recorder,))
  return config, loaded_policy.LoadedPolicy(acting, 0, True, seed=1), recorder


@pytest.fixture(name='with_memory')
def _with_memory(of_memory):
  return of_memory[:2]


@pytest.fixture(name='recorded')
def _recorded(of_memory):
  recorder = of_memory[2]
  recorder.calls = []
  return of_memory[1], recorder


def _observations(spec, steps, rows):
  return (
    np.random.default_rng(0)
    .normal(size=(steps, rows, *spec.observation.shape))
    .astype(spec.observation.dtype)
  )


class _Recorded:
  """A recorder of the states and inputs that the policy is called with."""

  def __init__(self, policy):
    self._policy = policy
    self.calls = []

  def __getattr__(self, name):
    return getattr(self._policy, name)

  def __call__(self, inputs, state, exploration):
    output, new_state = self._policy(inputs, state, exploration)
    self.calls.append((inputs, new_state, output.action))
    return output, new_state


def test_each_row_of_a_batch_acts_as_it_would_alone(recorded):
  """Episodes begin at different steps, with separate rewards and recurrent states."""
  policy, recorder = recorded
  steps, rows = 7, 3
  observations = _observations(policy.spec, steps, rows)
  rewards = np.random.default_rng(1).normal(size=(steps, rows)).astype(np.float32)
  begins = np.zeros((steps, rows), bool)
  begins[2, 1] = begins[4, 1] = begins[4, 2] = True
  policy.reset(rows)
  batched = [policy(observations[t], rewards[t], is_first=begins[t]) for t in range(steps)]
  together, recorder.calls = recorder.calls, []
  assert all(action.shape == (rows,) for action in batched)
  for row in range(rows):
    policy.reset()
    recorder.calls = []
    for t in range(steps):
      if begins[t, row]:
        policy.reset()
      action = policy(observations[t, row], rewards[t, row])
      assert np.shape(action) == () and action == batched[t][row]
    for alone, all_rows in zip(recorder.calls, together):
      for one, of_all in zip(tree.flatten(alone), tree.flatten(all_rows), strict=True):
        np.testing.assert_allclose(one[0], of_all[row], atol=1e-6)


def test_drawn_actions_differ_over_a_batch(of_catch):
  policy = loaded_policy.LoadedPolicy(of_catch, 0, False, seed=1)
  policy.reset(batch_size=50)
  assert set(policy(np.zeros((50, 50), np.float32)).tolist()) == {0, 1, 2}


def test_an_environment_is_played_in_batches(with_memory):
  config, policy = with_memory
  environment = environments.make(config.environment, 5, seed=1)
  policy.reset(batch_size=5)
  timestep = environment.reset()
  for _ in range(40):
    # The row after a LAST row is FIRST.
    actions = policy(
      timestep.observation,
      timestep.reward,
      timestep.discount,
      is_first=timestep.step_type == types.FIRST,
    )
    timestep = environment.step(actions)
  environment.close()


@pytest.mark.parametrize(
  'batch_size, observation, said',
  [
    (None, np.zeros(49), 'observation has shape (49,); this policy takes (50,) float32'),
    (
      None,
      np.zeros((8, 50)),
      (
        'observation has shape (8, 50); this policy takes (50,) float32. '
        'For a batch of 8 call reset(8) first'
      ),
    ),
    (
      8,
      np.zeros(50),
      (
        'observation has shape (50,); this policy takes (8, 50) float32. '
        'It is a single one: call reset() first'
      ),
    ),
    (
      8,
      np.zeros((4, 50)),
      (
        'observation has shape (4, 50); this policy takes (8, 50) float32. '
        'For a batch of 4 call reset(4) first'
      ),
    ),
    (
      None,
      {'ball': np.zeros(50)},
      "observation is {'ball': (50,) float64}; this policy takes (50,) float32",
    ),
    (None, ['x'] * 50, 'observation is (50,) <U1; this policy takes (50,) float32'),
  ],
)
def test_an_observation_of_another_shape_is_refused_in_words(
  of_catch, batch_size, observation, said
):
  policy = loaded_policy.LoadedPolicy(of_catch, 0, True, seed=1)
  policy.reset(batch_size)
  with pytest.raises(types.UserError) as caught:
    policy(observation)
  assert str(caught.value) == said
  # integers are accepted
  assert policy([0] * 50 if batch_size is None else [[0] * 50] * 8) is not None


_THREE = dm_env.specs.DiscreteArray(3)


def _policy_of(observation_spec, action_spec=_THREE):
  """Returns a policy with these observations, and the inputs that reach its network."""
  spec = types.EnvironmentSpec(observation_spec, action_spec)
  seen = []

  class Policy:
    num_uniforms = 1
    refresh = staticmethod(lambda: None)
    initial_state = staticmethod(lambda: ())
    example_exploration = staticmethod(
      lambda: types.Exploration(
        np.zeros((1, 1), np.float32),
        np.zeros(1, np.float32),
        np.zeros(1, bool),
        np.zeros(1, np.int64),
      )
    )

    def __call__(self, inputs, state, exploration):
      seen.append(inputs)
      action = np.zeros((len(inputs.reward), *action_spec.shape), action_spec.dtype)
      return python_types.SimpleNamespace(action=action), state

  acting = python_types.SimpleNamespace(spec=spec, policy=Policy())
  return loaded_policy.LoadedPolicy(acting, 0, True, 0), seen


@pytest.fixture(name='with_camera')
def _with_camera():
  """Returns what `_policy_of` does, for nested observations."""
  return _policy_of(
    {
      'camera': dm_env.specs.Array((2, 2, 1), np.uint8),
      'speed': dm_env.specs.Array((3,), np.float32),
    }
  )


_CAMERA, _SPEED = np.full((2, 2, 1), 7), np.zeros(3)


def test_numbers_that_fit_are_taken_as_the_declared_type(with_camera):
  policy, seen = with_camera
  policy({'camera': _CAMERA, 'speed': _SPEED})  # int64 and float64
  observation = seen[-1].observation
  assert observation['camera'].dtype == np.uint8 and observation['camera'].shape == (1, 2, 2, 1)
  assert observation['camera'].min() == 7 and observation['speed'].dtype == np.float32


@pytest.mark.parametrize(
  'given, said',
  [
    (
      {'observation': {'camera': _CAMERA / 255, 'speed': _SPEED}},
      r"observation\['camera'\] is of type float64, with values from 0.02.* to .*takes uint8",
    ),
    (
      {'observation': {'camera': _CAMERA * 40, 'speed': _SPEED}},
      r"observation\['camera'\] is of type int64, with values from 280 to 280; .* uint8",
    ),
    (
      {'observation': {'camera': _CAMERA}},
      (
        r"the observation is \{'camera': \(2, 2, 1\) int64\}; this policy takes "
        r"\{'camera': \(2, 2, 1\) uint8, 'speed': \(3,\) float32\}"
      ),
    ),
    *(
      ({'observation': {'camera': camera, 'speed': _SPEED}}, said)
      for camera, said in (
        (_CAMERA.astype(np.uint16) * 40, r'is of type uint16, with values from 280 .* takes uint8'),
        (_CAMERA.astype(np.int8) - 8, r'is of type int8, with values from -1 .* takes uint8'),
      )
    ),
    (
      {'observation': {'camera': _CAMERA, 'speed': [0, 1e300, 0]}},
      r"observation\['speed'\] is 1e\+300 at \[1\]; this policy takes finite numbers in float32",
    ),
    (
      {'observation': {'camera': _CAMERA, 'speed': [0, 0, np.nan]}},
      r"observation\['speed'\] is nan at \[2\]; this policy takes finite numbers in float32",
    ),
    *(
      ({'observation': {'camera': _CAMERA, 'speed': _SPEED}, name: np.nan}, f'{name} is nan; this')
      for name in ('reward', 'discount')
    ),
    ({'observation': _CAMERA}, r'the observation is \(2, 2, 1\) int64; this policy takes \{'),
    (
      {'observation': {'camera': _CAMERA, 'speed': _SPEED}, 'reward': np.zeros(2)},
      r'reward has shape \(2,\) and type float64; this policy takes a number$',
    ),
  ],
)
def test_another_form_or_type_is_refused_in_words(with_camera, given, said):
  with pytest.raises(types.UserError, match=said):
    with_camera[0](**given)


@pytest.mark.parametrize('batch_size', [0, -1, 2.0, True])
def test_a_batch_has_a_whole_number_of_rows(with_camera, batch_size):
  with pytest.raises(types.UserError, match='batch_size'):
    with_camera[0].reset(batch_size)


def test_rewards_of_a_batch_are_one_or_one_each(with_camera):
  policy, seen = with_camera
  policy.reset(2)
  observation = {'camera': np.stack([_CAMERA] * 2), 'speed': np.stack([_SPEED] * 2)}
  policy(observation)
  policy(observation, reward=3, discount=[1, 0])
  assert seen[-1].reward.tolist() == [3, 3] and seen[-1].discount.tolist() == [1, 0]
  with pytest.raises(types.UserError, match=r'a number or of shape \(2,\)'):
    policy(observation, reward=[1, 2, 3])


@pytest.mark.parametrize(
  'spec, batch_size, right, wrong, said',
  [
    (dm_env.specs.DiscreteArray(3), None, 2, 10, 'observation is 10; .* 0 ... 2. .*count from 0'),
    (dm_env.specs.DiscreteArray(3), None, 0, -5, 'observation is -5; .* 0 ... 2. .*count from 0'),
    (
      dm_env.specs.DiscreteArray(3),
      2,
      [0, 2],
      [0, 3],
      r'observation is 3 at \[1\]; .* 0 ... 2. .*count from 0',
    ),
    (
      choices.ChoicesArray([2, 5], np.uint8),
      2,
      [[1, 4], [0, 0]],
      [[1, 4], [2, 0]],
      r'observation is 2 at \[1, 0\]; .* 0 ... 1. .*count from 0',
    ),
    (
      {'place': choices.ChoicesArray([2, 5])},
      None,
      {'place': [1, 4]},
      {'place': [1, 5]},
      r"observation\['place'\] is 5 at \[1\]; .* 0 ... 4. .*count from 0",
    ),
  ],
)
def test_a_choice_outside_its_range_is_refused(spec, batch_size, right, wrong, said):
  policy, seen = _policy_of(spec)
  policy.reset(batch_size)
  with pytest.raises(types.UserError, match=said):
    policy(wrong)
  assert not seen
  policy(right)
  assert len(seen) == 1


@pytest.mark.parametrize('batch_size', [None, 4])
def test_an_action_that_the_caller_changes_is_not_the_previous_one(batch_size):
  array = dm_env.specs.Array((3,), np.float32)
  policy, seen = _policy_of(array, dm_env.specs.BoundedArray((2,), np.float32, -1, 1))
  policy.reset(batch_size)
  observation = np.zeros((3,) if batch_size is None else (batch_size, 3))
  action = policy(observation)
  action += 50
  policy(observation)
  np.testing.assert_array_equal(seen[-1].previous_action, 0)
