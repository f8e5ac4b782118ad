"""Tests of the contract of `core.VectorEnvironment`, to be inherited by an environment's test.

```
class TestMyEnvironment(environment_contract.EnvironmentContract):

  def make_environment(self, num_environments, seed):
    return my_environment.MyEnvironment(num_environments, seed)
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import core
from seed_acme import types


class EnvironmentContract:
  """Mixin for a pytest class. Actions are random, with a fixed seed.

  num_steps: steps played in each test; enough for an episode to end.
  is_random: False for an environment that behaves the same for every seed.
  has_seed_per_environment: False if all environments draw from one random stream; then
    environment 0 of 4 may differ from environment 0 of 1.
  """

  num_steps: int = 60
  is_random: bool = True
  has_seed_per_environment: bool = True

  def make_environment(self, num_environments: int, seed: int) -> core.VectorEnvironment:
    """Returns a new environment; each test calls this and closes what it returns."""
    raise NotImplementedError

  def test_reset_starts_every_environment(self):
    environment = self.make_environment(3, seed=1)
    rows = [environment.reset()]
    rows.append(environment.step(random_actions(environment, np.random.default_rng(1))))
    rows.append(environment.reset())
    environment.close()
    for number in (0, 2):
      assert (rows[number].step_type == types.FIRST).all(), rows[number].step_type

  def test_arrays_are_as_specified(self):
    environment = self.make_environment(3, seed=1)
    rows = play(environment, self.num_steps)
    environment.close()
    assert environment.num_environments == 3
    assert isinstance(environment.spec, types.EnvironmentSpec)
    for row in rows:
      _check_array('step_type', row.step_type, (3,), np.uint8)
      for name in ('reward', 'discount', 'score'):
        _check_array(name, getattr(row, name), (3,), np.float32)
        assert np.isfinite(getattr(row, name)).all(), f'{name}: {getattr(row, name)}'
      tree.assert_same_structure(environment.spec.observation, row.observation)
      for spec, value in zip(
        tree.flatten(environment.spec.observation), tree.flatten(row.observation)
      ):
        _check_array('observation', value, (3, *spec.shape), spec.dtype)
        for one in value:
          spec.validate(one)

  def test_episodes_are_first_mid_last_first(self):
    step_types = _stack(self._trajectory(3, seed=1)).step_type
    assert (step_types == types.LAST).any(), f'no episode ends within {self.num_steps} steps'
    assert np.isin(step_types, (types.FIRST, types.MID, types.LAST)).all()
    before, after = step_types[:-1], step_types[1:]
    np.testing.assert_array_equal(
      after == types.FIRST, before == types.LAST, 'FIRST must follow LAST, and only LAST'
    )

  def test_reward_is_0_and_discount_1_at_first(self):
    rows = _stack(self._trajectory(3, seed=1))
    is_first = rows.step_type == types.FIRST
    np.testing.assert_array_equal(rows.reward[is_first], 0)
    np.testing.assert_array_equal(rows.score[is_first], 0)
    np.testing.assert_array_equal(rows.discount[is_first], 1)
    assert ((rows.discount >= 0) & (rows.discount <= 1)).all(), np.unique(rows.discount)

  def test_returned_time_steps_are_not_overwritten(self):
    environment = self.make_environment(3, seed=1)
    copies = []
    rows = play(
      environment,
      self.num_steps,
      on_row=lambda row: copies.append(tree.map_structure(np.array, row)),
    )
    environment.close()
    for row, copy in zip(rows, copies):
      assert_equal_rows(row, copy)

  def test_seed_decides_everything(self):
    assert_equal_rows(_stack(self._trajectory(3, seed=1)), _stack(self._trajectory(3, seed=1)))

  def test_other_seeds_differ(self):
    if self.is_random:
      assert _differ(self._trajectory(3, seed=1), self._trajectory(3, seed=2))

  def test_environments_of_one_vector_differ(self):
    if self.is_random:
      # Over many episodes: an environment with few outcomes may match another by chance.
      rows = self._trajectory(8, seed=1, equal_actions=True)
      assert any(_differ(_one(rows, 0), _one(rows, index)) for index in range(1, 8))

  def test_environments_do_not_touch_each_other(self):
    def swap_all_but_one(actions: types.Nest, other: types.Nest) -> types.Nest:
      return tree.map_structure(lambda a, b: np.concatenate([a[:1], b[1:]]), actions, other)

    rows = self._trajectory(4, seed=1)
    changed = self._trajectory(4, seed=1, change=swap_all_but_one)
    assert_equal_rows(_stack(_one(rows, 0)), _stack(_one(changed, 0)))

  def test_number_of_environments_changes_nothing(self):
    if self.has_seed_per_environment:
      many = self._trajectory(4, seed=1, equal_actions=True)
      one = self._trajectory(1, seed=1, equal_actions=True)
      assert_equal_rows(_stack(_one(many, 0)), _stack(_one(one, 0)))

  def test_actions_at_last_are_not_looked_at(self):
    def change_at_last(actions: types.Nest, other: types.Nest) -> types.Nest:
      is_last = latest[-1].step_type == types.LAST

      def choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(is_last.reshape(-1, *[1] * (a.ndim - 1)), b, a)

      return tree.map_structure(choose, actions, other)

    latest: list[types.VectorTimeStep] = []
    rows = self._trajectory(3, seed=1)
    changed = self._trajectory(3, seed=1, change=change_at_last, on_row=latest.append)
    assert_equal_rows(_stack(rows), _stack(changed))

  def _trajectory(
    self, num_environments: int, seed: int, **kwargs: Any
  ) -> list[types.VectorTimeStep]:
    environment = self.make_environment(num_environments, seed)
    try:
      return play(environment, self.num_steps, **kwargs)
    finally:
      environment.close()


def play(
  environment: core.VectorEnvironment,
  num_steps: int,
  *,
  equal_actions: bool = False,
  change: Callable[[types.Nest, types.Nest], types.Nest] | None = None,
  on_row: Callable[[types.VectorTimeStep], Any] = lambda row: None,
) -> list[types.VectorTimeStep]:
  """Returns `num_steps + 1` rows under random actions that do not depend on the rows.

  equal_actions: give all environments the same actions, whatever their number. change: takes the
  actions and other random actions and returns the actions to apply. on_row: called with each row.
  """
  random, other_random = np.random.default_rng(10), np.random.default_rng(11)
  rows = [environment.reset()]
  on_row(rows[-1])
  for _ in range(num_steps):
    if equal_actions:
      actions = random_actions(environment, random, num_environments=1)
      actions = tree.map_structure(
        lambda action: np.repeat(action, environment.num_environments, axis=0), actions
      )
    else:
      actions = random_actions(environment, random)
    if change:
      actions = change(actions, random_actions(environment, other_random))
    rows.append(environment.step(actions))
    on_row(rows[-1])
  return rows


def random_actions(
  environment: core.VectorEnvironment,
  random: np.random.Generator,
  num_environments: int | None = None,
) -> types.Nest:
  """Draws a nest of actions `[E, ...]`, uniform within the bounds, or in [-1, 1] without bounds.

  Of wider bounds only the part within [-1, 1] is drawn from, or, beside it, the nearest of width 2.
  """
  count = environment.num_environments if num_environments is None else num_environments

  def draw(spec: dm_specs.Array) -> np.ndarray:
    shape = (count, *spec.shape)
    if not isinstance(spec, dm_specs.BoundedArray):
      return random.uniform(-1, 1, shape).astype(spec.dtype)
    low, high = np.broadcast_arrays(spec.minimum, spec.maximum)
    if np.issubdtype(spec.dtype, np.integer):
      return random.integers(low, high, size=shape, endpoint=True).astype(spec.dtype)
    low = np.maximum(low, np.where(high <= -1, high - 2, -1))
    high = np.minimum(high, np.where(low >= 1, low + 2, 1))
    return random.uniform(low, high, size=shape).astype(spec.dtype)

  return tree.map_structure(draw, environment.spec.action)


def assert_equal_rows(a: types.VectorTimeStep, b: types.VectorTimeStep) -> None:
  """Asserts that all fields are equal, bit for bit."""
  tree.map_structure(np.testing.assert_array_equal, a, b)


def _check_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
  assert isinstance(array, np.ndarray), f'{name} is a {type(array).__name__}'
  assert array.shape == shape, f'{name} {array.shape}: expected {shape}'
  assert array.dtype == dtype, f'{name} {array.dtype}: expected {np.dtype(dtype)}'


def _stack(rows: list[types.VectorTimeStep]) -> types.VectorTimeStep:
  """Stacks rows `[E, ...]` into one record of `[T, E, ...]`."""
  return tree.map_structure(lambda *leaves: np.stack(leaves), *rows)


def _one(rows: list[types.VectorTimeStep], index: int) -> list[types.VectorTimeStep]:
  return [tree.map_structure(lambda leaf: leaf[index], row) for row in rows]


def _differ(a: list[types.VectorTimeStep], b: list[types.VectorTimeStep]) -> bool:
  pairs = zip(tree.flatten(_stack(a)), tree.flatten(_stack(b)))
  return not all(np.array_equal(x, y) for x, y in pairs)
