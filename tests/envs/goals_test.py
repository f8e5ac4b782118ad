"""Goal outcomes compared with the environments whose rewards they compute, and by hand."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.envs import bit_flip
from seed_acme.envs import goals
from seed_acme.testing import environment_contract


@pytest.mark.parametrize('num_bits', [1, 2, 5])
def test_bits_equal_is_the_reward_of_bit_flip(num_bits):
  environment = bit_flip.BitFlip(16, seed=1, num_bits=num_bits)
  num_reached = 0
  for row in environment_contract.play(environment, 100):
    outcome = goals.bits_equal(row.observation['achieved_goal'], row.observation['desired_goal'])
    np.testing.assert_array_equal(outcome.reward, row.reward)
    # Reaching the goal ends the episode there.
    is_terminated = (row.step_type == types.LAST) & (row.discount == 0)
    np.testing.assert_array_equal(outcome.is_reached, is_terminated)
    num_reached += is_terminated.sum()
  assert num_reached > 10


def fetch_reward(achieved_goal, desired_goal):
  """Returns the reward as in gymnasium-robotics 1.2, `envs/fetch/fetch_env.py`."""
  distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
  return -(distance > 0.05).astype(np.float32)


def test_within_5_cm_is_the_sparse_reward_of_fetch():
  random = np.random.default_rng(0)
  achieved = random.normal(size=(1000, 3))
  desired = achieved + random.normal(0, 0.03, (1000, 3))
  outcome = goals.within_5_cm(achieved.astype(np.float32), desired.astype(np.float32))
  expected = fetch_reward(achieved, desired)
  np.testing.assert_array_equal(outcome.reward, expected)
  np.testing.assert_array_equal(outcome.is_reached, expected == 0)
  assert 100 < (expected == 0).sum() < 900


def test_within_5_cm_by_hand():
  achieved = np.zeros((4, 3), np.float32)
  desired = np.float32([[0.04, 0, 0], [0, 0, 0], [0.04, 0.04, 0], [0, 0, -0.06]])
  outcome = goals.within_5_cm(achieved, desired)
  np.testing.assert_array_equal(outcome.reward, [0, 0, -1, -1])
  np.testing.assert_array_equal(outcome.is_reached, [True, True, False, False])


@pytest.mark.parametrize('function', [goals.bits_equal, goals.within_5_cm])
def test_goals_may_have_any_shape_and_batches_any_size(function):
  signature = [tf.TensorSpec([None, 2, 2], tf.float32)] * 2
  traced = tf.function(function, input_signature=signature, autograph=False)
  achieved = np.zeros((3, 2, 2), np.float32)
  desired = achieved.copy()
  desired[1, 1, 0] = 1
  outcome = traced(achieved, desired)
  np.testing.assert_array_equal(outcome.is_reached, [True, False, True])
  assert (outcome.reward.dtype, outcome.is_reached.dtype) == (tf.float32, tf.bool)
  numbers = goals.bits_equal(np.zeros([5]), np.ones([5]))  # a goal that is a single number
  assert numbers.reward.shape == (5,)


@pytest.mark.slow
def test_no_environment_is_loaded_with_the_goals_and_no_tensorflow_with_the_environment():
  for imported, absent in (('goals', 'seed_acme.envs.bit_flip'), ('bit_flip', 'tensorflow')):
    code = f'import sys; import seed_acme.envs.{imported}; print({absent!r} in sys.modules)'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ['False'], imported
