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


def test_heads_without_hidden_layers_start_with_the_weights_of_separate_layers():
  tf.random.set_seed(3)
  module = heads.ActorCriticHeads(3, (), _STYLE, 1.0, 0.5)
  module(_features())
  tf.random.set_seed(3)
  initializers = (_STYLE.output_initializer(gain) for gain in (1.0, 0.5))
  layers = [
    torsos.linear(*x, w_init=w) for x, w in zip([(3, 'policy'), (1, 'value')], initializers)
  ]
  for layer in layers:
    layer(_features())
  for variable, expected in zip(module.variables, [v for x in layers for v in x.variables]):
    np.testing.assert_array_equal(variable, expected)


def _products(graph):
  return sum(operation.type == 'MatMul' for operation in graph.get_operations())


@pytest.mark.slow
@pytest.mark.parametrize(('sizes', 'products'), [((), 3), ((7,), 12)])
@pytest.mark.parametrize(
  'module_of',
  [
    lambda sizes: heads.ActorCriticHeads(3, sizes, _STYLE, 1.0, 1.0),
    lambda sizes: heads.DuelingHeads(_ACTIONS, sizes, _STYLE),
  ],
)
def test_heads_without_hidden_layers_share_a_product(module_of, sizes, products):
  module = module_of(sizes)
  module(_features())

  @tf.function(input_signature=[tf.TensorSpec([None, _FEATURES])])
  def gradients(x):
    with tf.GradientTape() as tape:
      tape.watch(x)
      loss = sum(tf.reduce_sum(y**2) for y in module(x))
    return tape.gradient(loss, [x, *module.trainable_variables])

  assert _products(gradients.get_concrete_function().graph) == products


@pytest.mark.parametrize('module_of', [heads.ActorCriticHeads, heads.DuelingHeads])
def test_a_shared_product_has_the_gradients_of_separate_layers(module_of):
  gains = (1.0, 1.0) if module_of is heads.ActorCriticHeads else ()
  module, x = module_of(_ACTIONS, (), _STYLE, *gains), _features()
  _run_with_random_weights(module)
  weights = {v.name.removeprefix('heads/').removesuffix(':0'): v for v in module.variables}

  def separate():
    value = tf.matmul(x, weights['value/w']) + weights['value/b']
    if module_of is heads.ActorCriticHeads:
      return tf.matmul(x, weights['policy/w']) + weights['policy/b'], value[:, 0]
    advantage = tf.matmul(x, weights['advantage/w'])
    return [value + advantage - tf.reduce_mean(advantage, axis=1, keepdims=True)]

  def outputs_and_gradients(function):
    with tf.GradientTape() as tape:
      tape.watch(x)
      outputs = function()
      loss = tf.add_n([tf.reduce_sum(tf.sin(y)) for y in outputs])
    return [*outputs, *tape.gradient(loss, [x, *weights.values()])]

  for found, expected in zip(
    outputs_and_gradients(lambda: module(x)), outputs_and_gradients(separate), strict=True
  ):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
