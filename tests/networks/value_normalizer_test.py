"""PopArt: normalised values, with and without compensation."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme.networks import running_statistics

_OUTPUTS = np.float32([-3.0, -0.2, 0.0, 1.5, 40.0])


def _targets(i, rng):
  """Returns targets whose scale varies by a factor of 3,000 and whose mean drifts."""
  scale = 10.0 ** (2 * np.sin(i / 7) - 0.5)
  return rng.normal(scale * np.cos(i / 3), scale, 16).astype(np.float32)


def _linear(has_last_layer):
  """Returns x = w h + b for five h, and a PopArt that has w and b, or appends a layer."""
  w, b = tf.Variable([[0.5], [-1.0]]), tf.Variable([0.3])
  hidden = np.float32([[-3, 0.1], [-0.2, 1], [0, 0], [1.5, -2], [40, 3]])
  normalizer = running_statistics.ValueNormalizer(
    0.2, compensates=True, keeps_previous=True, last_layer=(w, b) if has_last_layer else None
  )
  return normalizer, lambda: (hidden @ w + b)[:, 0], w, b


@pytest.mark.slow
@pytest.mark.parametrize('has_last_layer', [False, True])
def test_with_compensation_the_values_are_preserved_over_many_updates(has_last_layer):
  rng = np.random.default_rng(0)
  normalizer, outputs, _, _ = _linear(has_last_layer)
  normalizer.update(tf.constant(_targets(0, rng)), tf.fill([16], True))
  before, stds = normalizer.value(outputs()).numpy(), []
  for i in range(30):
    normalizer.update(tf.constant(_targets(i, rng)), tf.fill([16], True))
    stds.append(float(normalizer.std()))
    previous = normalizer.normalize_previous(normalizer.value(outputs()))
    np.testing.assert_allclose(previous, normalizer.normalize(normalizer.value(outputs())))
  np.testing.assert_allclose(normalizer.value(outputs()), before, rtol=1e-4, atol=1e-4)
  assert max(stds) / min(stds) > 3


def test_the_last_layer_changes_as_in_the_paper():
  """The formulas are w' = (sigma / sigma') w, b' = (sigma b + m - m') / sigma' (proposition 1)."""
  rng = np.random.default_rng(0)
  normalizer, outputs, w, b = _linear(True)
  normalizer.update(tf.constant(_targets(0, rng)), tf.fill([16], True))
  for i in range(5):
    old_w, old_b, mean, std = (x.numpy() for x in (w, b, normalizer.mean(), normalizer.std()))
    normalizer.update(tf.constant(_targets(i, rng)), tf.fill([16], True))
    new_mean, new_std = normalizer.mean().numpy(), normalizer.std().numpy()
    np.testing.assert_allclose(w, std / new_std * old_w, rtol=1e-5)
    np.testing.assert_allclose(b, (std * old_b + mean - new_mean) / new_std, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
      normalizer.value(outputs()), new_std * outputs() + new_mean, rtol=1e-5, atol=1e-5
    )
  assert abs(w.numpy()[0, 0] - 0.5) > 0.1 and abs(b.numpy()[0] - 0.3) > 0.1


@pytest.mark.parametrize('has_last_layer', [False, True])
@pytest.mark.parametrize('targets', [[[0.0, 0.0]], []])
def test_the_first_spread_leaves_the_outputs_and_before_it_values_are_next_to_nothing(
  targets, has_last_layer
):
  normalizer, outputs, _, _ = _linear(has_last_layer)
  x = outputs().numpy()
  for constant in targets:  # no spread either
    normalizer.update(tf.constant(constant), tf.fill([2], True))
  before = normalizer.value(outputs())
  np.testing.assert_allclose(before, np.zeros(5), atol=1e-9)
  normalizer.update(tf.constant([1000.0, 3000.0]), tf.fill([2], True))
  after = normalizer.value(outputs())
  np.testing.assert_allclose(after, normalizer.std() * x + normalizer.mean(), rtol=1e-5)
  np.testing.assert_allclose(normalizer.normalize(after), x, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(normalizer.normalize_previous(before), x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('has_last_layer', [False, True])
def test_bootstrapping_from_an_untrained_network_is_no_spread(has_last_layer):
  """Rewards are 0 for five updates, so that all targets are discounted values of the network."""
  normalizer, outputs, w, _ = _linear(has_last_layer)
  w.assign(100 * w)  # as with observations that are not normalised
  x = outputs().numpy()
  for _ in range(5):
    normalizer.update(0.99 * normalizer.value(outputs()), tf.fill([5], True))
  assert not normalizer.has_spread()
  normalizer.update(tf.constant([0.0, 0.0, 0.0, 1.0]), tf.fill([4], True))
  np.testing.assert_allclose(
    normalizer.value(outputs()), normalizer.std() * x + normalizer.mean(), rtol=1e-5
  )


def _fitting(form, num_steps=200):
  """Returns a function from the scale of the targets to the error after as many steps of Adam.

  It is the mean squared error in deviations. `known`: the targets are standardised before. Each
  call begins with the same variables, because tracing takes longer than the steps.
  """
  rng = np.random.default_rng(0)
  tf.random.set_seed(0)
  network, optimizer = snt.nets.MLP([32, 1], activation=tf.tanh), snt.optimizers.Adam(1e-2)
  x = rng.normal(size=(256, 2)).astype(np.float32)
  batches = tf.constant(rng.integers(0, 256, [num_steps, 32]))
  network(x)
  [layer] = [m for m in network.submodules if isinstance(m, snt.Linear) and m.output_size == 1]
  values = running_statistics.ValueNormalizer(
    None,
    compensates=form != 'known',
    keeps_previous=False,
    last_layer=(layer.w, layer.b) if form == 'last layer' else None,
  )
  variables = [*network.trainable_variables, *values.trainable_variables]
  optimizer.apply([tf.zeros_like(v) for v in variables], variables)  # makes its variables
  kept = [*network.variables, *values.variables]
  initial = [v.numpy() for v in kept]

  @tf.function
  def fit(y, batches):
    for rows in batches:
      targets = tf.gather(y, rows)
      if form != 'known':
        values.update(targets, tf.fill([32], True))
      with tf.GradientTape() as tape:
        predicted = values.value(network(tf.gather(x, rows))[:, 0])
        errors = values.normalize(predicted) - values.normalize(targets)
        loss = tf.reduce_mean(tf.square(errors))
      gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
      optimizer.apply(gradients, variables)

  def fitted_error(scale):
    for variable, value in zip(kept, initial, strict=True):
      variable.assign(value)
    for variable in optimizer.variables:
      variable.assign(tf.zeros_like(variable))
    y = scale * (3 + np.sin(2 * x[:, 0]) + x[:, 1]).astype(np.float32)
    if form == 'known':
      values.update(y, tf.fill([256], True))
    fit(tf.constant(y), batches)
    return np.mean((values.value(network(x)[:, 0]) - y) ** 2) / np.var(y)

  return fitted_error


@pytest.mark.slow
def test_targets_of_every_scale_are_learnt_equally_fast():
  """It is as fast as with targets standardised before; the error of a constant is 1."""
  known = _fitting('known')(1.0)
  assert known < 0.05
  for form, other_scale in (('last layer', 0.01), ('appended layer', 1000.0)):
    fitted_error = _fitting(form)
    errors = [fitted_error(scale) for scale in (1.0, other_scale)]
    np.testing.assert_allclose(*errors, rtol=0.1)
    assert max(errors) < 2 * known


def test_without_compensation_the_normalised_outputs_stay_and_the_values_move():
  rng = np.random.default_rng(0)
  normalizer = running_statistics.ValueNormalizer(None, compensates=False, keeps_previous=False)
  for i in range(5):
    targets = _targets(i, rng)
    normalizer.update(tf.constant(targets), tf.fill([16], True))
    np.testing.assert_allclose(
      normalizer.normalize(normalizer.value(_OUTPUTS)), _OUTPUTS, rtol=1e-4, atol=1e-4
    )
  np.testing.assert_allclose(
    normalizer.value(_OUTPUTS), normalizer.std() * _OUTPUTS + normalizer.mean(), rtol=1e-6
  )
  assert np.abs(normalizer.value(_OUTPUTS) - _OUTPUTS).max() > 1


def test_values_are_in_units_of_the_reward_and_normalising_is_the_inverse():
  normalizer = running_statistics.ValueNormalizer(None, compensates=False, keeps_previous=False)
  normalizer.update(
    tf.constant([[90.0, np.nan], [110.0, 100.0]]), tf.constant([[True, False], [True, True]])
  )
  np.testing.assert_allclose(normalizer.mean(), 100.0)
  np.testing.assert_allclose(normalizer.std(), np.sqrt(200 / 3), rtol=1e-6)
  np.testing.assert_allclose(
    normalizer.value([0.0, 1.0]), [100.0, 100 + np.sqrt(200 / 3)], rtol=1e-6
  )
  np.testing.assert_allclose(
    normalizer.normalize(normalizer.value(_OUTPUTS)), _OUTPUTS, rtol=1e-4, atol=1e-5
  )


def test_updates_are_the_same_in_a_graph():
  """Values are read before they are assigned, in whatever order the graph runs."""
  (eager, _, *eager_layer), (graph, _, *graph_layer) = _linear(True), _linear(True)
  update = tf.function(graph.update, autograph=False)
  for i in range(6):
    targets = tf.constant(_targets(i, np.random.default_rng(i)))
    eager.update(targets, tf.fill([16], True))
    update(targets, tf.fill([16], True))
  for a, b in zip([*eager.variables, *eager_layer], [*graph.variables, *graph_layer]):
    np.testing.assert_allclose(a, b, rtol=1e-6)
