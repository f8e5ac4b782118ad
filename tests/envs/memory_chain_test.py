"""MemoryChain: rows by hand, chance level by simulation, and the contract."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import memory_chain
from seed_acme.testing import environment_contract


class TestMemoryChainContract(environment_contract.EnvironmentContract):
  has_seed_per_environment = False  # one stream for all

  def make_environment(self, num_environments, seed):
    return memory_chain.MemoryChain(num_environments, seed)


class TestShortMemoryChainContract(environment_contract.EnvironmentContract):
  has_seed_per_environment = False

  def make_environment(self, num_environments, seed):
    return memory_chain.MemoryChain(num_environments, seed, length=1, num_cues=5)


def play_episodes(environment, num_episodes, choose):
  """Returns the mean return. choose(observation, previous_actions) -> actions; zeros at FIRST."""
  total = 0.0
  for _ in range(num_episodes):
    row = environment.reset()
    actions = np.zeros(environment.num_environments, np.int32)
    while not (row.step_type == types.LAST).all():
      actions = choose(row.observation, actions)
      row = environment.step(actions)
      total += row.reward.mean()
  return total / num_episodes


def test_rows_by_hand():
  environment = memory_chain.MemoryChain(32, seed=2, length=2, num_cues=3)
  row = environment.reset()
  cue = row.observation[:, :3].argmax(axis=1)
  assert set(cue) == {0, 1, 2}
  np.testing.assert_array_equal(row.observation[:, :3], np.eye(3)[cue])
  np.testing.assert_array_equal(row.observation[:, 3:], [[1, 0]] * 32)
  row = environment.step(cue)  # an answer before the query does not count
  np.testing.assert_array_equal(row.observation, [[0, 0, 0, 0.5, 0]] * 32)
  np.testing.assert_array_equal(row.reward, 0)
  row = environment.step((cue + 1) % 3)
  np.testing.assert_array_equal(row.observation, [[0, 0, 0, 0, 1]] * 32)
  np.testing.assert_array_equal(row.reward, 0)
  assert (row.step_type == types.MID).all()
  answers = np.where(np.arange(32) % 2, cue, (cue + 1) % 3)
  row = environment.step(answers)
  np.testing.assert_array_equal(row.observation, np.zeros((32, 5)))
  np.testing.assert_array_equal(row.reward, np.where(np.arange(32) % 2, 1, -1))
  np.testing.assert_array_equal(row.discount, 0)
  assert (row.step_type == types.LAST).all()
  assert (environment.step(answers).step_type == types.FIRST).all()


@pytest.mark.parametrize('num_cues', [2, 5])
def test_policies_without_memory_are_at_chance(num_cues):
  environment = memory_chain.MemoryChain(500, seed=1, length=3, num_cues=num_cues)
  random = np.random.default_rng(0)
  policies = {
    'constant': lambda observation, previous: np.full(500, num_cues - 1),
    'random': lambda observation, previous: random.integers(num_cues, size=500),
    'sees only now': lambda observation, previous: observation[:, :num_cues].argmax(axis=1),
  }
  assert environment.memoryless_return == pytest.approx({2: 0.0, 5: -0.6}[num_cues])
  for name, choose in policies.items():
    mean_return = play_episodes(environment, 40, choose)
    # 20,000 episodes: a standard deviation of the mean is at most 0.007.
    assert mean_return == pytest.approx(environment.memoryless_return, abs=0.03), name


def test_nothing_after_row_0_depends_on_the_cue():
  environment = memory_chain.MemoryChain(50, seed=1, length=6, num_cues=4)
  environment.reset()
  for _ in range(6):
    row = environment.step(np.zeros(50, np.int32))
    for array in (row.observation, row.reward, row.discount, row.step_type, row.score):
      assert (array == array[:1]).all()


def test_previous_action_is_the_loophole():
  environment = memory_chain.MemoryChain(100, seed=1, length=4)

  def carry_in_actions(observation, previous):
    has_cue = observation[:, :2].any(axis=1)
    return np.where(has_cue, observation[:, :2].argmax(axis=1), previous)

  mean_return = play_episodes(environment, 5, carry_in_actions)
  assert mean_return == 1
  assert environment.memory_score(mean_return) == 1


def test_memory_score_is_0_at_chance_and_1_at_best():
  environment = memory_chain.MemoryChain(1, seed=0, num_cues=4)
  assert environment.memory_score(-0.5) == 0
  assert environment.memory_score(1.0) == 1
  assert environment.memory_score(0.25) == pytest.approx(0.5)


def test_episode_is_length_plus_one_steps():
  environment = memory_chain.MemoryChain(1, seed=0)
  environment.reset()
  step_types = [int(environment.step([0]).step_type[0]) for _ in range(12)]
  assert step_types == [types.MID] * 10 + [types.LAST, types.FIRST]


@pytest.mark.parametrize('actions', [[0, 2], [-1, 0], [0]])
def test_wrong_actions_are_refused(actions):
  environment = memory_chain.MemoryChain(2, seed=0)
  environment.reset()
  with pytest.raises(ValueError, match='expected'):
    environment.step(np.array(actions))


@pytest.mark.parametrize('settings', [{'length': 0}, {'num_cues': 1}, {'length': 1.5}])
def test_wrong_settings_are_named_with_their_value(settings):
  ((name, value),) = settings.items()
  with pytest.raises(types.UserError, match=rf'{name} \({value!r}\)'):
    memory_chain.MemoryChain(1, seed=0, **settings)
