"""Cores: definition, resets, unroll = steps, and the LSTM's own backward pass."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.networks import cores
from seed_acme.networks import lstm
from seed_acme.networks import torso_core_heads

_ROWS, _BATCH, _FEATURES, _SIZE = 6, 5, 3, 4


def _make(name):
  tf.random.set_seed(1)
  return {
    'none': torso_core_heads.FeedForward,
    'lstm': lambda: lstm.LSTM(_SIZE),
    'gru': lambda: cores.GRU(_SIZE),
  }[name]()


def _rows(seed=0):
  rng = np.random.default_rng(seed)
  features = tf.constant(rng.normal(size=(_ROWS, _BATCH, _FEATURES)), tf.float32)
  is_first = rng.random((_ROWS, _BATCH)) < 0.3
  is_first[2, 0] = is_first[0, 1] = True
  return features, tf.constant(is_first)


def _state(core, seed=0):
  rng = np.random.default_rng(seed)
  return tf.nest.map_structure(
    lambda x: tf.constant(rng.normal(size=x.shape), tf.float32), core.initial_state(_BATCH)
  )


def _unroll_by_steps(core, features, is_first, state):
  outputs = []
  for t in range(features.shape[0]):
    output, state = core(features[t], is_first[t], state)
    outputs.append(output)
  return tf.stack(outputs), state


def _assert_close(actual, expected):
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['none', 'lstm', 'gru'])
def test_unroll_equals_steps_in_outputs_and_state(name):
  core = _make(name)
  features, is_first = _rows()
  state = _state(core)
  expected = _unroll_by_steps(core, features, is_first, state)
  _assert_close(core.unroll(features, is_first, state), expected)
  _assert_close(tf.function(core.unroll, autograph=False)(features, is_first, state), expected)


@pytest.mark.parametrize('name', ['lstm', 'gru'])
def test_a_first_row_forgets_all_before_it_even_nan(name):
  core = _make(name)
  features, _ = _rows()
  is_first = np.zeros((_ROWS, _BATCH), bool)
  is_first[3] = True
  state = _state(core)
  fresh, fresh_state = core.unroll(features[3:], is_first[3:], core.initial_state(_BATCH))
  outputs, last = core.unroll(features, tf.constant(is_first), state)
  _assert_close((outputs[3:], last), (fresh, fresh_state))
  broken = tf.nest.map_structure(lambda x: x * np.nan, state)
  is_first[0] = True
  outputs, _ = core.unroll(features, tf.constant(is_first), broken)
  assert np.isfinite(outputs).all()
  step, _ = core(features[0], tf.constant(is_first[0]), broken)
  assert np.isfinite(step).all()


@pytest.mark.parametrize('name', ['lstm', 'gru'])
def test_without_a_first_row_the_state_matters(name):
  core = _make(name)
  features, _ = _rows()
  is_first = tf.zeros((_ROWS, _BATCH), tf.bool)
  outputs, _ = core.unroll(features, is_first, _state(core, 0))
  others, _ = core.unroll(features, is_first, _state(core, 1))
  assert np.abs(outputs - others).min(axis=(0, 2)).max() > 0
  assert np.abs(outputs[-1] - others[-1]).max() > 1e-4


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def test_lstm_equals_its_equations():
  core = _make('lstm')
  features, _ = _rows()
  state = _state(core)
  _, new = core(features[0], tf.zeros(_BATCH, tf.bool), state)
  weights = {v.name.split('/')[-1]: v.numpy().astype(np.float64) for v in core.variables}
  gates = (
    features[0].numpy() @ weights['w_x:0']
    + state.hidden.numpy() @ weights['w_h:0']
    + weights['bias:0']
  )
  i, g, f, o = np.split(gates, 4, axis=-1)
  cell = _sigmoid(f) * state.cell.numpy() + _sigmoid(i) * np.tanh(g)
  np.testing.assert_allclose(new.cell, cell, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(new.hidden, _sigmoid(o) * np.tanh(cell), rtol=1e-5, atol=1e-6)
  np.testing.assert_array_equal(weights['bias:0'], np.repeat([0, 0, 1, 0], _SIZE))


def test_gru_equals_its_equations():
  core = _make('gru')
  features, _ = _rows()
  hidden = _state(core)
  output, _ = core(features[0], tf.zeros(_BATCH, tf.bool), hidden)
  weights = {v.name.split('/')[-1]: v.numpy().astype(np.float64) for v in core.variables}
  x = features[0].numpy() @ weights['w_x:0'] + weights['bias:0']
  h = hidden.numpy() @ weights['w_h:0']
  z, r, n = (slice(k * _SIZE, (k + 1) * _SIZE) for k in range(3))
  update, reset = _sigmoid(x[:, z] + h[:, z]), _sigmoid(x[:, r] + h[:, r])
  candidate = np.tanh(x[:, n] + reset * (h[:, n] + weights['bias_h:0']))
  expected = (1 - update) * candidate + update * hidden.numpy()
  np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_lstm_gradients_equal_automatic_differentiation(seed):
  """Compares gradients of outputs and last state by all inputs and weights, across resets."""
  core = _make('lstm')
  features, is_first = _rows(seed)
  state = _state(core, seed)
  core.unroll(features, is_first, state)
  rng = np.random.default_rng(seed)
  gradients = []
  weights = [
    tf.constant(rng.normal(size=s), tf.float32)
    for s in ((_ROWS, _BATCH, _SIZE), (_BATCH, _SIZE), (_BATCH, _SIZE))
  ]
  for unroll in (core.unroll, lambda *args: _unroll_by_steps(core, *args)):
    with tf.GradientTape() as tape:
      tape.watch([features, state])
      outputs, last = unroll(features, is_first, state)
      total = tf.add_n([tf.reduce_sum(w * x) for w, x in zip(weights, (outputs, *last))])
    gradients.append(tape.gradient(total, [features, *state, *core.trainable_variables]))
  for ours, theirs in zip(*gradients):
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def test_lstm_gradient_equals_finite_differences():
  core = _make('lstm')
  features, is_first = _rows()
  state = _state(core)

  def total():
    outputs, last = core.unroll(features, is_first, state)
    return tf.reduce_sum(outputs**2) + tf.reduce_sum(last.cell)

  total()
  rng = np.random.default_rng(0)
  for variable in core.trainable_variables:
    with tf.GradientTape() as tape:
      loss = total()
    direction = rng.normal(size=variable.shape).astype(np.float32)
    slope = float(tf.reduce_sum(tape.gradient(loss, variable) * direction))
    start, step = variable.numpy(), 1e-2
    variable.assign(start + step * direction)
    above = float(total())
    variable.assign(start - step * direction)
    below = float(total())
    variable.assign(start)
    np.testing.assert_allclose((above - below) / (2 * step), slope, rtol=2e-2, atol=2e-2)
