"""Goal environments of gym and gymnasium through the adapter, which passes the three keys on."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import gym_adapter
from seed_acme.envs import vector


class Reach:
  """A point that has to reach a goal, in the form of gymnasium-robotics' GoalEnv.

  Its `compute_reward` takes batches, as Fetch's does.
  """

  def __init__(self, spaces):
    box = spaces.Box(-2, 2, (2,), np.float64)
    self.observation_space = spaces.Dict(
      {
        'observation': spaces.Box(-2, 2, (4,), np.float64),
        'achieved_goal': box,
        'desired_goal': box,
      }
    )
    self.action_space = spaces.Box(-1, 1, (2,), np.float32)
    self._random = np.random.default_rng(0)

  def reset(self, *, seed=None, options=None):
    if seed is not None:
      self._random = np.random.default_rng(seed)
    self._position, self._velocity = np.zeros(2), np.zeros(2)
    self._goal, self._row = self._random.uniform(-1, 1, 2), 0
    return self._observation(), {}

  def step(self, action):
    self._velocity = 0.1 * np.asarray(action, np.float64)
    self._position, self._row = self._position + self._velocity, self._row + 1
    reward = self.compute_reward(self._position, self._goal, {})
    return self._observation(), reward, False, self._row == 5, {'is_success': reward == 0}

  def compute_reward(self, achieved_goal, desired_goal, info):
    distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
    return -(distance > 0.05).astype(np.float32)

  def close(self):
    pass

  def _observation(self):
    return {
      'observation': np.concatenate([self._position, self._velocity]),
      'achieved_goal': self._position.copy(),
      'desired_goal': self._goal.copy(),
    }


@pytest.fixture(params=['gym', 'gymnasium'])
def environment(request):
  spaces = pytest.importorskip(f'{request.param}.spaces')
  return vector.VectorOfEnvironments(
    [gym_adapter.GymEnvironment(Reach(spaces), seed, 'reach') for seed in (1, 2)], 'reach'
  )


def test_the_specification_has_the_three_keys_as_float32(environment):
  spec = environment.spec.observation
  assert {name: leaf.shape for name, leaf in spec.items()} == {
    'observation': (4,),
    'achieved_goal': (2,),
    'desired_goal': (2,),
  }
  assert all(leaf.dtype == np.float32 for leaf in spec.values())


def test_rows_have_the_three_keys_and_their_reward_is_that_of_the_goals(environment):
  rows = [environment.reset()]
  goal = rows[0].observation['desired_goal']
  assert (goal[0] != goal[1]).any()
  np.testing.assert_array_equal(rows[0].observation['achieved_goal'], 0)
  for _ in range(5):
    actions = np.clip(10 * (goal - rows[-1].observation['achieved_goal']), -1, 1)
    rows.append(environment.step(actions))
    row = rows[-1]
    np.testing.assert_array_equal(row.observation['desired_goal'], goal)
    np.testing.assert_allclose(
      row.observation['achieved_goal'], row.observation['observation'][:, :2]
    )
    distance = np.linalg.norm(row.observation['achieved_goal'] - goal, axis=-1)
    np.testing.assert_array_equal(row.reward, -(distance > 0.05).astype(np.float32))
  assert (rows[-1].step_type == types.LAST).all()
  np.testing.assert_array_equal(rows[-1].discount, 1)  # reaching a goal ends no episode here
