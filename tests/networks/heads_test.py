"""Heads: the dueling equation, hidden layers, variable names in checkpoints."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.networks import heads
from seed_acme.networks import torsos

_ROWS, _FEATURES, _ACTIONS = 6, 5, 4
_STYLE = torsos.DenseStyle()


def _features():
  return tf.constant(np.random.default_rng(0).normal(size=(_ROWS, _FEATURES)), tf.float32)


def _run_with_random_weights(module):
  """Returns the output, and the weights by name; biases would be 0 initially."""
  module(_features())
  rng = np.random.default_rng(1)
  for variable in module.variables:
    variable.assign(rng.normal(size=variable.shape))
  weights = {
    v.name.removeprefix('heads/').removesuffix(':0'): v.numpy().astype(np.float64)
    for v in module.variables
  }
  return module(_features()), weights


def _mlp(weights, name, sizes):
  """Computes hidden layers with ReLU and then the dense layer `name`, in float64."""
  x = _features().numpy().astype(np.float64)
  for i in range(len(sizes)):
    layer = f'{name}_hidden/linear_{i}'
    x = np.maximum(x @ weights.pop(f'{layer}/w') + weights.pop(f'{layer}/b'), 0)
  return x @ weights.pop(f'{name}/w') + weights.pop(f'{name}/b', 0.0)


@pytest.mark.parametrize('sizes', [(), (7,), (7, 3)])
def test_dueling_heads_equal_their_equation(sizes):
  output, weights = _run_with_random_weights(heads.DuelingHeads(_ACTIONS, sizes, _STYLE))
  assert 'advantage/b' not in weights and 'value/b' in weights
  value, advantage = _mlp(weights, 'value', sizes), _mlp(weights, 'advantage', sizes)
  assert not weights  # nothing else is trained
  expected = value + advantage - advantage.mean(axis=1, keepdims=True)
  assert output.q_values.shape == (_ROWS, _ACTIONS)
  np.testing.assert_allclose(output.q_values, expected, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(
    np.mean(output.q_values, axis=1, keepdims=True), value, rtol=1e-4, atol=1e-4
  )


@pytest.mark.parametrize('sizes', [(), (7,), (7, 3)])
def test_actor_critic_heads_equal_their_definition(sizes):
  output, weights = _run_with_random_weights(heads.ActorCriticHeads(3, sizes, _STYLE, 1.0, 1.0))
  policy, value = _mlp(weights, 'policy', sizes), _mlp(weights, 'value', sizes)
  assert not weights
  np.testing.assert_allclose(output.policy_params, policy, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(output.value, value[:, 0], rtol=1e-4, atol=1e-4)
  assert output.value.shape == (_ROWS,)


def test_actor_critic_heads_without_hidden_layers_have_the_names_of_old_checkpoints():
  module = heads.ActorCriticHeads(3, (), _STYLE, 1.0, 1.0)
  module(_features())
  assert [v.name for v in module.variables] == [
    'heads/policy/b:0',
    'heads/policy/w:0',
    'heads/value/b:0',
    'heads/value/w:0',
  ]
