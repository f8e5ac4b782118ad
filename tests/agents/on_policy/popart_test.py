"""Normalised values in the learner: units, the two orders, with and without compensation."""

import dataclasses

import numpy as np
import pytest

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve

_AVERAGE = on_policy_config.NormalizationConfig('average')


@pytest.fixture
def make(make_config, make_network, make_sample):
  """A network whose statistics have seen one sample, and another sample of other rewards."""

  def make(**fields):
    config = make_config(values=_AVERAGE, **fields)
    network = make_network(config)
    learner.prepare(resolve.algorithm(config), network, make_sample(network, config, seed=1), True)
    sample = make_sample(network, config, seed=2, lag=0.2)
    inputs = sample.unroll.inputs
    inputs = inputs._replace(reward=40 + 10 * inputs.reward)
    return network, sample._replace(unroll=sample.unroll._replace(inputs=inputs)), config

  return make


def _values(network, sample):
  return network.unroll(sample.unroll.inputs, ())[0].value.numpy()


def _raw(network, sample, config):
  """Returns unnormalised targets, advantages and behaviour values, in units of the reward."""
  plain = dataclasses.replace(config, values=on_policy_config.NormalizationConfig())
  networks = loss_lib.Networks(_Plain(network), network.weights)
  batch = learner.prepare(resolve.algorithm(plain), networks, sample, True).batch
  return batch.targets.numpy(), batch.advantages.numpy(), batch.behaviour_values, batch.mask.numpy()


class _Plain:
  """The network without the attributes of normalised values that the learner uses."""

  values = None

  def __init__(self, network):
    self._network = network
    self.unroll, self.distribution = network.unroll, network.distribution

  def __call__(self, inputs, state):
    return self._network(inputs, state)

  def normalized_value(self, value):
    return value

  def value_std(self):
    return 1.0

  def value_when_acting(self, value):
    return value


@pytest.mark.slow
@pytest.mark.parametrize(
  'order, compensates',
  [('statistics_first', True), ('targets_first', True), ('targets_first', False)],
)
def test_the_two_orders_differ_in_the_statistics_that_normalise(order, compensates, make):
  network, sample, config = make(popart_order=order, value_compensation=compensates)
  targets, advantages, _, mask = _raw(network, sample, config)
  old = float(network.values.mean()), float(network.values.std())
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  new = float(network.values.mean()), float(network.values.std())
  assert abs(new[0] - old[0]) > 1 and abs(new[1] - old[1]) > 1
  mean, std = new if order == 'statistics_first' else old
  np.testing.assert_allclose(batch.targets, (targets - mean) / std, rtol=1e-3, atol=1e-4)
  np.testing.assert_allclose(batch.advantages, advantages / std, rtol=1e-3, atol=1e-4)
  assert 3 < mask.sum() < mask.size


def test_statistics_are_those_of_the_unmasked_targets(make_config, make_network, make_sample):
  config = make_config(values=_AVERAGE)
  network = make_network(config)
  sample = make_sample(network, config)
  targets, _, _, mask = _raw(network, sample, config)
  learner.prepare(resolve.algorithm(config), network, sample, True)
  np.testing.assert_allclose(network.values.mean(), targets[mask].mean(), rtol=1e-5)
  np.testing.assert_allclose(network.values.std(), targets[mask].std(), rtol=1e-5)


def test_only_the_first_pass_changes_the_statistics(make):
  network, sample, config = make()
  for is_first in (False, True, False):
    before = [np.array(v) for v in network.values.variables]
    learner.prepare(resolve.algorithm(config), network, sample, is_first)
    same = all(np.array_equal(a, b) for a, b in zip(before, network.values.variables))
    assert same == (not is_first)


def test_with_compensation_the_predicted_values_stay_in_units_of_the_reward(make):
  network, sample, config = make(value_compensation=True)
  before = _values(network, sample)
  learner.prepare(resolve.algorithm(config), network, sample, True)
  np.testing.assert_allclose(_values(network, sample), before, rtol=1e-3, atol=1e-3)


def test_without_compensation_they_move_with_the_statistics(make):
  network, sample, config = make(value_compensation=False)
  before, mean, std = _values(network, sample), network.values.mean(), network.values.std()
  learner.prepare(resolve.algorithm(config), network, sample, True)
  expected = (before - mean) / std * network.values.std() + network.values.mean()
  np.testing.assert_allclose(_values(network, sample), expected, rtol=1e-3, atol=1e-3)
  assert np.abs(expected - before).max() > 1


@pytest.mark.slow
@pytest.mark.parametrize('of', ['transitions', 'unrolls'])
def test_the_value_loss_is_in_normalised_units(of, make, gradients):
  """Its gradient with respect to the last bias is also that of the network's own output."""
  network, sample, config = make(minibatch_of=of, value_compensation=False)
  targets, _, _, mask = _raw(network, sample, config)
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  metrics = loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics
  mean, std = network.values.mean().numpy(), network.values.std().numpy()
  outputs = ((_values(network, sample)[:-1] - mean) / std).reshape(targets.shape)
  errors = ((targets - mean) / std - outputs)[mask]
  np.testing.assert_allclose(metrics['loss/value'], np.mean(errors**2), rtol=1e-3)
  [bias] = [v for v in network.trainable_variables if v.name.endswith('heads/value/b:0')]
  _, [gradient] = gradients(
    lambda: loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy'], [bias]
  )
  np.testing.assert_allclose(gradient, [-2 * np.mean(errors)], rtol=1e-3)


@pytest.mark.slow
def test_the_loss_recomputes_in_the_same_units(make):
  """The advantages of `minibatch` equal those of `never` as long as the weights are the same."""
  losses = []
  for recompute in ('never', 'minibatch'):
    network, sample, config = make(recompute_advantages=recompute)
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    metrics = loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics
    losses.append([metrics['loss/policy'], metrics['loss/value']])
  np.testing.assert_allclose(*losses, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
  'compensates, order, recompute',
  [
    (True, 'statistics_first', 'epoch'),
    (True, 'targets_first', 'never'),
    (True, 'statistics_first', 'minibatch'),
    (False, 'statistics_first', 'minibatch'),
    (False, 'targets_first', 'epoch'),
  ],
)
def test_a_clipped_change_of_the_value_is_counted_from_the_value_when_acting(
  compensates, order, recompute, make
):
  """Before the first gradient step only statistics have changed, so clipping has no effect. Then
  the last bias moves all values by 0.5 of a deviation towards their targets."""
  losses = {}
  for clip in (0.0, 0.05):
    network, sample, config = make(
      value_clip=clip,
      value_compensation=compensates,
      popart_order=order,
      recompute_advantages=recompute,
    )
    outputs = sample.unroll.outputs
    outputs = outputs._replace(
      prediction=outputs.prediction._replace(value=_values(network, sample))
    )
    sample = sample._replace(unroll=sample.unroll._replace(outputs=outputs))
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    losses[clip] = [_value_loss(network, batch, config)]
    if recompute == 'epoch':
      batch = learner.prepare(resolve.algorithm(config), network, sample, False).batch
      losses[clip].append(_value_loss(network, batch, config))
    [bias] = [v for v in network.variables if v.name.endswith('heads/value/b:0')]
    errors = _errors(network, batch, config)
    bias.assign_add([np.sign(errors) * 0.5])
    if recompute != 'minibatch':  # its targets have changed by now
      losses[clip].append(_value_loss(network, batch, config))
  unclipped, clipped = losses[0.0], losses[0.05]
  np.testing.assert_allclose(clipped[0], unclipped[0], rtol=1e-3)
  if recompute == 'epoch':
    np.testing.assert_allclose(clipped[1], unclipped[1], rtol=1e-3)
  if recompute != 'minibatch':
    assert clipped[-1] > 1.01 * unclipped[-1]


def _value_loss(network, batch, config):
  return (
    loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics['loss/value'].numpy()
  )


def _errors(network, batch, config):
  """Returns the mean of target minus value, in the units that values are learnt in."""
  values = network.normalized_value(network.unroll(batch.inputs, ())[0].value[:-1])
  return np.mean((batch.targets - values).numpy()[batch.mask.numpy()])


@pytest.mark.slow
@pytest.mark.parametrize('compensates', [True, False])
def test_values_when_acting_go_through_a_checkpoint(compensates, make):
  """The statistics before the update are state: `epoch` reads them after it."""
  network, sample, config = make(value_clip=0.1, value_compensation=compensates)
  learner.prepare(resolve.algorithm(config), network, sample, True)
  other, _, _ = make(value_clip=0.1, value_compensation=compensates)
  for a, b in zip(other.variables, network.variables):
    assert a.name == b.name
    a.assign(b)
  again = [
    learner.prepare(resolve.algorithm(config), x, sample, False).batch.behaviour_values
    for x in (network, other)
  ]
  np.testing.assert_array_equal(*again)


@pytest.mark.parametrize('recompute', ['never', 'minibatch'])
@pytest.mark.parametrize('scale', [0.01, 1.0, 1000.0])
def test_while_all_targets_are_equal_advantages_are_0_at_every_scale_of_the_rewards(
  scale, recompute, make_config, make_network, make_sample
):
  """The network predicts 0 at first, so each advantage is the same reward, and tells nothing."""
  config = make_config(values=_AVERAGE, lambda_=0.0, recompute_advantages=recompute)
  algorithm, network = resolve.algorithm(config), make_network(config)
  sample = make_sample(network, config)
  inputs = sample.unroll.inputs
  inputs = inputs._replace(reward=np.full_like(inputs.reward, scale))
  sample = sample._replace(unroll=sample.unroll._replace(inputs=inputs))
  batch = learner.prepare(algorithm, network, sample, True).batch
  assert not network.values.has_spread()
  np.testing.assert_array_equal(batch.advantages.numpy()[batch.mask], 0.0)
  assert loss_lib.loss(algorithm, network, batch, None).metrics['loss/policy'] == 0.0


def _learnt(make_config, make_network, make_sample, make_learner, scale, fields):
  """Returns weights after some updates on rewards times `scale`, and values divided by it.

  The updates run op by op, because tracing takes longer.
  """
  config = make_config(
    values=_AVERAGE, reward_scale=scale, num_epochs=2, normalize_advantages=True, **fields
  )
  network = make_network(config)
  subject = make_learner(network, config)
  for update in range(3):  # with growing rewards, acted with the current weights
    sample = make_sample(network, config, seed=update)
    inputs = sample.unroll.inputs
    inputs = inputs._replace(reward=np.float32(4.0**update) * (2 + inputs.reward))
    subject.step(sample._replace(unroll=sample.unroll._replace(inputs=inputs)), 0)
  return [v.numpy() for v in network.trainable_variables], _values(network, sample) / scale


@pytest.mark.slow
@pytest.mark.parametrize(
  'fields',
  [
    {'minibatch_of': 'transitions', 'value_loss': 'huber', 'value_clip': 0.2},
    {'recompute_advantages': 'minibatch'},
    {'recompute_advantages': 'epoch', 'popart_order': 'targets_first'},
    {'value_compensation': False, 'value_clip': 0.2},
  ],
)
def test_what_is_learnt_does_not_depend_on_the_scale_of_the_rewards(
  fields, eagerly, make_config, make_network, make_sample, make_learner
):
  """Even with Adam and clipped gradients the weights are equal, and values scale with rewards."""
  learnt = lambda scale: _learnt(
    make_config, make_network, make_sample, make_learner, scale, fields
  )
  (weights, values), (other, other_values) = learnt(0.01), learnt(1000.0)
  for a, b in zip(weights, other):
    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4)
  np.testing.assert_allclose(other_values, values, rtol=1e-3, atol=1e-3 * np.std(values))
