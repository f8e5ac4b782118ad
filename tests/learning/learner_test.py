"""The learner on made-up samples: its arithmetic and its metrics."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from tests.learning import learners


def _adam(config, gradients):
  """Returns Adam's total change for these gradients (Kingma and Ba 2015, algorithm 1)."""
  m, v, change = 0.0, 0.0, 0.0
  for t, g in enumerate(gradients, start=1):
    m = config.adam_beta1 * m + (1 - config.adam_beta1) * g
    v = config.adam_beta2 * v + (1 - config.adam_beta2) * g * g
    m_hat, v_hat = m / (1 - config.adam_beta1**t), v / (1 - config.adam_beta2**t)
    change = change - config.learning_rate * m_hat / (np.sqrt(v_hat) + config.epsilon)
  return change


def _rmsprop(config, gradients):
  """Returns the same for TensorFlow's form of Hinton's lecture 6e: epsilon within the root."""
  square, momentum, change = 0.0, 0.0, 0.0
  for g in gradients:
    square = config.rmsprop_decay * square + (1 - config.rmsprop_decay) * g * g
    momentum = config.rmsprop_momentum * momentum + config.learning_rate * g / np.sqrt(
      square + config.epsilon
    )
    change = change - momentum
  return change


@pytest.mark.slow
@pytest.mark.parametrize(
  'reference, settings',
  [
    (_adam, {'name': 'adam', 'adam_beta1': 0.8, 'adam_beta2': 0.95, 'epsilon': 1e-3}),
    (_adam, {'name': 'adam'}),
    (_rmsprop, {'name': 'rmsprop', 'rmsprop_decay': 0.9, 'epsilon': 0.1}),
    (_rmsprop, {'name': 'rmsprop', 'rmsprop_momentum': 0.7, 'epsilon': 0.01}),
  ],
)
def test_optimizers_equal_a_slow_reference(reference, settings):
  learner = learners.linear_learner(**settings)
  start = learners.values(learner)
  samples = [learners.sample(seed, scale=10**-seed) for seed in range(4)]
  for sample in samples:
    learner.step(sample, agent_steps=0)
  config = config_lib.OptimizerConfig(**{'learning_rate': learners.RATE, **settings})
  gradients = zip(*[learners.linear_gradients(sample) for sample in samples])
  for before, after, of_steps in zip(start, learners.values(learner), gradients):
    np.testing.assert_allclose(after, before + reference(config, of_steps), rtol=1e-5, atol=1e-6)


def _applied_norm(learner):
  """Returns the norm of the gradient that reached Adam with beta1 = 0, from its first moment."""
  moments = [x for name, x in learner.save().items() if '/m/' in name]
  assert len(moments) == 2
  return np.sqrt(sum(np.sum(np.square(x, dtype=np.float64)) for x in moments))


@pytest.mark.slow
@pytest.mark.parametrize('max_norm', [0.3, 1e3, 0.0])
def test_gradients_are_scaled_down_to_the_limit_and_reported_unscaled(max_norm):
  learner = learners.linear_learner(max_gradient_norm=max_norm, adam_beta1=0.0)
  sample = learners.sample()
  norm = np.sqrt(sum(np.sum(g**2) for g in learners.linear_gradients(sample)))
  assert norm > 0.3
  metrics = learner.step(sample, agent_steps=0).metrics
  assert metrics['learner/gradient_norm'] == pytest.approx(norm, rel=1e-5)
  expected = min(norm, max_norm) if max_norm else norm
  assert _applied_norm(learner) == pytest.approx(expected, rel=1e-5)


def test_clipping_keeps_the_direction():
  learner = learners.linear_learner(max_gradient_norm=0.01, adam_beta1=0.0)
  sample = learners.sample()
  learner.step(sample, agent_steps=0)
  gradients = learners.linear_gradients(sample)
  scale = 0.01 / np.sqrt(sum(np.sum(g**2) for g in gradients))
  moments = [x for name, x in learner.save().items() if '/m/' in name]
  for moment, gradient in zip(moments, gradients):
    np.testing.assert_allclose(moment, gradient * scale, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
  'final_share, agent_steps, share',
  [(0.0, 0, 1.0), (0.0, 250, 0.75), (0.0, 2000, 0.0), (0.2, 500, 0.6), (0.2, 2000, 0.2)],
)
def test_linear_schedule_runs_over_the_steps_of_the_experiment(final_share, agent_steps, share):
  learner = learners.linear_learner(schedule='linear', final_share=final_share, total_steps=1000)
  before = learners.values(learner)
  metrics = learner.step(learners.sample(), agent_steps).metrics
  assert metrics['learner/learning_rate'] == pytest.approx(share * learners.RATE)
  for old, new in zip(before, learners.values(learner)):  # Adam's first step is the learning rate
    np.testing.assert_allclose(np.abs(new - old), share * learners.RATE, rtol=1e-3, atol=1e-9)


def test_metrics_are_named_by_group_and_are_plain_floats():
  update = learners.linear_learner().step(learners.sample(), agent_steps=0)
  assert set(update.metrics) == {
    'toy/reward',
    'loss/total',
    'learner/gradient_norm',
    'learner/learning_rate',
    'learner/policy_lag',
    'learner/policy_lag_max',
  }
  assert all(type(value) is float for value in update.metrics.values())
  assert type(update.trained_steps) is int
  assert update.priorities is None


def test_metrics_hold_the_values_of_this_update():
  learner = learners.linear_learner()
  for seed in range(3):
    sample = learners.sample(seed)
    weights = learners.values(learner)
    update = learner.step(sample, agent_steps=0)
    gradients = learners.linear_gradients(sample)
    loss = sum(np.sum(w * g) for w, g in zip(weights, gradients))
    assert update.metrics['loss/total'] == pytest.approx(loss, rel=1e-4)
    assert update.metrics['toy/reward'] == pytest.approx(gradients[0][0, 0], rel=1e-5)


def test_priorities_of_the_loss_come_out():

  def loss(network, sample):
    output = learners.linear_loss(network, sample)
    return output._replace(priorities=tf.reduce_sum(sample.unroll.inputs.reward, axis=0))

  learner = learners.linear_learner(loss)
  sample = learners.sample()
  np.testing.assert_allclose(
    learner.step(sample, 0).priorities, sample.unroll.inputs.reward.sum(0), rtol=1e-5
  )


def test_policy_lag_and_trained_steps_count_unmasked_transitions_after_the_overlap():
  """Rows 0 and 1 are burn-in, row 5 only bootstraps, and LAST rows are no steps."""
  overlap, num_rows = 2, 6
  step_type = np.full((num_rows, learners.B), learners.MID, np.uint8)
  step_type[2, 0] = step_type[4, 1] = step_type[5, 2] = step_type[0, 2] = learners.LAST
  step_type[3, 0] = step_type[5, 1] = step_type[1, 2] = learners.FIRST
  version = np.full((num_rows, learners.B), -100, np.int64)  # rows that are not counted
  version[2:5] = [[-50, 3, 3], [4, 3, 4], [5, -50, 1]]  # -50: LAST rows
  learner = learners.linear_learner(overlap=overlap)
  learner.num_updates = 7
  sample = learners.sample(num_rows=num_rows, step_type=step_type)
  sample = sample._replace(unroll=sample.unroll._replace(policy_version=version))
  update = learner.step(sample, agent_steps=0)
  lags = [7 - 3, 7 - 3, 7 - 4, 7 - 3, 7 - 4, 7 - 5, 7 - 1]
  assert update.trained_steps == len(lags)
  assert update.metrics['learner/policy_lag'] == pytest.approx(np.mean(lags))
  assert update.metrics['learner/policy_lag_max'] == 6
  assert learner.variables().version == 8


def test_a_sample_without_any_step_has_no_lag():
  step_type = np.full((learners.T + 1, learners.B), learners.LAST, np.uint8)
  update = learners.linear_learner().step(learners.sample(step_type=step_type), agent_steps=0)
  assert update.trained_steps == 0
  assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 0


def test_policy_lag_follows_the_updates():
  learner = learners.linear_learner()
  lags = [learner.step(learners.sample(), 0).metrics['learner/policy_lag'] for _ in range(3)]
  assert lags == [0, 1, 2]


@pytest.mark.slow
def test_every_trainable_variable_changes():
  learner = learners.vtrace_learner(core='lstm', target_entropy=0.5)
  weights = lambda: {
    name: np.array(x) for name, x in learner.save().items() if not name.startswith('optimizer/')
  }
  before = weights()
  learner.step(learners.vtrace_sample(learner), agent_steps=0)
  assert len(before) == 10
  for name, new in weights().items():
    assert (before[name] != new).any(), name


def test_a_variable_that_the_loss_does_not_use_is_named():
  network = learners.Linear()
  network.idle = tf.Variable(1.0, name='idle')
  learner = learners.linear_learner(network=network)
  with pytest.raises(types.UserError, match='idle') as error:
    learner.step(learners.sample(), agent_steps=0)
  assert len(str(error.value).splitlines()) <= 4


def test_repeated_rows_of_an_embedding_count_as_their_sum():
  network = learners.Linear()
  network.table = tf.Variable(tf.zeros([5, 2]), name='table')

  def loss(network, sample):
    output = learners.linear_loss(network, sample)
    words = tf.gather(network.table, [1, 1, 1, 4])
    return output._replace(losses={'linear': output.losses['linear'] + tf.reduce_sum(words)})

  learner = learners.linear_learner(loss, network=network)
  sample = learners.sample()
  others = sum(np.sum(g**2) for g in learners.linear_gradients(sample))
  of_table = 2 * (3.0**2 + 1.0**2)
  metrics = learner.step(sample, agent_steps=0).metrics
  assert metrics['learner/gradient_norm'] == pytest.approx(np.sqrt(others + of_table), rel=1e-5)
