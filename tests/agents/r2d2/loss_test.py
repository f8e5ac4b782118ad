"""The loss and the new priorities: their numbers, their masks, their gradients."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import loss as loss_lib

_T = 9
_CONFIG = r2d2_config.R2D2Config(
  unroll_length=_T,
  overlap=0,
  batch_size=6,
  discount=0.9,
  num_bootstrap_steps=5,
  rescaling_epsilon=0.01,
  max_priority_share=0.8,
  importance_exponent=0.6,
)
LAST = types.LAST


def _config(**changes):
  return dataclasses.replace(_CONFIG, **changes)


def _num_rows(config):
  return config.overlap + config.unroll_length + 1


def _gradients_of(network, config, compiled=False):
  """A function from a sample to the loss's output and a gradient per variable (None for none)."""

  def run(sample):
    with tf.GradientTape() as tape:
      output = loss_lib.loss(network, sample, config)
    return output, tape.gradient(output.losses['q'], network.trainable_variables)

  run = tf.function(run, autograph=False) if compiled else run
  return lambda sample: run(tf.nest.map_structure(tf.convert_to_tensor, sample))


def _gradients(network, sample, config):
  return _gradients_of(network, config)(sample)


def _rescale(x, epsilon):
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def _unrescale(x, epsilon):
  root = np.sqrt(1 + 4 * epsilon * (np.abs(x) + 1 + epsilon))
  return np.sign(x) * (((root - 1) / (2 * epsilon)) ** 2 - 1)


def _q_values(network, sample):
  """Returns `[L, B, A]` float64, computed row by row from the stored state."""
  state, rows = sample.unroll.initial_state, []
  for t in range(sample.unroll.inputs.step_type.shape[0]):
    row = tf.nest.map_structure(lambda x: x[t], sample.unroll.inputs)  # noqa: B023
    prediction, state = network(row, state)
    rows.append(prediction.q_values.numpy().astype(np.float64))
  return np.stack(rows)


def _slow_errors(online, target, inputs, actions, config):
  """Returns the errors of one unroll's unmasked rows, `{t: e_t}`, by stepping ahead from every row.

  online, target: `[T+1, A]`. Schaul 2016, van Hasselt 2016, Kapturowski 2019 sec. 2.3.
  """
  epsilon, errors = config.rescaling_epsilon, {}
  bootstrap = [_unrescale(target[t, np.argmax(online[t])], epsilon) for t in range(len(online))]
  limit = config.max_abs_reward or np.inf
  for t in range(config.unroll_length):
    if inputs.step_type[t] == LAST:
      continue
    total, factor, row = 0.0, 1.0, t
    while (
      row < t + config.num_bootstrap_steps
      and row < config.unroll_length
      and inputs.step_type[row] != LAST
    ):
      total += factor * np.clip(float(inputs.reward[row + 1]), -limit, limit)
      factor *= config.discount * float(inputs.discount[row + 1])
      row += 1
    total += factor * bootstrap[row]
    errors[t] = _rescale(total, epsilon) - online[t, actions[t]]
  return errors


def _slow_loss(network, sample, config):
  """Returns (loss, priorities `[B]`), in float64."""
  inputs, outputs = sample.unroll.inputs, sample.unroll.outputs
  online, target = (
    _q_values(n, sample)[config.overlap :] for n in (network.online, network.target)
  )
  weights = [p**-config.importance_exponent for p in sample.probabilities]
  losses, priorities = [], []
  for b in range(len(weights)):
    rows = tf.nest.map_structure(lambda x: x[config.overlap :, b], inputs)  # noqa: B023
    errors = _slow_errors(
      online[:, b], target[:, b], rows, outputs.action[config.overlap :, b], config
    )
    losses.append(weights[b] / max(weights) * sum(0.5 * e**2 for e in errors.values()))
    sizes = [abs(e) for e in errors.values()]
    share = config.max_priority_share
    priorities.append(share * max(sizes) + (1 - share) * np.mean(sizes) if sizes else 0.0)
  return np.mean(losses), np.array(priorities)


def test_uniform_replay_weighs_all_unrolls_alike(make_network, make_sample):
  """Their probabilities differ while the memory grows."""
  network = make_network()
  sample = make_sample(network, _num_rows(_CONFIG))
  uniform = loss_lib.loss(network, sample, _config(replay='uniform'))
  alike = sample._replace(probabilities=np.full(6, 0.1))
  np.testing.assert_array_equal(
    uniform.losses['q'], loss_lib.loss(network, alike, _CONFIG).losses['q']
  )
  assert uniform.metrics['replay/importance_weight_mean'] == 1.0


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {'overlap': 4},
    {'num_bootstrap_steps': 1},
    {'num_bootstrap_steps': 40},
    {'max_abs_reward': 0.5, 'overlap': 1},
    {'rescaling_epsilon': 1e-3, 'discount': 0.997},
    {'importance_exponent': 0.0},
    {'max_priority_share': 0.0},
  ],
  ids=str,
)
def test_equals_a_slow_loop_from_the_papers(make_network, make_sample, changes):
  config = _config(**changes)
  network = make_network()
  # The second unroll starts in padding, which without overlap is within the learnt rows.
  sample = make_sample(network, _num_rows(config), num_padding=(0, max(1, config.overlap)))
  step_type = sample.unroll.inputs.step_type[config.overlap : -1]
  assert 5 <= (step_type == LAST).sum() <= step_type.size // 2
  output = loss_lib.loss(network, sample, config)
  loss, priorities = _slow_loss(network, sample, config)
  np.testing.assert_allclose(output.losses['q'], loss, rtol=1e-4)
  np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)
  assert output.priorities.shape == (6,)


def test_the_greedy_action_is_the_online_networks(make_network, make_sample):
  """The loss would differ with the target's own maximum, or with the played action."""
  network = make_network()
  sample = make_sample(network, _T + 1)
  online, target = (_q_values(n, sample) for n in (network.online, network.target))
  assert (online.argmax(-1) != target.argmax(-1)).mean() > 0.2
  assert (online.argmax(-1) != sample.unroll.outputs.action).mean() > 0.2


def _poisoned(sample, num_padding, config):
  """Returns the sample with NaN, or another action, in everything that must not be used."""
  inputs, outputs = sample.unroll.inputs, sample.unroll.outputs
  is_last = inputs.step_type == LAST
  after_last = np.concatenate([np.zeros_like(is_last[:1]), is_last[:-1]])
  padding = np.zeros_like(is_last)
  for b, number in enumerate(num_padding):
    padding[:number, b] = True
  is_learnt = np.arange(is_last.shape[0])[:, None] >= config.overlap
  is_played = is_learnt & ~is_last
  is_played[-1] = False  # bootstraps only
  nan = lambda where, x: np.where(where, np.nan, x).astype(np.float32)
  inputs = inputs._replace(
    reward=nan(after_last | padding, inputs.reward),
    discount=nan(after_last | padding | ~is_learnt, inputs.discount),
    previous_action=np.where(
      after_last | padding, 2 - inputs.previous_action, inputs.previous_action
    ),
    observation=nan(padding[..., None], inputs.observation),
  )
  outputs = outputs._replace(
    action=np.where(is_played, outputs.action, 2 - outputs.action),
    prediction=types.QOutput(np.full_like(outputs.prediction.q_values, np.nan)),
  )
  assert after_last[config.overlap + 1 :].sum() > 2
  return sample._replace(unroll=sample.unroll._replace(inputs=inputs, outputs=outputs))


@pytest.mark.slow
@pytest.mark.parametrize('overlap', [0, 4])
def test_nan_in_everything_masked_changes_no_bit(make_network, make_sample, overlap):
  config = _config(overlap=overlap, max_abs_reward=2.0)
  network = make_network()
  num_padding = (overlap, 0, overlap - 1 if overlap else 0)
  sample = make_sample(network, _num_rows(config), num_padding=num_padding)
  gradients = _gradients_of(network, config, compiled=True)
  expected, actual = gradients(sample), gradients(_poisoned(sample, num_padding, config))
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    assert np.isfinite(b).all()
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_wholly_masked_unroll_has_the_priority_0_and_moves_nothing(make_network, make_sample):
  network = make_network()
  sample = make_sample(network, _T + 1, num_padding=(_T + 1, 0))
  output, gradients = _gradients(network, sample, _CONFIG)
  assert output.priorities[0] == 0
  assert (output.priorities[1:].numpy() > 0).all()
  for gradient in gradients:
    assert np.isfinite(gradient).all()
  all_masked = make_sample(network, _T + 1, num_padding=(_T + 1,) * 6)
  output, gradients = _gradients(network, all_masked, _CONFIG)
  assert output.losses['q'] == 0
  np.testing.assert_array_equal(output.priorities, np.zeros(6))
  for gradient in gradients:
    np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


@pytest.mark.slow
@pytest.mark.parametrize('core, overlap', [('none', 0), ('lstm', 4), ('gru', 0)])
def test_online_variables_learn_and_the_target_does_not(make_network, make_sample, core, overlap):
  config = _config(overlap=overlap)
  network = make_network(core)
  sample = make_sample(network, _num_rows(config))
  with tf.GradientTape(persistent=True) as tape:
    loss = loss_lib.loss(network, sample, config).losses['q']
  assert len(network.trainable_variables) == len(network.online.variables)
  for variable, gradient in zip(
    network.trainable_variables, tape.gradient(loss, network.trainable_variables)
  ):
    assert gradient is not None, variable.name
    gradient = tf.convert_to_tensor(gradient).numpy()
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0, variable.name
  assert all(g is None for g in tape.gradient(loss, network.target.variables))


@pytest.mark.slow
def test_no_gradient_reaches_the_burn_in_rows_nor_the_stored_state(make_network, make_sample):
  config = _config(overlap=4)
  network = make_network()
  sample = tf.nest.map_structure(
    tf.convert_to_tensor, make_sample(network, _num_rows(config), seed=1)
  )
  watched = (sample.unroll.inputs.observation, sample.unroll.initial_state)
  with tf.GradientTape() as tape:
    tape.watch(watched)
    loss = loss_lib.loss(network, sample, config).losses['q']
  of_rows, of_state = tape.gradient(
    loss, watched, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  np.testing.assert_array_equal(of_rows[:4], np.zeros_like(of_rows[:4]))
  assert (np.abs(of_rows[4:]).max(axis=(0, 2)) > 0).all()
  for gradient in tf.nest.flatten(of_state):
    np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


@pytest.mark.slow
def test_burn_in_rows_are_no_part_of_the_metrics(make_network, make_sample):
  config = _config(overlap=4)
  network = make_network()
  sample = make_sample(network, _num_rows(config))
  metrics = loss_lib.loss(network, sample, config).metrics
  q_values = _q_values(network.online, sample)[4:-1]
  is_step = sample.unroll.inputs.step_type[4:-1] != LAST
  np.testing.assert_allclose(metrics['q/mean'], q_values.max(-1)[is_step].mean(), rtol=1e-4)


def test_a_sample_of_another_length_is_refused(make_network, make_sample):
  network = make_network()
  with pytest.raises(ValueError, match=r'holds 12 rows, but overlap \(0\) \+ unroll_length \(9\)'):
    loss_lib.loss(network, make_sample(network, 12), _CONFIG)
