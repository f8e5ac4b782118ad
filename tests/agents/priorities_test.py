"""Weights and priorities of unrolls that are sampled by priority."""

import numpy as np
import tensorflow as tf

from seed_acme.agents import priorities as priorities_lib
from seed_acme.agents.r2d2 import config as r2d2_config


def _weights(probabilities, exponent, replay='prioritized'):
  config = r2d2_config.R2D2Config(importance_exponent=exponent, replay=replay)
  return priorities_lib.importance_weights(np.array(probabilities), config)


def test_weights_are_a_power_of_the_probability_over_their_maximum():
  weights = _weights([0.1, 0.4, 0.025, 0.1], exponent=0.5)
  np.testing.assert_allclose(weights, [0.5, 0.25, 1.0, 0.5], rtol=1e-6)
  assert weights.dtype == tf.float32
  tiny = _weights([1e-60, 1e-50], exponent=0.9)
  np.testing.assert_allclose(tiny, [1.0, 1e-9], rtol=1e-4)  # no float32 on the way


def test_unrolls_of_equal_probability_have_the_weight_1():
  np.testing.assert_array_equal(_weights(np.full(5, 1 / 7), exponent=0.6), np.ones(5))


def test_all_weights_of_uniform_replay_are_1():
  weights = _weights([0.1, 0.4, 0.025, 0.1], exponent=0.5, replay='uniform')
  np.testing.assert_array_equal(weights, np.ones(4))


def test_a_priority_mixes_the_largest_and_the_mean_error_of_the_steps_alone():
  errors = np.float32([[1, -4], [-3, np.nan], [np.nan, 2]])
  mask = np.array([[True, True], [True, False], [False, True]])
  np.testing.assert_allclose(
    priorities_lib.mixed_priorities(errors, mask, max_share=0.9),
    [0.9 * 3 + 0.1 * 2, 0.9 * 4 + 0.1 * 3],
    rtol=1e-6,
  )
