"""A learner with several passes, on a toy whose loss records its inputs."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme.learning import learner as learner_lib
from tests.learning import toy_learner

pytestmark = pytest.mark.timeout(240)


@pytest.mark.slow
@pytest.mark.parametrize('num_epochs, num_minibatches', [(1, 1), (2, 12), (4, 1)])
def test_every_epoch_uses_each_element_once_in_minibatches_of_one_size(num_epochs, num_minibatches):
  learner = toy_learner.learner(num_epochs=num_epochs, num_minibatches=num_minibatches)
  for update in range(2):
    metrics = learner.step(toy_learner.sample(update), agent_steps=0).metrics
    assert metrics['learner/gradient_steps'] == num_epochs * num_minibatches
  epochs = toy_learner.epochs(learner, num_epochs)
  assert epochs.shape == (2, num_epochs, num_minibatches, toy_learner.ELEMENTS)
  assert (epochs.sum(axis=2) == 1).all()
  assert (epochs.sum(axis=3) == toy_learner.ELEMENTS // num_minibatches).all()


@pytest.mark.slow
def test_the_elements_are_dealt_anew_in_each_epoch_and_update():
  learner = toy_learner.learner()
  for _ in range(4):
    learner.step(toy_learner.sample(), agent_steps=0)
  dealt = [
    tuple(epoch.ravel().tolist()) for update in toy_learner.epochs(learner) for epoch in update
  ]
  assert len(set(dealt)) == 12
  in_order = np.eye(toy_learner.ELEMENTS).reshape(4, 3, toy_learner.ELEMENTS).sum(axis=1)
  assert tuple(in_order.ravel().tolist()) not in dealt


@pytest.mark.slow
def test_dealing_depends_on_the_seed_and_the_number_of_the_update_alone():
  long, late, other = toy_learner.learner(), toy_learner.learner(), toy_learner.learner(seed=6)
  for seed in range(3):
    long.step(toy_learner.sample(seed), agent_steps=seed)
    other.step(toy_learner.sample(seed), agent_steps=seed)
  late.num_updates = 2
  late.step(toy_learner.sample(9), agent_steps=500)
  np.testing.assert_array_equal(
    toy_learner.book(late)[0], toy_learner.epochs(long)[2].reshape(12, toy_learner.ELEMENTS)
  )
  assert (toy_learner.epochs(long) != toy_learner.epochs(other)).any(axis=(1, 2, 3)).all()


def test_the_sample_is_prepared_once_with_the_weights_before_the_first_pass():
  learner = toy_learner.learner()
  for _ in range(2):
    learner.step(toy_learner.sample(), agent_steps=0)
  _, preparations, first_ones, used = toy_learner.book(learner)
  assert preparations == first_ones == used == [1] * 12 + [2] * 12


def test_or_before_each_epoch_and_the_first_is_told_apart():
  learner = toy_learner.learner(prepares_each_epoch=True)
  for _ in range(2):
    learner.step(toy_learner.sample(), agent_steps=0)
  _, preparations, first_ones, used = toy_learner.book(learner)
  assert preparations == used == np.repeat(np.arange(1, 7), 4).tolist()
  assert first_ones == [1] * 12 + [2] * 12


def _toy_step(w, data, prepared_w, rate, m, v, t):
  """Makes one step of Adam (Kingma and Ba 2015, algorithm 1) on `toy_learner.loss`; no clipping."""
  config = config_lib.OptimizerConfig()
  gradient = ((w - data).mean(axis=0) + (w - prepared_w)) / 2
  m = config.adam_beta1 * m + (1 - config.adam_beta1) * gradient
  v = config.adam_beta2 * v + (1 - config.adam_beta2) * gradient**2
  m_hat, v_hat = m / (1 - config.adam_beta1**t), v / (1 - config.adam_beta2**t)
  return w - rate * m_hat / (np.sqrt(v_hat) + config.epsilon), m, v


@pytest.mark.slow
@pytest.mark.parametrize('each_epoch, xla', [(False, False), (True, True)])
def test_the_weights_are_those_of_a_slow_reference(each_epoch, xla):
  learner = toy_learner.learner(
    prepares_each_epoch=each_epoch, xla=xla, optimizer={'max_gradient_norm': 0.0}
  )
  sample = toy_learner.sample()
  update = learner.step(sample, agent_steps=0)
  data = sample.unroll.inputs.observation[:-1].reshape(toy_learner.ELEMENTS, 2)
  w, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
  for t, elements in enumerate(toy_learner.book(learner)[0]):
    if t == 0 or (each_epoch and t % 4 == 0):
      prepared_w = w
    w, m, v = _toy_step(w, data[elements.astype(bool)], prepared_w, toy_learner.RATE, m, v, t + 1)
  np.testing.assert_allclose(toy_learner.by_name(learner.variables())['w'], w, rtol=1e-4)
  assert update.metrics['toy/finished_w'] == pytest.approx(w[0], rel=1e-4)


def test_metrics_are_means_over_the_gradient_steps_and_maxima_where_they_are_called_so():
  learner = toy_learner.learner()
  for update in range(2):
    sample = toy_learner.sample(update)
    metrics = learner.step(sample, agent_steps=0).metrics
    assert metrics['toy/step'] == 12 * update + 5.5
    assert metrics['toy/step_max'] == 12 * update + 11
    assert metrics['toy/x'] == pytest.approx(sample.unroll.inputs.observation[:-1].mean(), rel=1e-4)
    assert all(type(value) is float for value in metrics.values())
  assert set(metrics) == {
    'toy/x',
    'toy/step',
    'toy/step_max',
    'toy/finished_w',
    'loss/total',
    'learner/gradient_norm',
    'learner/learning_rate',
    'learner/policy_lag',
    'learner/policy_lag_max',
    'learner/gradient_steps',
  }


@pytest.mark.slow
@pytest.mark.parametrize('xla', [False, True])
def test_a_metric_is_of_the_first_or_of_the_last_pass_where_the_agent_says_so(xla):
  def loss(network, batch):
    output = toy_learner.loss(network, batch)
    step = output.metrics['toy/step']
    more = {'toy/early': step, 'toy/early_max': step, 'toy/late': step}
    return output._replace(metrics={**output.metrics, **more})

  learner = toy_learner.learner(
    loss, xla=xla, of_first=('toy/early', 'toy/early_max'), of_last=('toy/late',)
  )
  for first in (0, 12):
    metrics = learner.step(toy_learner.sample(), agent_steps=0).metrics
    assert metrics['toy/early'] == first + 1.5
    assert metrics['toy/early_max'] == first + 3
    assert metrics['toy/late'] == first + 9.5
    assert metrics['toy/step'] == first + 5.5


@pytest.mark.slow
@pytest.mark.parametrize('num_minibatches', [1, 4])
def test_a_variance_is_that_of_the_whole_sample_however_it_is_dealt_out(num_minibatches):
  def loss(network, batch):
    output = toy_learner.loss(network, batch)
    mean, variance = tf.nn.moments(batch['x'][:, 0], axes=0)
    return output._replace(metrics={'toy/mean': mean, 'toy/variance': variance})

  learner = toy_learner.learner(
    loss,
    num_minibatches=num_minibatches,
    of_first=('toy/variance',),
    variances={'toy/variance': 'toy/mean'},
  )
  sample = toy_learner.sample()
  metrics = learner.step(sample, agent_steps=0).metrics
  expected = sample.unroll.inputs.observation[:-1, :, 0].var()
  assert metrics['toy/variance'] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
  'names',
  [
    {'of_first': ('toy/none',)},
    {'of_last': ('toy/none',)},
    {'variances': {'toy/x': 'toy/none'}},
    {'variances': {'toy/none': 'toy/x'}},
  ],
)
def test_a_metric_that_no_loss_reports_cannot_be_of_one_pass(names):
  learner = toy_learner.learner(**names)
  with pytest.raises(ValueError, match='the passes name toy/none, but the losses report'):
    learner.step(toy_learner.sample(), agent_steps=0)


def test_what_finishes_comes_after_the_last_step_and_is_published():
  learner = toy_learner.learner()
  for number in (1, 2):
    update = learner.step(toy_learner.sample(), agent_steps=0)
    published = toy_learner.by_name(learner.variables())
    assert published['finished_after'] == published['line'] == 12 * number
    assert update.metrics['toy/finished_w'] == published['w'][0]
    assert update.priorities is None


@pytest.mark.slow
@pytest.mark.parametrize(
  'step, name, value',
  [
    (0, 'toy/odd', np.nan),
    (5, 'toy/odd', -np.inf),
    (11, 'toy/odd_max', np.nan),
    (5, 'toy/odd_max', np.inf),
  ],
)
def test_what_is_not_finite_in_any_gradient_step_stops_the_run(step, name, value):
  def loss(network, batch):
    is_odd = network.line == step + 12
    output = toy_learner.loss(network, batch)
    return output._replace(metrics={name: tf.where(is_odd, value, 1.0), **output.metrics})

  learner = toy_learner.learner(loss)
  learner.step(toy_learner.sample(), agent_steps=0)
  with pytest.raises(learner_lib.NonFiniteError) as error:
    learner.step(toy_learner.sample(), agent_steps=0)
  assert f'{name} became' in str(error.value) and 'update 2' in str(error.value)
  assert learner.num_updates == 1


def test_what_is_not_finite_at_the_end_stops_the_run():
  learner = toy_learner.learner(
    finish=lambda network, sample: {'toy/end': tf.math.log(-(network.w[0] ** 2))}
  )
  with pytest.raises(learner_lib.NonFiniteError, match='toy/end became nan in update 1'):
    learner.step(toy_learner.sample(), agent_steps=0)


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_stops_the_run():
  learner = toy_learner.learner()
  sample = toy_learner.sample()
  sample.unroll.inputs.observation[1, 2] = np.nan
  with pytest.raises(learner_lib.NonFiniteError, match='learner/gradient_norm'):
    learner.step(sample, agent_steps=0)


@pytest.mark.slow
def test_versions_are_the_number_of_updates_and_steps_count_once_a_sample():
  step_type = np.full((toy_learner.T + 1, toy_learner.B), toy_learner.MID, np.uint8)
  step_type[0, 1] = step_type[2, 3] = step_type[3, 0] = (
    toy_learner.LAST
  )  # the last row starts no step
  learner = toy_learner.learner()
  assert learner.variables().version == 0
  for number in (1, 2, 3):
    update = learner.step(
      toy_learner.sample(step_type=step_type, version=number - 1), agent_steps=0
    )
    assert learner.variables().version == learner.num_updates == number
    assert update.trained_steps == toy_learner.ELEMENTS - 2
    assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 0
  update = learner.step(toy_learner.sample(version=1), agent_steps=0)
  assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 2


@pytest.mark.slow
@pytest.mark.parametrize('agent_steps, share', [(250, 0.75), (2000, 0.0)])
def test_the_learning_rate_follows_the_steps_of_the_run(agent_steps, share):
  learner = toy_learner.learner(num_epochs=1, num_minibatches=1, optimizer={'schedule': 'linear'})
  before = toy_learner.by_name(learner.variables())['w']
  metrics = learner.step(toy_learner.sample(), agent_steps).metrics
  assert metrics['learner/learning_rate'] == pytest.approx(share * toy_learner.RATE)
  # Adam's first step is the learning rate.
  after = toy_learner.by_name(learner.variables())['w']
  np.testing.assert_allclose(np.abs(after - before), share * toy_learner.RATE, rtol=1e-3, atol=1e-9)


@pytest.mark.slow
def test_xla_changes_no_number():
  plain, compiled = toy_learner.learner(), toy_learner.learner(xla=True)
  for seed in range(3):
    expected, actual = (
      one.step(toy_learner.sample(seed), agent_steps=0) for one in (plain, compiled)
    )
    assert actual.metrics == pytest.approx(expected.metrics, rel=1e-4)
  for a, b in zip(toy_learner.values(compiled), toy_learner.values(plain)):
    np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize('xla', [False, True])
def test_published_values_do_not_change_when_further_updates_run(xla):
  learner = toy_learner.learner(xla=xla)
  published = [learner.variables()]
  for _ in range(2):
    learner.step(toy_learner.sample(), agent_steps=0)
    published.append(learner.variables())
  copies = [[np.array(x) for x in variables.values] for variables in published]
  for seed in range(2):
    learner.step(toy_learner.sample(seed), agent_steps=0)
  for variables, copy in zip(published, copies):
    toy_learner.assert_all_equal([x.numpy() for x in variables.values], copy)
  w = [toy_learner.by_name(variables)['w'] for variables in published]
  assert (w[0] != w[1]).all() and (w[1] != w[2]).all()


def test_priorities_of_minibatches_are_refused():
  def loss(network, batch):
    return toy_learner.loss(network, batch)._replace(priorities=batch['x'][:, 0])

  with pytest.raises(ValueError, match='must not return priorities'):
    toy_learner.learner(loss).step(toy_learner.sample(), agent_steps=0)
