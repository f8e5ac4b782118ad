"""Passes over an update: minibatch sizes, which elements are in them, what is recomputed when."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import presets
from seed_acme.agents.on_policy import resolve
from seed_acme.checks import bounds
from seed_acme.configs import registry
from seed_acme.learning import objectives

_AVERAGE = on_policy_config.NormalizationConfig('average')
_OF = ['unrolls', 'transitions']


@pytest.mark.parametrize(
  'fields, expected',
  [
    ({}, (4, 1)),
    ({'minibatch_size': 4}, (4, 1)),
    ({'minibatch_size': 2}, (4, 2)),
    ({'minibatch_of': 'transitions'}, (24, 1)),
    ({'minibatch_of': 'transitions', 'minibatch_size': 6}, (24, 4)),
  ],
)
def test_numbers_of_elements_and_of_minibatches(fields, expected, make_config):
  passes = resolve.algorithm(make_config(num_epochs=3, **fields)).passes
  assert (passes.num_elements, passes.num_minibatches) == expected
  assert passes.num_epochs == 3


def _check(config):
  config.check(dataclasses.replace(registry.load('cartpole_ppo'), agent=config))


@pytest.mark.parametrize(
  'of, size, number',
  [('unrolls', 3, 4), ('unrolls', 5, 4), ('transitions', 7, 24), ('transitions', 48, 24)],
)
def test_sizes_that_do_not_divide_are_refused(of, size, number, make_config):
  with pytest.raises(types.UserError, match=rf'minibatch_size \({size}\) .* the {number} {of}'):
    _check(make_config(minibatch_of=of, minibatch_size=size))


@pytest.mark.parametrize(
  'field, value, said', [('num_epochs', 0, '>= 1'), ('minibatch_size', -2, '>= 0')]
)
def test_no_epoch_at_all_and_less_than_nothing_are_refused(field, value, said, make_config):
  with pytest.raises(types.UserError, match=rf'agent.{field} \({value}\) must be {said}'):
    bounds.check(make_config(**{field: value}), 'agent.')


def test_advantages_cannot_be_computed_anew_from_single_transitions(make_config):
  config = make_config(minibatch_of='transitions', recompute_advantages='minibatch')
  with pytest.raises(types.UserError, match="recompute_advantages .'minibatch'. needs whole"):
    _check(config)
  for fields in ({'recompute_advantages': 'epoch'}, {'minibatch_of': 'unrolls'}):
    passes = resolve.algorithm(dataclasses.replace(config, **fields)).passes
    assert passes.prepares_each_epoch == ('recompute_advantages' in fields)


class _Spy:
  """A loss that remembers every minibatch."""

  def __init__(self, config):
    self.config, self.seen = config, []

  def __call__(self, network, batch):
    flat = [batch.behaviour_values, batch.targets, batch.advantages]
    tf.numpy_function(lambda *x: self.seen.append([np.array(a) for a in x]), flat, [])
    return loss_lib.loss(resolve.algorithm(self.config), network, batch, None)


def _numbered(sample):
  """Returns a sample whose values when acting are the numbers of its transitions."""
  prediction = sample.unroll.outputs.prediction
  numbers = np.arange(prediction.value.size, dtype=np.float32).reshape(prediction.value.shape)
  outputs = sample.unroll.outputs._replace(prediction=prediction._replace(value=numbers))
  return sample._replace(unroll=sample.unroll._replace(outputs=outputs)), numbers[:-1]


@pytest.mark.slow
@pytest.mark.parametrize('of, size', [('unrolls', 2), ('transitions', 6)])
def test_every_transition_is_learnt_as_often_as_there_are_epochs(
  of, size, make_config, make_network, make_sample, make_learner
):
  config = make_config(minibatch_of=of, minibatch_size=size, num_epochs=3)
  network = make_network(config)
  sample, numbers = _numbered(make_sample(network, config))
  spy = _Spy(config)
  subject = make_learner(network, config, spy)
  for _ in range(2):
    metrics = subject.step(sample, agent_steps=0).metrics
  seen = [values for values, _, _ in spy.seen]
  per_epoch = numbers.size // seen[0].size
  assert metrics['learner/gradient_steps'] == 3 * per_epoch == len(seen) / 2
  epochs = [
    np.concatenate([x.ravel() for x in seen[i : i + per_epoch]])
    for i in range(0, len(seen), per_epoch)
  ]
  for epoch in epochs:
    assert collections.Counter(epoch.tolist()) == collections.Counter(numbers.ravel().tolist())
  assert len({tuple(epoch) for epoch in epochs}) == 6, 'each epoch has an order of its own'
  if of == 'unrolls':
    assert all(x.shape == (6, 2) and (np.diff(x, axis=0) == 4).all() for x in seen)


@pytest.mark.parametrize('of', _OF)
def test_a_minibatch_has_all_leaves_of_the_same_elements(
  of, make_config, make_network, make_sample
):
  config = make_config(minibatch_of=of, minibatch_size=2)
  network = make_network(config, 'nested', core='lstm' if of == 'unrolls' else 'none')
  sample = make_sample(network, config, 'nested')
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  indices = [3, 1] if of == 'unrolls' else [5, 23]
  taken = resolve.algorithm(config).passes.take(batch, tf.constant(indices))
  tree.assert_same_structure(taken, batch)
  if of == 'unrolls':
    expected = tree.map_structure(
      lambda x: np.asarray(x)[:, indices], batch._replace(initial_state=())
    )
    expected = expected._replace(
      initial_state=tree.map_structure(lambda x: x[indices], sample.unroll.initial_state)
    )
  else:  # row 1 of unroll 1, and the last but one row of unroll 3
    pick = lambda x: np.stack([np.asarray(x)[1, 1], np.asarray(x)[5, 3]])
    whole = learner.prepare(
      resolve.algorithm(dataclasses.replace(config, minibatch_of='unrolls')), network, sample, True
    ).batch
    expected = tree.map_structure(pick, whole._replace(initial_state=()))
    assert taken.inputs.observation.shape == (2, 4)
  for a, b in zip(tree.flatten(taken), tree.flatten(expected)):
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
  'fields',
  [
    {'policy_loss': 'ppo', 'normalize_advantages': True},
    {'policy_loss': 'vmpo', 'normalize_advantages': True},
    {'policy_loss': 'repeat_positive'},
    {
      'values': _AVERAGE,
      'observations': _AVERAGE,
      'value_clip': 0.1,
      'entropy': on_policy_config.PenaltyConfig(weight=0.1, threshold=-0.5),
    },
  ],
)
def test_one_minibatch_of_all_is_the_same_by_unrolls_and_by_transitions(
  fields, make_config, make_network, make_sample, gradients
):
  results = []
  for of in _OF:
    config = make_config(minibatch_of=of, **fields)
    network = make_network(config, 'continuous', separate_value_network=True)
    sample = make_sample(network, config, 'continuous', lag=0.3)
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    order = np.random.default_rng(0).permutation(on_policy_config.num_elements(config))
    batch = resolve.algorithm(config).passes.take(batch, tf.constant(order))
    results.append(
      gradients(
        lambda: loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy'],  # noqa: B023
        network.trainable_variables,
      )
    )
  (loss, found), (other_loss, other_found) = results
  np.testing.assert_allclose(loss, other_loss, rtol=1e-5)
  for a, b in zip(found, other_found):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def _targets_by_epoch(recompute, make_config, make_network, make_sample, make_learner):
  """Returns the arrays that the spy saw in three epochs with changing weights, and the network."""
  config = make_config(
    num_epochs=3,
    recompute_advantages=recompute,
    values=_AVERAGE,
    optimizer=config_lib.OptimizerConfig(learning_rate=0.05),
  )
  network = make_network(config)
  sample, spy = make_sample(network, config), _Spy(config)
  make_learner(network, config, spy).step(sample, agent_steps=0)
  return [spy.seen[i][1:] for i in range(3)], network


@pytest.mark.slow
@pytest.mark.parametrize('recompute', ['never', 'epoch', 'minibatch'])
def test_prepared_targets_change_between_epochs_only_when_asked(
  recompute, eagerly, make_config, make_network, make_sample, make_learner
):
  epochs, network = _targets_by_epoch(
    recompute, make_config, make_network, make_sample, make_learner
  )
  for name, number in (('targets', 0), ('advantages', 1)):
    totals = [np.square(epoch[number]).sum() for epoch in epochs]
    assert (np.ptp(totals) < 1e-3) == (recompute != 'epoch'), name
  [weight] = [v for v in network.variables if v.name.endswith('values/statistics/weight:0')]
  num_unmasked = np.count_nonzero(epochs[0][1])  # masked ones have no advantage
  assert weight == num_unmasked, 'the statistics of the values take in an update once'


@pytest.mark.slow
def test_recomputing_in_each_minibatch_uses_the_weights_of_the_moment(
  make_config, make_network, make_sample
):
  """The prepared targets are from older weights; the loss must not use them."""
  losses = {}
  for recompute in ('never', 'minibatch'):
    config = make_config(
      recompute_advantages=recompute, advantage='vtrace', policy_loss='vtrace', values=_AVERAGE
    )
    network = make_network(config)
    learner.prepare(
      resolve.algorithm(config), network, make_sample(network, config, seed=9), True
    )  # statistics
    sample = make_sample(network, config, lag=0.5)
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    stale = loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy']
    for variable in network.trainable_variables:
      variable.assign(variable * 1.3)
    moved = loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy']
    again = learner.prepare(resolve.algorithm(config), network, sample, False).batch
    fresh = loss_lib.loss(resolve.algorithm(config), network, again, None).losses['policy']
    losses[recompute] = float(stale), float(moved), float(fresh)
  assert losses['never'][0] == pytest.approx(losses['minibatch'][0], rel=1e-5)
  assert losses['minibatch'][1] == pytest.approx(losses['minibatch'][2], rel=1e-5)
  assert abs(losses['never'][1] - losses['never'][2]) > 1e-3


@pytest.mark.parametrize('overlap', [0, 2])
def test_observation_statistics_change_in_finish_alone(
  overlap, make_config, make_network, make_sample
):
  config = make_config(observations=_AVERAGE, values=_AVERAGE, overlap=overlap)
  network = make_network(config, core='lstm')
  sample = make_sample(network, config)
  statistics = network.observations.variables
  before = [np.array(v) for v in statistics]
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  loss_lib.loss(resolve.algorithm(config), network, batch, None)
  for a, b in zip(before, statistics):
    np.testing.assert_array_equal(a, b)
  values = [np.array(v) for v in network.values.variables]
  metrics = learner.finish(resolve.algorithm(config), network, sample)
  rows = sample.unroll.inputs.observation[overlap:-1]
  kept = rows[sample.unroll.inputs.step_type[overlap:-1] != types.LAST].astype(np.float64)
  normalized = (kept - kept.mean(axis=0)) / kept.std(axis=0)
  assert len(kept) < rows.shape[0] * rows.shape[1]
  np.testing.assert_allclose(network.observations(tf.constant(kept)), normalized, atol=1e-4)
  for a, b in zip(values, network.values.variables):
    np.testing.assert_array_equal(a, b)
  np.testing.assert_allclose(metrics['value/normalizer_mean'], network.values.mean())
  np.testing.assert_allclose(metrics['value/normalizer_std'], network.values.std())


@pytest.mark.slow
@pytest.mark.parametrize('name', ['ppo', 'vtrace'])
def test_an_update_of_the_agent_is_its_parts_in_order(
  name, make_network, make_sample, make_learner
):
  """Compares two passes of one minibatch each, by hand and in the learner's graphs."""
  config = getattr(presets, name)(
    unroll_length=6,
    batch_size=4,
    minibatch_size=0,
    num_epochs=2,
    values=_AVERAGE,
    observations=_AVERAGE,
    optimizer=config_lib.OptimizerConfig(learning_rate=0.01),
  )
  networks = [make_network(config, 'nested') for _ in range(2)]
  sample = make_sample(networks[0], config, 'nested', lag=0.2)
  subject = make_learner(networks[0], config)
  metrics = subject.step(sample, agent_steps=0).metrics
  variables, losses = networks[1].trainable_variables, []
  optimizer = objectives.make_optimizer(config.optimizer, tf.Variable(0.01))
  batch = learner.prepare(resolve.algorithm(config), networks[1], sample, True).batch
  for _ in range(2):
    with tf.GradientTape() as tape:
      losses.append(
        loss_lib.loss(resolve.algorithm(config), networks[1], batch, None).losses['policy']
      )
    gradients, _ = tf.clip_by_global_norm(
      tape.gradient(losses[-1], variables), config.optimizer.max_gradient_norm
    )
    optimizer.apply(gradients, variables)
  learner.finish(resolve.algorithm(config), networks[1], sample)
  np.testing.assert_allclose(metrics['loss/total'], np.mean(losses), rtol=1e-4)
  for a, b in zip(networks[0].variables, networks[1].variables):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=a.name)
