"""Toy and ToyMemory: rows by hand, returns in closed form by simulation, and the contract."""

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import registry
from seed_acme.envs import toy
from seed_acme.testing import environment_contract


class TestToyContract(environment_contract.EnvironmentContract):
  has_seed_per_environment = False  # one stream for all
  environment_id = 'toy'
  settings: dict = {}

  def make_environment(self, num_environments, seed):
    return registry.make(
      config_lib.EnvironmentConfig(self.environment_id, self.settings), num_environments, seed
    )


class TestToyMemoryContract(TestToyContract):
  environment_id = 'toy_memory'


class TestShortToyMemoryContract(TestToyContract):
  environment_id, settings = 'toy_memory', {'size': 1, 'delay': 4, 'num_vectors': 1}


class TestToyMemoryChoicesContract(TestToyContract):
  environment_id, settings = 'toy_memory', {'action_bins': 3}


def mean_return(environment, num_episodes, choose):
  """Returns the mean return.

  choose(row number, observations so far `[row + 1, E, ...]`) -> actions `[E, size]`.
  """
  total = 0.0
  for _ in range(num_episodes):
    rows = [environment.reset()]
    while not (rows[-1].step_type == types.LAST).all():
      observations = np.stack([row.observation for row in rows])
      rows.append(environment.step(choose(len(rows) - 1, observations)))
      total += rows[-1].reward.mean()
  return total / num_episodes


def test_toy_rows_by_hand():
  environment = toy.Toy(2, seed=1, size=2, length=2)
  row = environment.reset()
  assert row.observation.shape == (2, 4)
  np.testing.assert_array_equal(row.observation[:, 2:], [[1, 1]] * 2)  # time left, counts
  shown = row.observation[:, :2]
  row = environment.step(shown)
  np.testing.assert_array_equal(row.reward, 1)
  np.testing.assert_array_equal(row.discount, 1)
  np.testing.assert_array_equal(row.observation[:, 2:], [[0.5, 1]] * 2)
  shown = row.observation[:, :2]
  assert (shown != 0).all()
  answers = np.clip(shown - [0.5, 0.1], -1, 1)
  row = environment.step(answers)
  np.testing.assert_allclose(
    row.reward, 1 - 1.5 * np.square(answers - shown).sum(axis=1), rtol=1e-5
  )
  assert (row.step_type == types.LAST).all()
  np.testing.assert_array_equal(row.discount, 0)
  np.testing.assert_array_equal(row.observation, np.zeros((2, 4)))
  assert (environment.step(answers).step_type == types.FIRST).all()


def test_toy_memory_rows_by_hand():
  environment = toy.ToyMemory(3, seed=1, size=2, delay=3, num_vectors=2)
  rows = [environment.reset()]
  for _ in range(2):
    rows.append(environment.step(np.ones((3, 2))))  # actions do not count before the delay
  vectors = [row.observation[:, :2] for row in rows]
  assert (vectors[0] != vectors[1]).all() and (vectors[1] != 0).all()
  np.testing.assert_array_equal(vectors[2], np.zeros((3, 2)))  # the only row without a vector
  np.testing.assert_array_equal([row.reward for row in rows], np.zeros((3, 3)))
  rows.append(environment.step(vectors[0]))
  np.testing.assert_array_equal(rows[-1].reward, 0)
  rows.append(environment.step(vectors[0]))
  np.testing.assert_array_equal(rows[-1].reward, 1)
  rows.append(environment.step(vectors[1]))
  np.testing.assert_array_equal(rows[-1].reward, 1)
  np.testing.assert_array_equal([row.step_type[0] for row in rows], [0, 1, 1, 1, 1, 2])
  np.testing.assert_allclose(
    [row.observation[0, 2] for row in rows], [1, 0.8, 0.6, 0.4, 0.2, 0], rtol=1e-6
  )
  np.testing.assert_array_equal([row.observation[0, 3] for row in rows], [0, 0, 0, 1, 1, 0])


@pytest.mark.parametrize(
  ('make', 'delay', 'best'),
  [
    (lambda: toy.Toy(2000, seed=3), 0, 3),
    (lambda: toy.Toy(2000, seed=3, size=1, length=7), 0, 7),
    (lambda: toy.ToyMemory(2000, seed=3), 3, 3),
    (lambda: toy.ToyMemory(2000, seed=3, size=2, delay=4, num_vectors=2), 4, 2),
  ],
)
def test_returns_in_closed_form(make, delay, best):
  environment = make()
  size = environment.spec.action.shape[0]
  random = np.random.default_rng(0)
  policies = {
    'best': lambda row, seen: seen[max(0, row - delay), :, :size],
    'zeros': lambda row, seen: np.zeros((2000, size)),
    'random': lambda row, seen: random.uniform(-1, 1, (2000, size)),
    # A constant loses 3 a^2 against 0 in each row that counts.
    'constant': lambda row, seen: np.full((2000, size), 0.5),
  }
  expected = {
    'best': environment.best_return,
    'zeros': environment.memoryless_return,
    'random': environment.random_return,
    'constant': -0.75 * best,
  }
  assert (environment.best_return, environment.memoryless_return) == (best, 0)
  assert environment.random_return == -best
  for name, choose in policies.items():
    # 10,000 episodes; the reward of a row has a standard deviation of at most 1.7.
    tolerance = 1e-5 if name == 'best' else 4 * 1.7 * np.sqrt(best / 10_000)
    assert mean_return(environment, 5, choose) == pytest.approx(expected[name], abs=tolerance), name


def test_nothing_in_the_rows_that_ask_depends_on_the_vectors():
  environment = toy.ToyMemory(50, seed=1)
  environment.reset()
  for number in range(1, 6):
    row = environment.step(np.zeros((50, 3)))
    if number >= 3:
      assert (row.observation == row.observation[:1]).all()


def test_previous_action_is_the_loophole_for_one_vector():
  environment = toy.ToyMemory(100, seed=1, num_vectors=1)
  previous = [np.zeros((100, 3))]

  def carry_in_actions(row, seen):
    previous[0] = seen[0, :, :3] if row == 0 else previous[0]
    return previous[0]

  score = environment.memory_score(mean_return(environment, 3, carry_in_actions))
  assert score == pytest.approx(1)
  assert environment.memory_score(0.0) == 0


def test_choices_instead_of_numbers():
  environment = registry.make(
    config_lib.EnvironmentConfig('toy', {'size': 1, 'action_bins': 3}), 4, seed=1
  )
  shown = environment.reset().observation[:, 0]
  row = environment.step(np.array([[0], [1], [2], [1]]))
  np.testing.assert_allclose(row.reward, 1 - 3 * np.square([-1, 0, 1, 0] - shown), rtol=1e-5)


def test_pictures():
  for environment in toy.Toy(2, seed=1, size=4), toy.ToyMemory(2, seed=1, size=4, delay=4):
    row = environment.reset()
    for _ in range(9):
      picture = environment.render()
      assert (picture.shape, picture.dtype) == ((48, 64, 3), np.uint8)
      np.testing.assert_allclose(
        picture[0, ::16, 0] / 127.5 - 1, row.observation[0, :4], atol=1 / 127
      )
      row = environment.step(np.full((2, 4), 0.5))
    if row.step_type[0] != types.FIRST:
      assert environment.render()[32, 0, 0] == 191  # the action taken, 0.5


@pytest.mark.parametrize(
  ('actions', 'message'),
  [
    (np.zeros((2, 2)), r'shape \(2, 2\): expected \(2, 3\)'),
    (np.zeros(3), 'shape'),
    (np.full((2, 3), 1.1), r'expected numbers in \[-1, 1\]'),
    (np.full((2, 3), np.nan), r'expected numbers in \[-1, 1\]'),
  ],
)
def test_wrong_actions_are_refused(actions, message):
  environment = toy.Toy(2, seed=0)
  environment.reset()
  with pytest.raises(ValueError, match=message):
    environment.step(actions)


@pytest.mark.parametrize(
  ('kind', 'settings', 'message'),
  [
    (toy.Toy, {'size': 0}, r'toy: size \(0\)'),
    (toy.Toy, {'length': 0.5}, r'length \(0\.5\)'),
    (toy.ToyMemory, {'delay': 0}, r'toy_memory: delay \(0\)'),
    (toy.ToyMemory, {'num_vectors': 0}, r'num_vectors \(0\)'),
    (toy.ToyMemory, {'num_vectors': 4}, r'num_vectors \(4\) must be <= delay \(3\)'),
  ],
)
def test_wrong_settings_are_named_with_their_value(kind, settings, message):
  with pytest.raises(types.UserError, match=message):
    kind(1, seed=0, **settings)
