"""The variables that a learner publishes and saves, and checkpoints that it refuses."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.learning import learner as learner_lib
from tests.learning import learners


@pytest.fixture(name='pair', scope='module')
def _pair():
  """Two learners after an update each, which tests share because tracing takes a second."""
  made = learners.vtrace_learner(seed=1), learners.vtrace_learner(seed=2)
  for seed, learner in enumerate(made):
    learner.step(learners.vtrace_sample(learner, seed), agent_steps=0)
  return made


def _saved(learner):
  return {name: np.array(x) for name, x in learner.save().items()}


@pytest.mark.parametrize('field', ['reward', 'observation'])
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_what_is_not_finite_stops_the_run_and_the_metric_is_named(pair, field, value):
  learner, _ = pair
  before, number = _saved(learner), learner.num_updates
  good = learners.vtrace_sample(learner)
  array = np.array(getattr(good.unroll.inputs, field))
  array[2, 1] = value
  with pytest.raises(learner_lib.NonFiniteError) as error:
    learner.step(learners.with_inputs(good, **{field: array}), agent_steps=0)
  # A NaN in the observation may reach only the gradient: some ReLU kernels turn NaN into 0.
  assert 'loss/policy' in str(error.value) or 'gradient_norm' in str(error.value)
  assert f'update {number + 1}' in str(error.value)
  assert len(str(error.value).splitlines()) <= 4
  assert learner.num_updates == number
  learner.restore(before, number)


def test_a_gradient_that_is_not_finite_stops_the_run_though_the_loss_is():

  def loss(network, sample):
    del sample
    slope = tf.reduce_sum(tf.sqrt(network.w - network.w[0])[:1])  # sqrt has an infinite slope at 0
    return types.LossOutput({'linear': slope + tf.reduce_sum(network.m)}, metrics={})

  learner = learners.linear_learner(loss)
  with pytest.raises(learner_lib.NonFiniteError, match='learner/gradient_norm'):
    learner.step(learners.sample(), agent_steps=0)


@pytest.mark.parametrize('name', ['adam', 'rmsprop'])
def test_published_values_do_not_change_when_further_updates_run(name):
  learner = learners.linear_learner(name=name, learning_rate=1.0)
  published = [learner.variables()]
  for _ in range(3):
    learner.step(learners.sample(), agent_steps=0)
    published.append(learner.variables())
  copies = [[np.array(x) for x in variables.values] for variables in published]
  for seed in range(20):
    learner.step(learners.sample(seed), agent_steps=0)
  assert [variables.version for variables in published] == [0, 1, 2, 3]
  for variables, copy in zip(published, copies):
    learners.assert_all_equal([x.numpy() for x in variables.values], copy)
  for older, newer in zip(copies, copies[1:]):
    assert all((a != b).any() for a, b in zip(older, newer))


def test_a_learner_has_variables_of_its_own(pair):
  first, second = pair
  before = learners.values(second)
  first.step(learners.vtrace_sample(first), agent_steps=0)
  learners.assert_all_equal(learners.values(second), before)


_LEARNERS = {
  'rmsprop': functools.partial(
    learners.vtrace_learner,
    optimizer=config_lib.OptimizerConfig(
      name='rmsprop', rmsprop_momentum=0.9, learning_rate=learners.RATE
    ),
  ),
  'lstm_target_entropy': functools.partial(
    learners.vtrace_learner, core='lstm', target_entropy=0.3
  ),
}


@pytest.mark.slow
@pytest.mark.parametrize('kind', _LEARNERS)
def test_after_restoring_the_next_steps_are_equal_to_the_bit(kind):
  learner, other = _LEARNERS[kind](seed=1), _LEARNERS[kind](seed=2)
  samples = [learners.vtrace_sample(learner, seed) for seed in range(4)]
  for sample in samples[:2]:
    learner.step(sample, agent_steps=10)
  arrays = {name: np.array(x) for name, x in learner.save().items()}
  other.step(samples[3], agent_steps=0)  # training that restoring discards
  other.restore(arrays, num_updates=2)
  for sample in samples[2:]:
    expected, actual = learner.step(sample, 20), other.step(sample, 20)
    assert actual.metrics == expected.metrics
    assert other.variables().version == learner.variables().version
    learners.assert_all_equal(learners.values(other), learners.values(learner))
  saved, restored = learner.save(), other.save()
  assert saved.keys() == restored.keys()
  learners.assert_all_equal(list(restored.values()), list(saved.values()))


def test_a_checkpoint_is_complete_before_the_first_update(pair):
  trained, _ = pair
  before = learners.vtrace_learner().save()
  assert before.keys() == trained.save().keys()
  moments = [x for name, x in before.items() if name.startswith('optimizer/')]
  assert len(moments) > len([name for name in before if name.startswith('acting/')])
  assert all((x == 0).all() for x in moments)
  assert len(set(before)) == len(before)


@pytest.mark.parametrize(
  'spoil, wanted',
  [
    (lambda arrays, name: arrays.pop(name), 'has no'),
    (lambda arrays, name: arrays.__setitem__(name, np.zeros((7, 2), np.float32)), '[7, 2]'),
  ],
)
@pytest.mark.parametrize('index', [0, -1])
def test_restoring_from_another_network_names_the_variable_and_assigns_nothing(
  pair, spoil, wanted, index
):
  learner, other = pair
  before, number = _saved(learner), learner.num_updates
  arrays = dict(other.save())
  name = list(arrays)[index]
  spoil(arrays, name)
  with pytest.raises(types.UserError) as error:
    learner.restore(arrays, num_updates=9)
  assert name in str(error.value)
  assert wanted in str(error.value)
  assert len(str(error.value).splitlines()) <= 4
  learners.assert_all_equal(list(learner.save().values()), list(before.values()))
  assert learner.num_updates == number


def test_warm_start_takes_the_weights_and_leaves_the_optimiser_new(pair):
  (donor, _), learner = pair, learners.vtrace_learner(seed=3)
  learner.warm_start(donor.save())
  learners.assert_all_equal(learners.values(learner), learners.values(donor))
  assert learner.num_updates == 0
  assert all((x == 0).all() for name, x in learner.save().items() if name.startswith('optimizer/'))


def test_warm_start_needs_no_optimiser_in_the_checkpoint(pair):
  (donor, _), learner = pair, learners.vtrace_learner(seed=3)
  learner.warm_start(
    {name: x for name, x in donor.save().items() if name.startswith(('acting/', 'learning/'))}
  )
  learners.assert_all_equal(learners.values(learner), learners.values(donor))


def test_a_warm_start_may_learn_the_weight_of_a_loss_that_the_other_run_did_not(pair):
  (donor, _), learner = pair, learners.vtrace_learner(seed=3, target_entropy=0.5)
  weight = 'learning/weights/learnt_weights/entropy_parameter:0'
  before = _saved(learner)
  assert learner.warm_start(donor.save()) == [weight]
  after = _saved(learner)
  np.testing.assert_array_equal(after[weight], before[weight])
  acting = {name: x for name, x in donor.save().items() if name.startswith('acting/')}
  learners.assert_all_equal([after[name] for name in acting], list(acting.values()))
  with pytest.raises(types.UserError, match='the checkpoint has no acting/'):
    learner.warm_start({weight: before[weight]})
