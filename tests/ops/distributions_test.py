"""The categorical distribution against plain numpy, and its sampling."""

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf
from tensorflow.python.eager import context

from seed_acme.ops import distributions

CATEGORICAL = distributions.Categorical(4)


def _params(num_rows=6, num_actions=4, seed=0):
  return np.random.default_rng(seed).normal(size=(num_rows, num_actions)).astype(np.float32)


def _probabilities(params):
  exponentials = np.exp(params.astype(np.float64))
  return exponentials / exponentials.sum(-1, keepdims=True)


def test_log_prob_entropy_and_kl_equal_their_definitions():
  params, other = _params(), _params(seed=1)
  p, q = _probabilities(params), _probabilities(other)
  actions = np.array([0, 1, 2, 3, 0, 1])
  np.testing.assert_allclose(
    CATEGORICAL.log_prob(params, actions), np.log(p[np.arange(6), actions]), rtol=1e-5
  )
  np.testing.assert_allclose(CATEGORICAL.entropy(params), stats.entropy(p, axis=-1), rtol=1e-5)
  np.testing.assert_allclose(CATEGORICAL.kl(params, other), stats.entropy(p, q, axis=-1), rtol=1e-4)
  np.testing.assert_array_equal(CATEGORICAL.mode(params), p.argmax(-1))


def test_logits_of_minus_infinity_mask_actions():
  params, other = _params(), _params(seed=1)
  masked = np.where(np.arange(4) == 2, -np.inf, params).astype(np.float32)
  other = np.where(np.arange(4) == 2, -np.inf, other).astype(np.float32)
  three = distributions.Categorical(3)
  rest = [0, 1, 3]
  with tf.GradientTape(persistent=True) as tape:
    logits = tf.constant(masked)
    tape.watch(logits)
    entropy, divergence = CATEGORICAL.entropy(logits), CATEGORICAL.kl(logits, other)
  np.testing.assert_allclose(entropy, three.entropy(masked[:, rest]), rtol=1e-5)
  np.testing.assert_allclose(divergence, three.kl(masked[:, rest], other[:, rest]), rtol=1e-4)
  for value in (entropy, divergence):
    gradient = tape.gradient(value, logits).numpy()
    assert np.isfinite(gradient).all() and (gradient[:, 2] == 0).all()
    assert (gradient[:, rest] != 0).any()
  assert np.isposinf(CATEGORICAL.kl(params, other)).all()  # an action that q makes impossible


def test_leading_axes_are_free():
  params = _params().reshape(2, 3, 4)
  actions = np.zeros((2, 3), np.int64)
  assert CATEGORICAL.log_prob(params, actions).shape == (2, 3)
  assert CATEGORICAL.entropy(params).shape == (2, 3)
  assert CATEGORICAL.sample(params, np.full((2, 3, 1), 0.5)).shape == (2, 3)


def test_extreme_params_stay_finite_with_their_gradients():
  params = tf.constant([[1e4, -1e4, 0.0, 0.0]])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(params)
    numbers = [
      CATEGORICAL.entropy(params),
      CATEGORICAL.log_prob(params, [1]),
      CATEGORICAL.kl(params, params),
    ]
  for number in numbers:
    assert np.isfinite(number).all()
    assert np.isfinite(tape.gradient(number, params)).all()


@pytest.mark.parametrize(
  'row',
  [
    [0.3, -2.0, 1.5, 0.0],
    [1e4, -1e4, 0.0, 0.0],
    [0.0, -1e30, 2.0, -1e30],  # as `MultiCategorical` pads
    [0.0, -np.inf, 2.0, -np.inf],
  ],
)
def test_log_prob_and_its_gradient_equal_the_cross_entropy(row):
  params, actions = tf.constant([row] * 4, tf.float32), tf.range(4)
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(params)
    log_prob = CATEGORICAL.log_prob(params, actions)
    expected = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=params)
  np.testing.assert_allclose(log_prob, expected, rtol=1e-6, atol=1e-6)
  found, wanted = tape.gradient(log_prob, params), tape.gradient(expected, params)
  assert np.isfinite(found).all()
  np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_an_action_that_does_not_exist_has_no_log_prob():
  log_prob = CATEGORICAL.log_prob(_params(4), [-1, 0, 3, 4])
  np.testing.assert_array_equal(np.isnan(log_prob), [True, False, False, True])


@pytest.mark.slow
def test_log_prob_entropy_and_kl_share_a_logarithm():

  @tf.function(input_signature=[tf.TensorSpec([6, 4]), tf.TensorSpec([6], tf.int32)])
  def quantities(params, actions):
    log_prob = CATEGORICAL.log_prob(params, actions)
    return log_prob, CATEGORICAL.entropy(params), CATEGORICAL.kl(params, tf.zeros([6, 4]))

  context.enable_run_metadata()
  try:
    quantities(_params(), np.zeros(6, np.int32))
    graphs = context.export_run_metadata().function_graphs
  finally:
    context.disable_run_metadata()
  operations = [node.op for x in graphs for node in x.post_optimization_graph.node]
  assert sum('LogSoftmax' in operation for operation in operations) == 1
  assert not any('CrossEntropy' in operation for operation in operations)


def test_sampling_frequencies_are_the_probabilities():
  params = np.float32([2.0, 0.0, -1.0, 1.0])
  num_samples = 20_000
  uniforms = np.random.default_rng(7).random((num_samples, 1), np.float32)
  actions = CATEGORICAL.sample(np.tile(params, (num_samples, 1)), uniforms)
  counts = np.bincount(actions, minlength=4)
  expected = _probabilities(params) * num_samples
  assert stats.chisquare(counts, expected).pvalue > 1e-3
  # The test is sensitive: the frequencies of another policy fail it.
  assert stats.chisquare(np.roll(counts, 1), expected).pvalue < 1e-9


def test_sampling_inverts_the_distribution_function_by_hand():
  params, categorical = np.log(np.float32([[0.25, 0.5, 0.25]])), distributions.Categorical(3)
  for uniform, action in ((0.0, 0), (0.24, 0), (0.26, 1), (0.74, 1), (0.76, 2), (0.99, 2)):
    assert categorical.sample(params, [[uniform]]).numpy().tolist() == [action]


@pytest.mark.parametrize('uniform', [0.0, 1e-45, 1.0 - 2.0**-24, 1.0])
def test_at_the_edges_no_impossible_action_is_taken(uniform):
  rng = np.random.default_rng(3)
  params = rng.normal(size=(500, 7)).astype(np.float32)
  params[:, [0, 3, 6]] = -1e9  # probability exactly 0, also for the first and last choice
  uniforms = np.full((500, 1), uniform, np.float32)
  actions = distributions.Categorical(7).sample(params, uniforms).numpy()
  assert set(actions) <= {1, 2, 4, 5}
  assert (actions == (1 if uniform < 0.5 else 5)).all()


def test_many_actions_with_a_uniform_of_1_stay_in_range():
  categorical, uniforms = distributions.Categorical(1000), np.ones((200, 1), np.float32)
  actions = categorical.sample(_params(200, 1000), uniforms).numpy()
  assert actions.max() <= 999
  assert actions.min() >= 990


def test_a_sample_comes_with_its_log_probability_and_the_gradient_of_the_score():
  params, uniforms = tf.constant(_params()), np.random.default_rng(2).random((6, 1), np.float32)
  with tf.GradientTape() as tape:
    tape.watch(params)
    actions, log_prob = CATEGORICAL.sample_with_log_prob(params, uniforms)
  np.testing.assert_array_equal(actions, CATEGORICAL.sample(params, uniforms))
  p = _probabilities(params.numpy())
  np.testing.assert_allclose(log_prob, np.log(p[np.arange(6), actions]), rtol=1e-5)
  np.testing.assert_allclose(tape.gradient(log_prob, params), np.eye(4)[actions] - p, atol=1e-6)
  assert not CATEGORICAL.is_reparametrizable


def test_sizes():
  assert (CATEGORICAL.num_params, CATEGORICAL.num_uniforms) == (4, 1)
  np.testing.assert_array_equal(CATEGORICAL.is_std, [False] * 4)
  with pytest.raises(ValueError, match='num_actions .0. must be at least 1'):
    distributions.Categorical(0)


def test_wrong_shapes_are_named():
  with pytest.raises(ValueError, match='actions have shape'):
    CATEGORICAL.log_prob(_params(), np.zeros(5, int))
  with pytest.raises(ValueError, match='uniforms have shape'):
    CATEGORICAL.sample(_params(), np.zeros(6))
  with pytest.raises(ValueError, match='other_params have'):
    CATEGORICAL.kl(_params(), _params(num_actions=3))
  for call in (CATEGORICAL.entropy, CATEGORICAL.mode):
    with pytest.raises(ValueError, match=r'params have shape .6, 3., but \[..., 4\] is needed'):
      call(_params(num_actions=3))
