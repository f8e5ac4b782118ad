"""The contract accepts a valid environment and notices every violation."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import catch
from seed_acme.envs import vector
from seed_acme.testing import environment_contract
from tests import scripted_environments


class Wrapped:
  """A wrapper that forwards everything; subclasses each violate one promise."""

  def __init__(self, num_environments, seed):
    self._inner = vector.VectorOfEnvironments(
      [self.make_one(1000 * seed + index) for index in range(num_environments)], 'inner'
    )
    self.num_environments = num_environments
    self.spec = self._inner.spec

  def make_one(self, seed):
    return scripted_environments.NestedEnvironment(seed)

  def reset(self):
    return self.change(self._inner.reset())

  def step(self, actions):
    return self.change(self._inner.step(actions))

  def change(self, row):
    return row

  def close(self):
    self._inner.close()


class OverwritesRows(Wrapped):
  reward = None

  def change(self, row):
    if self.reward is None:
      self.reward = row.reward
    self.reward[:] = row.reward
    return row._replace(reward=self.reward)


class RewardAtFirst(Wrapped):
  def change(self, row):
    return row._replace(reward=row.reward + 1)


class Float64Discount(Wrapped):
  def change(self, row):
    return row._replace(discount=row.discount.astype(np.float64))


class DiscountAboveOne(Wrapped):
  def change(self, row):
    return row._replace(discount=np.where(row.step_type == types.MID, 1.5, row.discount))


class NeverLast(Wrapped):
  def change(self, row):
    return row._replace(step_type=np.minimum(row.step_type, types.MID))


class IgnoresSeed(Wrapped):
  def make_one(self, seed):
    return super().make_one(5)


class UnseededNoise(Wrapped):
  def change(self, row):
    is_first = row.step_type == types.FIRST
    noise = np.random.default_rng().normal(size=row.reward.shape).astype(np.float32)
    return row._replace(reward=np.where(is_first, 0, row.reward + noise).astype(np.float32))


class MixesEnvironments(Wrapped):
  def change(self, row):
    is_first = row.step_type == types.FIRST
    return row._replace(reward=np.where(is_first, 0, row.reward.mean()).astype(np.float32))


class LooksAtActionsAfterLast(Wrapped):
  """An environment in which the latest action leaks over LAST into the first observation."""

  def step(self, actions):
    row = super().step(actions)
    row.observation['joints']['position'][:, 0] += actions['button']
    return row


class Oversized(Wrapped):
  def change(self, row):
    row.observation['camera'] = row.observation['camera'][:, :2]
    return row


BROKEN = {
  OverwritesRows: 'test_returned_time_steps_are_not_overwritten',
  RewardAtFirst: 'test_reward_is_0_and_discount_1_at_first',
  Float64Discount: 'test_arrays_are_as_specified',
  Oversized: 'test_arrays_are_as_specified',
  DiscountAboveOne: 'test_reward_is_0_and_discount_1_at_first',
  NeverLast: 'test_episodes_are_first_mid_last_first',
  IgnoresSeed: 'test_other_seeds_differ',
  UnseededNoise: 'test_seed_decides_everything',
  MixesEnvironments: 'test_environments_do_not_touch_each_other',
  LooksAtActionsAfterLast: 'test_actions_at_last_are_not_looked_at',
}


def contract(make):
  suite = environment_contract.EnvironmentContract()
  suite.make_environment = make
  return suite


@pytest.mark.parametrize(
  ('broken', 'test'), BROKEN.items(), ids=lambda value: getattr(value, '__name__', '')
)
def test_each_broken_promise_is_noticed(broken, test):
  with pytest.raises(AssertionError):
    getattr(contract(broken), test)()
  getattr(contract(Wrapped), test)()


def test_equal_environments_in_one_vector_are_noticed():
  with pytest.raises(AssertionError):
    contract(IgnoresSeed).test_environments_of_one_vector_differ()


def test_dependence_on_the_number_of_environments_is_noticed():
  with pytest.raises(AssertionError):
    contract(catch.Catch).test_number_of_environments_changes_nothing()


def test_random_actions_keep_to_the_specification():
  environment = Wrapped(200, 1)
  actions = environment_contract.random_actions(environment, np.random.default_rng(0))
  assert set(actions['button']) == {0, 1, 2}
  assert actions['button'].dtype == np.int32
  assert actions['force'].shape == (200, 2)
  assert actions['force'].dtype == np.float32
  assert -1 <= actions['force'].min() < -0.9
  assert 0.9 < actions['force'].max() <= 1


@pytest.mark.parametrize(
  'bounds, drawn',
  [
    ((-1, 1), (-1, 1)),
    ((-np.inf, np.inf), (-1, 1)),
    ((-0.5, 7), (-0.5, 1)),
    ((2, 10), (2, 4)),
    ((-np.inf, -5), (-7, -5)),
  ],
)
def test_random_actions_are_within_the_bounds(bounds, drawn):
  environment = catch.Catch(500, 1)
  action = specs.BoundedArray((), np.float32, *bounds)
  environment.spec = dataclasses.replace(environment.spec, action=action)
  actions = environment_contract.random_actions(environment, np.random.default_rng(0))
  assert drawn[0] <= actions.min() < drawn[0] + 0.1 and drawn[1] - 0.1 < actions.max() <= drawn[1]
