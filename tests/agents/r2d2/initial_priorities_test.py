"""Priorities of unrolls that have not been learnt from yet."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import learner
from seed_acme.agents.r2d2 import loss as loss_lib

_T = 9
_CONFIG = r2d2_config.R2D2Config(
  unroll_length=_T,
  overlap=0,
  batch_size=6,
  discount=0.9,
  num_bootstrap_steps=5,
  rescaling_epsilon=0.01,
)


def _initial(unrolls, config):
  return loss_lib.initial_priorities(
    tf.nest.map_structure(tf.convert_to_tensor, unrolls), config
  ).numpy()


def _batch_major(unroll):
  """Returns an unroll as the writer stores it: leaves `[K, L, ...]`."""
  swapped = tf.nest.map_structure(lambda x: np.swapaxes(x, 0, 1), unroll._replace(initial_state=()))
  return swapped._replace(initial_state=unroll.initial_state)


@pytest.mark.slow
@pytest.mark.parametrize('overlap', [0, 3])
@pytest.mark.parametrize('num_unrolls', [1, 6])
def test_they_are_the_losses_at_equal_weights(make_network, make_sample, overlap, num_unrolls):
  config = dataclasses.replace(_CONFIG, overlap=overlap)
  network = make_network()
  learner.copy(network)
  sample = make_sample(network, overlap + _T + 1, num_padding=(overlap,))
  # The acting network's outputs in all rows, from the stored state on.
  prediction, _ = network.online.unroll(sample.unroll.inputs, sample.unroll.initial_state)
  outputs = sample.unroll.outputs._replace(prediction=types.QOutput(prediction.q_values.numpy()))
  unroll = sample.unroll._replace(outputs=outputs)
  wanted = loss_lib.loss(network, sample._replace(unroll=unroll), config).priorities
  some = tf.nest.map_structure(lambda x: x[:num_unrolls], _batch_major(unroll))
  actual = _initial(some, config)
  np.testing.assert_allclose(actual, wanted[:num_unrolls], rtol=1e-5)
  assert np.ptp(wanted) > 0.1


def test_the_best_action_bootstraps_though_another_was_played():
  """Two rows, one step, reward 0: |h(gamma h^-1(max Q)) - Q(played)|, calculated by hand.

  epsilon of h is 0, so h(x) = sqrt(x + 1) - 1 and h^-1(3) = 15; 0.5 * 15 = 7.5.
  """
  config = r2d2_config.R2D2Config(
    unroll_length=1,
    overlap=0,
    batch_size=1,
    discount=0.5,
    num_bootstrap_steps=1,
    rescaling_epsilon=0.0,
  )
  ones = np.ones((1, 2), np.float32)
  unroll = types.Unroll(
    (),
    types.AgentInput(
      step_type=np.full((1, 2), types.MID, np.uint8),
      reward=0 * ones,
      discount=ones,
      previous_action=np.zeros((1, 2), np.int32),
      observation=ones[..., None],
    ),
    types.AgentOutput(
      action=np.int32([[1, 0]]),  # the worst in both rows
      prediction=types.QOutput(np.float32([[[5, 0.25], [0, 3]]])),
    ),
    np.zeros((1, 2), np.int64),
  )
  target = np.sqrt(7.5 + 1) - 1
  np.testing.assert_allclose(_initial(unroll, config), [target - 0.25], rtol=1e-5)


@pytest.mark.parametrize('overlap', [0, 3])
def test_rows_of_the_overlap_do_not_count(make_network, make_sample, overlap):
  config = dataclasses.replace(_CONFIG, overlap=overlap)
  network = make_network()
  unrolls = _batch_major(make_sample(network, overlap + _T + 1).unroll)
  expected = _initial(unrolls, config)
  head = lambda x: np.concatenate([np.full_like(x[:, :overlap], 1), x[:, overlap:]], axis=1)
  changed = tf.nest.map_structure(head, (unrolls.inputs, unrolls.outputs))
  np.testing.assert_array_equal(
    _initial(unrolls._replace(inputs=changed[0], outputs=changed[1]), config), expected
  )


def test_an_unroll_without_any_step_has_the_priority_0(make_network, make_sample):
  unrolls = _batch_major(make_sample(make_network(), _T + 1, num_padding=(_T + 1, 0)).unroll)
  priorities = _initial(unrolls, _CONFIG)
  assert priorities[0] == 0
  assert (priorities[1:] > 0).all()
