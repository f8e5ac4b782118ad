"""The server's data for every environment."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.inference import slots as slots_lib

ACTION = {'button': dm_specs.DiscreteArray(3, dtype=np.int32), 'force': dm_specs.Array((2,), 'f4')}


@pytest.fixture
def slots() -> slots_lib.EnvironmentSlots:
  initial_state = {'h': np.full((1, 3), 0.5, np.float32)}
  return slots_lib.EnvironmentSlots(4, ACTION, initial_state, seed=1)


def ids(*env_ids: int) -> np.ndarray:
  return np.array(env_ids, np.int64)


def write(
  slots: slots_lib.EnvironmentSlots, env_ids: np.ndarray, number: int, step_type: int = types.MID
) -> None:
  n = env_ids.size
  slots.write(
    env_ids,
    np.full(n, number),
    np.full(n, step_type, np.uint8),
    {
      'button': env_ids.astype(np.int32) + 10,
      'force': np.repeat(env_ids[:, None], 2, axis=1).astype(np.float32),
    },
    {'h': np.repeat(env_ids[:, None], 3, axis=1).astype(np.float32)},
  )


def test_everything_is_new_at_first_even_run_id_zero(slots):
  assert slots.is_new_run(ids(0, 3), ids(0, 5)).tolist() == [True, True]
  assert slots.state['h'].shape == (4, 3) and (slots.state['h'] == 0.5).all()
  assert slots.action['force'].shape == (4, 2) and slots.action['force'].dtype == np.float32
  assert slots.request_numbers.tolist() == [-1] * 4


def test_a_known_run_is_new_again_when_its_id_changes(slots):
  slots.reset(ids(0, 2), ids(7, 0))
  assert slots.is_new_run(ids(2, 0, 1), ids(0, 7, 7)).tolist() == [False, False, True]
  assert slots.is_new_run(ids(0, 2), ids(8, 1)).tolist() == [True, True]


def test_write_goes_to_the_named_rows_alone(slots):
  slots.reset(ids(0, 1, 2, 3), ids(1, 1, 1, 1))
  write(slots, ids(3, 1), 6)
  assert slots.state['h'][:, 0].tolist() == [0.5, 1.0, 0.5, 3.0]
  assert slots.action['button'].tolist() == [0, 11, 0, 13]
  assert slots.request_numbers.tolist() == [-1, 6, -1, 6]
  assert slots.row_numbers.tolist() == [0, 1, 0, 1]
  write(slots, ids(3), 7)
  assert slots.row_numbers.tolist() == [0, 1, 0, 2]


def test_reset_forgets_the_named_rows_alone(slots):
  slots.reset(ids(0, 1, 2, 3), ids(1, 1, 1, 1))
  write(slots, ids(0, 1, 2, 3), 6)
  before = tree.map_structure(np.copy, (slots.state, slots.action))
  slots.reset(ids(2), ids(9))
  others = [0, 1, 3]
  tree.map_structure(
    lambda a, b: np.testing.assert_array_equal(a[others], b[others]),
    before,
    (slots.state, slots.action),
  )
  assert slots.state['h'][2].tolist() == [0.5] * 3
  assert slots.action['button'][2] == 0 and (slots.action['force'][2] == 0).all()
  assert slots.run_ids.tolist() == [1, 1, 9, 1]
  assert slots.request_numbers.tolist() == [6, 6, -1, 6]
  assert slots.row_numbers.tolist() == [1, 1, 0, 1]


def test_an_episode_has_ended_after_last_and_before_the_first_row(slots):
  slots.reset(ids(0, 1, 2), ids(1, 1, 1))
  write(slots, ids(0), 0, types.FIRST)
  write(slots, ids(1), 0, types.LAST)
  write(slots, ids(2), 0, types.MID)
  assert slots.has_ended.tolist() == [False, True, False, True]
  slots.reset(ids(2), ids(2))
  assert slots.has_ended.tolist() == [False, True, True, True]


def test_every_run_of_every_environment_has_noise_of_its_own(slots):
  slots.reset(ids(0, 1, 2, 3), ids(5, 5, 5, 5))
  first = slots.noise_keys.copy()
  slots.reset(ids(2), ids(6))
  assert len({*first.tolist(), int(slots.noise_keys[2])}) == 5
  np.testing.assert_array_equal(np.delete(first, 2), np.delete(slots.noise_keys, 2))
  slots.reset(ids(2), ids(5))
  np.testing.assert_array_equal(first, slots.noise_keys)


def test_a_feed_forward_network_has_no_state():
  slots = slots_lib.EnvironmentSlots(2, ACTION, (), seed=1)
  slots.reset(ids(1), ids(3))
  slots.write(
    ids(1),
    ids(0),
    np.array([types.MID], np.uint8),
    {'button': np.array([2], np.int32), 'force': np.ones((1, 2), np.float32)},
    (),
  )
  assert slots.state == () and slots.action['button'].tolist() == [0, 2]
