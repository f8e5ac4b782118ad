"""BitFlip: rows by hand, distributions, success rates in closed form, and the contract."""

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import bit_flip
from seed_acme.envs import registry
from seed_acme.testing import environment_contract


class TestBitFlipContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return registry.make(config_lib.EnvironmentConfig('bit_flip'), num_environments, seed)


class TestSmallBitFlipContract(environment_contract.EnvironmentContract):
  """The contract with two bits, so that episodes both terminate and are truncated."""

  def make_environment(self, num_environments, seed):
    return bit_flip.BitFlip(num_environments, seed, num_bits=2)


class TestOneBitContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return bit_flip.BitFlip(num_environments, seed, num_bits=1)


def wrong_bits(row):
  """Returns `[E, num_bits]` bool: where the state differs from the goal."""
  return row.observation['achieved_goal'] != row.observation['desired_goal']


def play_episodes(environment, num_episodes, choose):
  """Returns the mean return of `num_episodes` finished episodes. choose(row) -> actions `[E]`."""
  row, total, ended = environment.reset(), 0.0, 0
  while ended < num_episodes:
    row = environment.step(choose(row))
    total += row.reward.sum()
    ended += (row.step_type == types.LAST).sum()
  return total / ended


def test_an_action_flips_its_bit_and_no_other():
  environment = bit_flip.BitFlip(6, seed=1, num_bits=6)
  before = environment.reset().observation
  after = environment.step(np.arange(6)).observation
  np.testing.assert_array_equal(after['observation'] != before['observation'], np.eye(6))
  np.testing.assert_array_equal(after['achieved_goal'], after['observation'])
  np.testing.assert_array_equal(after['desired_goal'], before['desired_goal'])


def test_the_goal_terminates_the_episode_with_reward_1():
  environment = bit_flip.BitFlip(20, seed=1, num_bits=5)
  row = environment.reset()
  num_wrong = wrong_bits(row).sum(axis=1)
  assert set(num_wrong) >= {1, 2, 3}
  for number in range(1, 6):
    row = environment.step(wrong_bits(row).argmax(axis=1))
    ends, plays = num_wrong == number, num_wrong > number
    np.testing.assert_array_equal(row.reward[ends], 1)
    np.testing.assert_array_equal(row.discount[ends], 0)
    np.testing.assert_array_equal(row.step_type[ends], types.LAST)
    np.testing.assert_array_equal(row.reward[plays], 0)
    np.testing.assert_array_equal(row.discount[plays], 1)
    np.testing.assert_array_equal(row.step_type[plays], types.MID)


def test_after_as_many_steps_as_bits_it_is_truncated():
  environment = bit_flip.BitFlip(1, seed=0, num_bits=4)
  row = environment.reset()
  wrong = wrong_bits(row)[0]
  while wrong.sum() < 2 or wrong.all():
    row = environment.reset()
    wrong = wrong_bits(row)[0]
  right = int(np.flatnonzero(~wrong)[0])
  rows = [environment.step([right]) for _ in range(5)]
  assert [int(row.step_type[0]) for row in rows] == [types.MID] * 3 + [types.LAST, types.FIRST]
  assert [float(row.discount[0]) for row in rows] == [1] * 5
  assert [float(row.reward[0]) for row in rows] == [0] * 5


def test_the_goal_in_the_last_step_is_a_termination():
  environment = bit_flip.BitFlip(1, seed=0, num_bits=3)
  row = environment.reset()
  while not wrong_bits(row).all():
    row = environment.reset()
  rows = [environment.step([bit]) for bit in range(3)]
  assert (rows[-1].step_type[0], rows[-1].reward[0], rows[-1].discount[0]) == (types.LAST, 1, 0)


def test_start_and_goal_are_drawn_evenly_and_differ():
  environment = bit_flip.BitFlip(1, seed=3, num_bits=2)
  counts = np.zeros((4, 4))
  for _ in range(3000):
    observation = environment.reset().observation
    start, goal = (int(observation[name][0] @ [2, 1]) for name in ('achieved_goal', 'desired_goal'))
    counts[start, goal] += 1
  assert not counts.diagonal().any()
  # 250 expected in each of the 12, with a standard deviation of 15.
  assert (np.abs(counts[~np.eye(4, dtype=bool)] - 250) < 75).all()


def test_a_policy_that_reads_the_goal_always_succeeds():
  environment = bit_flip.BitFlip(50, seed=1)
  assert play_episodes(environment, 500, lambda row: wrong_bits(row).argmax(axis=1)) == 1


def test_random_actions_rarely_succeed():
  environment, random = bit_flip.BitFlip(200, seed=1), np.random.default_rng(0)
  mean_return = play_episodes(environment, 10_000, lambda row: random.integers(10, size=200))
  assert 0.002 < mean_return < 0.02


def test_specifications_are_those_of_a_goal_environment():
  spec = registry.environment_spec(config_lib.EnvironmentConfig('bit_flip', {'num_bits': 7}))
  assert set(spec.observation) == {'observation', 'achieved_goal', 'desired_goal'}
  assert all((leaf.shape, leaf.dtype) == ((7,), np.float32) for leaf in spec.observation.values())
  assert types.num_discrete_actions(spec) == 7


@pytest.mark.parametrize('actions', [[0, 10], [-1, 0], [0]])
def test_wrong_actions_are_refused(actions):
  environment = bit_flip.BitFlip(2, seed=0)
  environment.reset()
  with pytest.raises(ValueError, match='expected'):
    environment.step(np.array(actions))


def test_any_action_is_right_where_the_episode_has_ended():
  environment = bit_flip.BitFlip(1, seed=0, num_bits=1)
  environment.reset()
  assert environment.step([0]).step_type == types.LAST
  assert environment.step([7]).step_type == types.FIRST


@pytest.mark.parametrize('num_bits', [0, 2.5, True])
def test_a_wrong_number_of_bits_is_named(num_bits):
  with pytest.raises(types.UserError, match=rf'bit_flip: num_bits \({num_bits!r}\)'):
    bit_flip.BitFlip(1, seed=0, num_bits=num_bits)
