"""The shift by one, the mask, and masked means."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import advantages
from seed_acme.ops import nstep
from seed_acme.ops import transitions
from seed_acme.ops import vtrace

FIRST, MID, LAST = types.FIRST, types.MID, types.LAST


def _inputs(step_type, reward, discount):
  column = lambda x, dtype: np.asarray(x, dtype)[:, None]
  return types.AgentInput(
    step_type=column(step_type, np.uint8),
    reward=column(reward, np.float32),
    discount=column(discount, np.float32),
    previous_action=None,
    observation=None,
  )


def test_a_row_by_hand():
  rows = _inputs(
    [MID, LAST, FIRST, MID, LAST], [9.0, 1.0, 7.0, 2.0, 3.0], [1.0, 0.5, 1.0, 0.8, 0.0]
  )
  rewards, discounts, mask = transitions.transitions(rows, gamma=0.9)
  np.testing.assert_array_equal(mask[:, 0], [True, False, True, True])
  np.testing.assert_allclose(rewards[:, 0], [1.0, 0.0, 2.0, 3.0])
  np.testing.assert_allclose(discounts[:, 0], [0.45, 0.0, 0.72, 0.0], rtol=1e-6)
  assert rewards.dtype == discounts.dtype == tf.float32


def _vtrace(values, steps):
  return vtrace.vtrace(
    values,
    steps.rewards,
    steps.discounts,
    np.full(steps.rewards.shape, 0.3, np.float32),
    steps.mask,
    lambda_=0.9,
    rho_clip=1.2,
    c_clip=1.0,
    policy_rho_clip=1.0,
    advantage_lambda=1.0,
  )


@pytest.mark.parametrize(
  'estimate',
  [
    _vtrace,
    lambda values, steps: advantages.gae(values, *steps, lambda_=0.9),
    lambda values, steps: nstep.nstep_returns(values, *steps, n=3),
    lambda values, steps: nstep.nstep_q_targets(values, *steps, n=3, epsilon=1e-3),
  ],
  ids=['vtrace', 'gae', 'nstep', 'nstep_q'],
)
def test_a_mid_row_with_discount_0_cuts_the_value_and_all_steps_are_learnt(estimate):
  """Two lives in one trace equal the two separately, though no row between them is masked."""
  step_type, reward = [FIRST, MID, MID, MID, MID, MID], [0.0, 1.0, -2.0, 3.0, 5.0, 8.0]
  values = np.array([[0.5], [2.0], [-1.0], [7.0], [4.0], [9.0]], np.float32)
  steps = transitions.transitions(_inputs(step_type, reward, [1, 1, 1, 0, 1, 1]), gamma=0.9)
  assert np.all(steps.mask)
  whole = estimate(values, steps)
  first = transitions.transitions(_inputs(step_type[:4], reward[:4], [1, 1, 1, 0]), gamma=0.9)
  second = transitions.transitions(_inputs(step_type[3:], reward[3:], [0, 1, 1]), gamma=0.9)
  # The value of the row in which the life is lost belongs to the next life.
  apart = [estimate([*values[:3], [1000.0]], first), estimate(values[3:], second)]
  for name, joined in zip(('first', 'second'), (slice(0, 3), slice(3, 5))):
    part = apart[0] if name == 'first' else apart[1]
    for a, b in zip(tf.nest.flatten(whole), tf.nest.flatten(part)):
      np.testing.assert_allclose(a[joined], b, rtol=1e-6, err_msg=name)


def test_what_a_masked_row_holds_is_not_read():
  rows = _inputs([LAST, FIRST, MID], [0.0, np.nan, 2.0], [1.0, np.nan, 1.0])
  rewards, discounts, _ = transitions.transitions(rows, gamma=0.5)
  np.testing.assert_array_equal(rewards[:, 0], [0.0, 2.0])
  np.testing.assert_array_equal(discounts[:, 0], [0.0, 0.5])


def test_one_row_is_refused():
  with pytest.raises(ValueError, match='at least 2'):
    transitions.transitions(_inputs([MID], [0.0], [1.0]), gamma=0.9)


def test_a_missing_batch_axis_is_refused():
  rows = _inputs([MID, MID], [0.0, 0.0], [1.0, 1.0])
  with pytest.raises(ValueError, match='reward has shape'):
    transitions.transitions(rows._replace(reward=rows.reward[:, 0]), gamma=0.9)


def test_masked_mean_counts_and_differentiates_unmasked_rows_only():
  x = tf.constant([[1.0, np.nan], [4.0, np.inf]])
  mask = np.array([[True, False], [True, False]])
  with tf.GradientTape() as tape:
    tape.watch(x)
    mean = transitions.masked_mean(x, mask)
  assert float(mean) == 2.5
  np.testing.assert_array_equal(tape.gradient(mean, x), [[0.5, 0.0], [0.5, 0.0]])


def test_masked_mean_of_nothing_is_zero_with_zero_gradient():
  x = tf.constant([[np.nan, 2.0]])
  with tf.GradientTape() as tape:
    tape.watch(x)
    mean = transitions.masked_mean(x, np.zeros((1, 2), bool))
  assert float(mean) == 0.0
  np.testing.assert_array_equal(tape.gradient(mean, x), [[0.0, 0.0]])


def test_masked_mean_refuses_to_broadcast():
  with pytest.raises(ValueError, match='mask has'):
    transitions.masked_mean(np.zeros((3, 2), np.float32), np.ones((3, 1), bool))


@pytest.mark.parametrize('num_steps', [1, 2, 7])
def test_backward_sums_equal_a_loop(num_steps):
  rng = np.random.default_rng(num_steps)
  x, decay = rng.normal(size=(2, num_steps, 3)).astype(np.float32)
  expected, total = np.zeros_like(x), 0.0
  for t in reversed(range(num_steps)):
    total = x[t] + decay[t] * total
    expected[t] = total
  sums = transitions.backward_sums(tf.constant(x), tf.constant(decay))
  np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-6)


def test_backward_sums_of_an_unknown_number_of_rows_are_refused():

  @tf.function(input_signature=[tf.TensorSpec([None, 3])])
  def traced(x):
    return transitions.backward_sums(x, x)

  with pytest.raises(ValueError, match='must be static'):
    traced(tf.zeros([2, 3]))
