"""Penalties: their values, fixed and learnt weights, penalties in rewards."""

import dataclasses

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import penalties
from seed_acme.agents.on_policy import resolve
from seed_acme.ops import distributions
from seed_acme.ops import lagrange

_DISTRIBUTION = distributions.Categorical(3)
_NAMES = ('entropy', 'kl_to_behaviour', 'kl_from_behaviour', 'kl_from_reference')
Penalty = on_policy_config.PenaltyConfig


def _logits(seed, *shape):
  return np.random.default_rng(seed).normal(0, 1, (*shape, 3))


def _softmax(logits):
  return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def _slow(name, logits, behaviour):
  """Returns the penalty of one row, from the definitions."""
  pi, mu, uniform = _softmax(logits), _softmax(behaviour), np.full(3, 1 / 3)
  kl = lambda p, q: sum(p[a] * np.log(p[a] / q[a]) for a in range(3))
  return {
    'entropy': lambda: sum(pi[a] * np.log(pi[a]) for a in range(3)),
    'kl_to_behaviour': lambda: kl(pi, mu),
    'kl_from_behaviour': lambda: kl(mu, pi),
    'kl_from_reference': lambda: kl(uniform, pi),
  }[name]()


@pytest.mark.parametrize('name', _NAMES)
def test_each_quantity_equals_its_definition(name, make_config, gradients):
  config = make_config(**{name: Penalty(weight=0.3)})
  params, behaviour = (tf.constant(_logits(seed, 4, 2), tf.float32) for seed in (0, 1))
  run = lambda: penalties.quantities(
    _DISTRIBUTION, params, behaviour, on_policy_config.penalties(config)
  )
  assert list(run()) == [name]
  expected = [
    [_slow(name, params[i, j].numpy(), behaviour[i, j].numpy()) for j in range(2)] for i in range(4)
  ]
  np.testing.assert_allclose(run()[name], expected, rtol=1e-4, atol=1e-6)
  _, [of_params, of_behaviour] = gradients(lambda: tf.reduce_sum(run()[name]), [params, behaviour])
  assert np.abs(of_params).max() > 0.01 and of_behaviour is None


def test_only_active_ones_are_computed(make_config):
  zeros = tf.zeros([2, 3])
  assert (
    penalties.quantities(_DISTRIBUTION, zeros, zeros, on_policy_config.penalties(make_config()))
    == {}
  )
  active = make_config(
    entropy=Penalty(weight=0.1),
    kl_to_behaviour=Penalty(threshold=0.0),
    kl_from_behaviour=Penalty(weight=0.0, speed=3.0),
  )
  assert list(
    penalties.quantities(_DISTRIBUTION, zeros, zeros, on_policy_config.penalties(active))
  ) == ['entropy', 'kl_to_behaviour']


def _terms(config, x, weights, mask):
  return penalties.terms(
    {name: tf.constant(value, tf.float32) for name, value in x.items()},
    weights,
    tf.constant(mask),
    on_policy_config.penalties(config),
  )


def test_fixed_weights_multiply_the_masked_means(make_config):
  config = make_config(entropy=Penalty(weight=0.1), kl_to_behaviour=Penalty(weight=2.0))
  x = {'entropy': [-1.0, np.nan, -0.4], 'kl_to_behaviour': [0.3, np.nan, 0.1]}
  weights = {'entropy': tf.constant(0.1), 'kl_to_behaviour': tf.constant(2.0)}
  result = _terms(config, x, weights, [True, False, True])
  np.testing.assert_allclose(result.loss, 0.1 * -0.7 + 2.0 * 0.2, rtol=1e-6)
  assert result.adjustment == 0.0
  np.testing.assert_allclose(result.metrics['penalty/kl_to_behaviour'], 0.2, rtol=1e-6)
  np.testing.assert_allclose(result.metrics['penalty/kl_to_behaviour_weight'], 2.0)


@pytest.mark.parametrize('x, direction', [([0.4, 0.5, np.nan], 1), ([0.1, 0.0, np.nan], -1)])
def test_a_learnt_weight_rises_while_violated_and_falls_while_not(
  x, direction, make_config, gradients
):
  config = make_config(kl_to_behaviour=Penalty(weight=2.0, threshold=0.2, speed=3.0))
  parameter = tf.Variable(np.log(2.0) / 3.0, dtype=tf.float32)
  mean = np.mean(x[:2])

  def run():
    weight = lagrange.weight(parameter, speed=3.0)
    return _terms(config, {'kl_to_behaviour': x}, {'kl_to_behaviour': weight}, [True, True, False])

  loss, [of_loss] = gradients(lambda: run().loss, [parameter])
  adjustment, [slope] = gradients(lambda: run().adjustment, [parameter])
  np.testing.assert_allclose(loss, 2.0 * mean, rtol=1e-5)
  assert of_loss is None, 'the penalty itself must not move its weight'
  np.testing.assert_allclose(adjustment, 2.0 * (0.2 - mean), rtol=1e-5)
  np.testing.assert_allclose(slope, 3.0 * 2.0 * (0.2 - mean), rtol=1e-5)
  assert np.sign(-slope) == direction  # gradient descent changes it in this direction


def test_no_gradient_of_the_adjustment_enters_the_policy(make_config, gradients):
  config = make_config(kl_to_behaviour=Penalty(weight=2.0, threshold=0.2))
  x = tf.constant([0.4, 0.5])
  run = lambda: penalties.terms(
    {'kl_to_behaviour': x},
    {'kl_to_behaviour': tf.constant(2.0)},
    tf.fill([2], True),
    on_policy_config.penalties(config),
  )
  assert gradients(lambda: run().adjustment, [x])[1] == [None]
  np.testing.assert_allclose(gradients(lambda: run().loss, [x])[1][0], [1.0, 1.0])


def test_all_masked_moves_neither_policy_nor_weight(make_config, gradients):
  config = make_config(kl_to_behaviour=Penalty(weight=2.0, threshold=0.2))
  parameter, x = tf.Variable(0.5), tf.constant([np.nan, np.nan])
  run = lambda: penalties.terms(
    {'kl_to_behaviour': x},
    {'kl_to_behaviour': lagrange.weight(parameter, speed=1.0)},
    tf.fill([2], False),
    on_policy_config.penalties(config),
  )
  value, found = gradients(lambda: run().loss + run().adjustment, [parameter, x])
  assert value == 0.0 and found[0] == 0.0 and not found[1].any()


@pytest.mark.slow
@pytest.mark.parametrize(
  'name, threshold, weight',
  [
    ('entropy', -0.6, 0.05),
    ('entropy', -0.6, 3.0),
    ('kl_from_behaviour', 0.05, 3.0),
    ('kl_to_behaviour', 0.2, 0.05),
  ],
)
def test_a_learnt_weight_holds_its_quantity_at_the_threshold(name, threshold, weight, make_config):
  """Maximises the expected reward of a bandit, which alone would end with a single action."""
  config = make_config(**{name: Penalty(weight=weight, threshold=threshold)})
  behaviour, reward = tf.constant([[0.1, 0.4, -0.2]]), tf.constant([1.0, 0.0, 0.3])
  variables = [tf.Variable(behaviour), tf.Variable(np.float32(np.log(weight)))]
  optimizer = snt.optimizers.Adam(0.02)

  @tf.function
  def train():
    for _ in tf.range(1500):
      with tf.GradientTape() as tape:
        x = penalties.quantities(
          _DISTRIBUTION, variables[0], behaviour, on_policy_config.penalties(config)
        )
        weights = {name: lagrange.weight(variables[1], speed=1.0)}
        terms = penalties.terms(x, weights, tf.fill([1], True), on_policy_config.penalties(config))
        gain = tf.reduce_sum(tf.nn.softmax(variables[0]) * reward)
        loss = terms.loss + terms.adjustment - gain
      optimizer.apply(tape.gradient(loss, variables), variables)

  train()
  result = _slow(name, variables[0].numpy()[0], behaviour.numpy()[0])
  np.testing.assert_allclose(result, threshold, atol=0.01)


_IN_REWARDS = {
  'reward_scale': 2.0,
  'kl_to_behaviour': Penalty(weight=0.3),
  'discount': 0.0,
  'entropy': Penalty(weight=0.1, threshold=-0.5),
}


def _rewards_to_learn(network, sample, sign):
  """Returns `{(t, b): reward}`; with a discount of 0 the value's target is the reward."""
  params = network.unroll(sample.unroll.inputs, ())[0].policy_params.numpy()
  behaviour = sample.unroll.outputs.prediction.policy_params
  rewards = {}
  for t, b in np.ndindex(6, 4):
    if sample.unroll.inputs.step_type[t, b] != types.LAST:
      kl, entropy = (
        _slow(name, params[t, b], behaviour[t, b]) for name in ('kl_to_behaviour', 'entropy')
      )
      rewards[t, b] = 2.0 * sample.unroll.inputs.reward[t + 1, b] + sign * (
        0.3 * kl + 0.1 * entropy
      )
  assert 3 < len(rewards) < 24
  return rewards


_WAYS = pytest.mark.parametrize('way, sign', [('none', 0.0), ('subtracted', -1.0), ('added', 1.0)])


@_WAYS
def test_penalties_in_rewards_in_both_signs(way, sign, make_config, make_network, make_sample):
  config = make_config(penalties_in_rewards=way, **_IN_REWARDS)
  network = make_network(config)
  sample = make_sample(network, config, lag=0.5)
  targets = learner.prepare(resolve.algorithm(config), network, sample, True).batch.targets
  for row, reward in _rewards_to_learn(network, sample, sign).items():
    np.testing.assert_allclose(targets[row], reward, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@_WAYS
def test_a_penalty_is_in_the_rewards_or_in_the_loss(
  way, sign, make_config, make_network, make_sample, gradients
):
  """A penalty in both would count twice. Its weight is learnt from the same excess either way."""
  config = make_config(penalties_in_rewards=way, **_IN_REWARDS)
  network = make_network(config)
  batch = learner.prepare(
    resolve.algorithm(config), network, make_sample(network, config, lag=0.5), True
  ).batch
  [parameter] = [v for v in network.weights.variables if 'entropy_parameter' in v.name]
  run = lambda: loss_lib.loss(resolve.algorithm(config), network, batch, None)
  _, [slope] = gradients(lambda: run().losses['policy'], [parameter])
  metrics = run().metrics
  total = sum(
    0.3 * metrics[f'penalty/{name}']
    if name == 'kl_to_behaviour'
    else 0.1 * metrics[f'penalty/{name}']
    for name in ('kl_to_behaviour', 'entropy')
  )
  assert abs(total) > 0.01
  np.testing.assert_allclose(metrics['loss/penalties'], 0.0 if sign else total, rtol=1e-5)
  np.testing.assert_allclose(slope, 0.1 * (-0.5 - metrics['penalty/entropy']), rtol=1e-4)


@pytest.mark.parametrize('way, sign', [('subtracted', -1.0), ('added', 1.0)])
def test_recomputing_in_each_minibatch_takes_the_penalties_of_the_moment(
  way, sign, make_config, make_network, make_sample
):
  config = make_config(
    penalties_in_rewards=way, recompute_advantages='minibatch', value_cost=1.0, **_IN_REWARDS
  )
  network = make_network(config)
  sample = make_sample(network, config, lag=0.5)
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  prepared = learner.prepare(
    resolve.algorithm(dataclasses.replace(config, recompute_advantages='never')),
    network,
    sample,
    True,
  ).batch
  for variable in network.trainable_variables:
    if 'parameter' not in variable.name:
      variable.assign(variable * 1.5)
  values = network.unroll(sample.unroll.inputs, ())[0].value.numpy()
  rewards = _rewards_to_learn(network, sample, sign)
  expected = 0.5 * np.mean([(rewards[row] - values[row]) ** 2 for row in rewards])
  stale = 0.5 * np.mean([(prepared.targets[row] - values[row]) ** 2 for row in rewards])
  loss = loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics['loss/value']
  np.testing.assert_allclose(loss, expected, rtol=1e-4)
  assert abs(stale - expected) > 1e-3


def test_a_learnt_weight_starts_where_it_is_told(make_config, make_network):
  config = make_config(entropy=Penalty(1.0, -0.5), kl_to_behaviour=Penalty(0.2, 0.1, 3.0))
  weights = make_network(config).weights.penalty_weights()
  np.testing.assert_allclose(weights['entropy'], 1.0)
  np.testing.assert_allclose(weights['kl_to_behaviour'], 0.2, rtol=1e-5)
