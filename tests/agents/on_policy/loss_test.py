"""The whole loss, prepared by the learner, against one slow loop in float64."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.ops import distributions
from seed_acme.ops import normal

_AVERAGE = on_policy_config.NormalizationConfig('average')
Penalty = on_policy_config.PenaltyConfig


def _log_softmax(logits):
  logits = logits.astype(np.float64)
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _estimates(values, log_rhos, inputs, config):
  """`{(t, b): (target, advantage)}` of the unmasked rows, one column after the other."""
  result = {}
  for b in range(values.shape[1]):
    advantage, error = 0.0, 0.0
    for t in reversed(range(len(values) - 1)):
      if inputs.step_type[t, b] == types.LAST:
        advantage = error = 0.0
        continue
      bound = config.max_abs_reward
      reward = config.reward_scale * min(max(inputs.reward[t + 1, b], -bound), bound)
      discount = config.discount * inputs.discount[t + 1, b]
      delta = reward + discount * values[t + 1, b] - values[t, b]
      if config.advantage == 'gae':
        advantage = delta + discount * config.lambda_ * advantage
        result[t, b] = values[t, b] + advantage, advantage
      else:
        ratio = np.exp(log_rhos[t, b])
        advantage = delta + discount * config.lambda_ * error
        error = (
          min(config.rho_clip, ratio) * delta
          + discount * config.lambda_ * min(config.c_clip, ratio) * error
        )
        result[t, b] = values[t, b] + error, advantage
  return result


def _expected(network, sample, config):
  """Losses and other metrics by name, with the deviation of the values after `prepare`."""
  inputs, outputs = sample.unroll.inputs, sample.unroll.outputs
  prediction, _ = network.unroll(inputs, sample.unroll.initial_state)
  values = prediction.value.numpy().astype(np.float64)
  log_pi = _log_softmax(prediction.policy_params.numpy())
  log_mu = _log_softmax(outputs.prediction.policy_params)
  chosen = outputs.action[..., None]
  log_prob = np.take_along_axis(log_pi, chosen, -1)[..., 0]
  log_rhos = log_prob - np.take_along_axis(log_mu, chosen, -1)[..., 0]
  estimates = _estimates(values, log_rhos, inputs, config)
  rows = list(estimates)
  std = 1.0 if config.values.statistics == 'none' else float(network.values.std())
  advantages = np.array([estimates[row][1] for row in rows]) / std
  if config.normalize_advantages:
    advantages = (advantages - advantages.mean()) / advantages.std()
  policy = []
  for row, advantage in zip(rows, advantages):
    ratio = np.exp(log_rhos[row])
    if config.policy_loss == 'ppo':
      clipped = np.clip(ratio, 1 - config.ppo_epsilon, 1 + config.ppo_epsilon)
      policy.append(-min(ratio * advantage, clipped * advantage))
    else:
      policy.append(-min(ratio, config.policy_rho_clip) * advantage * log_prob[row])
  entropy = np.mean([-np.sum(np.exp(log_pi[row]) * log_pi[row]) for row in rows])
  kl = np.mean([np.sum(np.exp(log_mu[row]) * (log_mu[row] - log_pi[row])) for row in rows])
  targets = np.array([estimates[row][0] for row in rows]) / std
  errors = targets - np.array([values[row] for row in rows]) / std
  return {
    'policy': np.mean(policy),
    'value': config.value_cost * np.mean(0.5 * errors**2),
    'penalties': -config.entropy.weight * entropy + config.kl_from_behaviour.weight * kl,
    'adjustment': config.kl_from_behaviour.weight * (config.kl_from_behaviour.threshold - kl),
  }, {
    'policy/entropy': entropy,
    'policy/kl_behaviour': kl,
    'policy/kl_last_pass': kl,
    'policy/ratio_mean': np.mean([np.exp(log_rhos[row]) for row in rows]),
    'penalty/entropy': -entropy,
    'penalty/kl_from_behaviour': kl,
    'value/mean': np.mean([values[row] for row in rows]),
    'value/squared_error': np.mean(errors**2),
    'value/target_variance': np.var(targets),
  }


_CHOICES = {
  'ppo': {'policy_loss': 'ppo', 'values': _AVERAGE, 'normalize_advantages': True},
  'ppo_by_transitions': {'policy_loss': 'ppo', 'minibatch_of': 'transitions'},
  'vtrace': {'policy_loss': 'vtrace', 'advantage': 'vtrace', 'rho_clip': 1.1, 'c_clip': 0.9},
  'vtrace_anew': {
    'policy_loss': 'vtrace',
    'advantage': 'vtrace',
    'values': _AVERAGE,
    'recompute_advantages': 'minibatch',
    'observations': _AVERAGE,
  },
}


@pytest.mark.parametrize('choice', sorted(_CHOICES))
def test_equals_a_slow_loop_over_transitions(choice, make_config, make_network, make_sample):
  config = make_config(
    max_abs_reward=1.0,
    reward_scale=3.0,
    value_cost=0.7,
    policy_rho_clip=1.2,
    entropy=Penalty(weight=0.05),
    kl_from_behaviour=Penalty(weight=0.3, threshold=0.02),
    **_CHOICES[choice],
  )
  network = make_network(
    config, core='none' if 'transitions' in choice else 'lstm', separate_value_network=True
  )
  learner.prepare(
    resolve.algorithm(config), network, make_sample(network, config, seed=9), True
  )  # first statistics
  sample = make_sample(network, config, lag=0.5)
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  expected, expected_metrics = _expected(network, sample, config)
  output = loss_lib.loss(resolve.algorithm(config), network, batch, None)
  for name, value in expected.items():
    np.testing.assert_allclose(
      output.metrics[f'loss/{name}'], value, rtol=1e-4, atol=1e-5, err_msg=name
    )
  np.testing.assert_allclose(output.losses['policy'], sum(expected.values()), rtol=1e-4, atol=1e-5)
  for name, value in expected_metrics.items():
    np.testing.assert_allclose(output.metrics[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
  assert output.priorities is None


@pytest.mark.slow
def test_the_temperature_is_among_the_metrics_of_vmpo_alone(make_config, make_network, make_sample):
  for name in ('vmpo', 'ppo'):
    config = make_config(policy_loss=name, vmpo_initial_temperature=0.6)
    network = make_network(config)
    batch = learner.prepare(
      resolve.algorithm(config), network, make_sample(network, config), True
    ).batch
    metrics = loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics
    assert ('policy/temperature' in metrics) == (name == 'vmpo')
    if name == 'vmpo':
      np.testing.assert_allclose(metrics['policy/temperature'], 0.6, rtol=1e-5)


def test_a_sample_of_another_length_is_refused(make_config, make_network, make_sample):
  config = make_config()
  network = make_network(config)
  sample = make_sample(network, config)
  with pytest.raises(ValueError, match=r'holds 7 rows, but overlap \(2\) \+ unroll_length \(6\)'):
    learner.prepare(resolve.algorithm(make_config(overlap=2)), network, sample, True)


@pytest.mark.parametrize('bound, expected', [('linear', 2 / 6), ('reciprocal', 3 / 6)])
def test_the_clipped_share_is_that_of_the_configured_bounds(bound, expected, make_config):
  """0.82 is within [0.8, 1.2], and below 1 / 1.2."""
  ratios = np.float32([0.7, 0.82, 1.0, 1.1, 1.19, 1.3])
  config = make_config(ppo_epsilon=0.2, ppo_lower_bound=bound)
  found = loss_lib._policy_metrics(
    resolve.algorithm(config),
    distributions.Categorical(3),
    loss_lib.Forward(
      params=tf.zeros([6, 3]),
      behaviour_params=tf.zeros([6, 3]),
      log_prob=None,
      log_ratio=tf.math.log(ratios),
      values=None,
      all_values=None,
      penalties={},
    ),
    tf.fill([6], True),
  )['policy/ratio_clipped_share']
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_standard_deviation_is_a_mean_over_actions_and_unmasked_steps(make_config):
  params = np.log(np.float32([[1, 1, 1, 3], [1, 1, 2, 4], [1, 1, 100, 100]]))
  found = loss_lib._policy_metrics(
    resolve.algorithm(make_config()),
    normal.DiagonalNormal(2, tf.exp),
    loss_lib.Forward(
      params=tf.constant(params),
      behaviour_params=tf.constant(params),
      log_prob=None,
      log_ratio=tf.zeros([3]),
      values=None,
      all_values=None,
      penalties={},
    ),
    tf.constant([True, True, False]),
  )
  np.testing.assert_allclose(found['policy/std'], 2.5, rtol=1e-6)
