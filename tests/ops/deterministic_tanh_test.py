"""The policy without randomness: its actions, and the operations that it refuses."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import deterministic_tanh

_TANH = deterministic_tanh.DeterministicTanh(2)
_PARAMS = np.float32([[0.0, 1.0], [-2.0, 30.0], [0.5, -0.5]])


def test_every_sample_is_the_mode_with_its_gradient():
  params = tf.constant(_PARAMS)
  for uniform in (0.0, 0.3, 1.0):
    with tf.GradientTape() as tape:
      tape.watch(params)
      actions = _TANH.sample(params, np.full((3, 2), uniform))
    np.testing.assert_allclose(actions, np.tanh(_PARAMS), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(actions, params), 1 - np.tanh(_PARAMS) ** 2, atol=1e-6)
  np.testing.assert_array_equal(_TANH.mode(_PARAMS), actions)


def test_the_entropy_is_0():
  np.testing.assert_array_equal(_TANH.entropy(_PARAMS), np.zeros(3))


@pytest.mark.parametrize(
  'call',
  [
    lambda: _TANH.log_prob(_PARAMS, np.tanh(_PARAMS)),
    lambda: _TANH.kl(_PARAMS, _PARAMS),
    lambda: _TANH.sample_with_log_prob(_PARAMS, np.full((3, 2), 0.5)),
  ],
)
def test_what_needs_a_density_is_refused_with_the_fix(call):
  with pytest.raises(types.UserError, match='choose a stochastic distribution, tanh_normal'):
    call()


def test_sizes_and_wrong_shapes():
  assert _TANH.is_reparametrizable
  assert (_TANH.num_params, _TANH.num_uniforms) == (2, 2)
  np.testing.assert_array_equal(_TANH.is_std, [False, False])
  with pytest.raises(ValueError, match='params have shape'):
    _TANH.mode(_PARAMS[:, :1])
  with pytest.raises(ValueError, match='uniforms have shape'):
    _TANH.sample(_PARAMS, np.zeros((3, 1)))
  with pytest.raises(ValueError, match='num_actions'):
    deterministic_tanh.DeterministicTanh(0)
