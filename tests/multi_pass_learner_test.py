"""MultiPassLearner on a toy whose loss writes down what it is given."""

import dataclasses

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import learner as learner_lib
from seed_acme import multi_pass_learner
from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config

pytestmark = pytest.mark.timeout(240)

_T, _B = 3, 4
_ELEMENTS = _T * _B
_RATE = 0.05
_MAX_STEPS = 64  # that the toy's book has lines for
MID, LAST = types.MID, types.LAST


class _Toy(snt.Module):
  """Weights, and a book: line s is what gradient step s saw."""

  def __init__(self):
    super().__init__(name='toy')
    self.w = tf.Variable([1.0, -2.0], name='w')
    self.line = tf.Variable(0, trainable=False, name='line')
    # [elements used, preparations, of them first, preparation that the data are of]
    self.book = tf.Variable(tf.zeros([_MAX_STEPS, _ELEMENTS + 3]), trainable=False, name='book')
    self.preparations = tf.Variable([0.0, 0.0], trainable=False, name='preparations')
    self.finished_after = tf.Variable(-1, trainable=False, name='finished_after')


def _prepare(network, sample, is_first):
  """Transitions `[T*B, ...]`; what is prepared remembers the weights of that moment."""
  assert type(is_first) is bool
  network.preparations.assign_add([1.0, float(is_first)])
  observation = tf.reshape(sample.unroll.inputs.observation[:-1], (_ELEMENTS, 2))
  return {
    'x': observation,
    'index': tf.range(_ELEMENTS),
    'w': tf.repeat(network.w[None], _ELEMENTS, axis=0),
    'number': tf.fill([_ELEMENTS], network.preparations[0]),
  }


def _take(prepared, indices):
  return {name: tf.gather(x, indices) for name, x in prepared.items()}


def _finish(network, sample):
  del sample
  network.finished_after.assign(network.line)
  return {'toy/finished_w': network.w[0]}


def _loss(network, batch):
  """1/2 mean |w - x|^2, with a pull towards the weights when prepared."""
  used = tf.reduce_sum(tf.one_hot(batch['index'], _ELEMENTS), axis=0)
  line = tf.concat([used, network.preparations, batch['number'][:1]], axis=0)
  is_line = tf.range(_MAX_STEPS)[:, None] == network.line
  network.book.assign(tf.where(is_line, line[None], network.book))
  number = tf.cast(network.line, tf.float32)
  network.line.assign_add(1)
  pulled = 0.5 * tf.reduce_mean(tf.square(network.w - batch['w']))
  loss = 0.5 * tf.reduce_mean(tf.square(network.w - batch['x'])) + pulled
  return types.LossOutput(
    loss=loss,
    metrics={'toy/x': tf.reduce_mean(batch['x']), 'toy/step': number, 'toy/step_max': number},
  )


_PASSES = multi_pass_learner.Passes(
  num_epochs=3,
  num_minibatches=4,
  num_elements=_ELEMENTS,
  prepare=_prepare,
  prepares_each_epoch=False,
  take=_take,
  finish=_finish,
)


def _learner(loss=_loss, seed=5, xla=False, optimizer=None, total_steps=1000, overlap=0, **passes):
  config = vtrace_config.VTraceConfig(
    unroll_length=_T,
    batch_size=_B,
    overlap=overlap,
    optimizer=config_lib.OptimizerConfig(**{'learning_rate': _RATE, **(optimizer or {})}),
  )
  return multi_pass_learner.MultiPassLearner(
    _Toy(), loss, config, total_steps, dataclasses.replace(_PASSES, **passes), seed, xla
  )


def _sample(seed=0, step_type=None, version=0):
  rng = np.random.default_rng(seed)
  shape = (_T + 1, _B)
  inputs = types.AgentInput(
    step_type=np.full(shape, MID, np.uint8) if step_type is None else step_type,
    reward=np.zeros(shape, np.float32),
    discount=np.ones(shape, np.float32),
    previous_action=np.zeros(shape, np.int32),
    observation=rng.normal(size=(*shape, 2)).astype(np.float32),
  )
  outputs = types.AgentOutput(np.zeros(shape, np.int32), np.zeros(shape, np.float32))
  unroll = types.Unroll((), inputs, outputs, np.full(shape, version, np.int64))
  return types.Sample(unroll, np.arange(_B, dtype=np.uint64), np.ones(_B))


def _book(learner):
  """Lines written so far: (elements `[S, N]`, preparations, first ones, preparation used)."""
  network = learner._network
  lines = network.book.numpy()[: network.line.numpy()]
  return lines[:, :_ELEMENTS], *lines[:, _ELEMENTS:].T.tolist()


def _epochs(learner, num_epochs=3):
  """`[updates, epochs, minibatches, N]`: which elements each gradient step used."""
  elements = _book(learner)[0]
  return elements.reshape(learner.num_updates, num_epochs, -1, _ELEMENTS)


def _values(learner):
  return [np.array(x) for x in learner.variables().values]


def _by_name(learner, variables):
  return {
    variable.name.split('/')[-1].split(':')[0]: np.array(x)
    for variable, x in zip(learner._network.variables, variables.values)
  }


def _assert_all_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('num_epochs, num_minibatches', [(1, 1), (3, 4), (2, 12), (4, 1)])
def test_every_epoch_uses_each_element_once_in_minibatches_of_one_size(num_epochs, num_minibatches):
  learner = _learner(num_epochs=num_epochs, num_minibatches=num_minibatches)
  for update in range(2):
    metrics = learner.step(_sample(update), agent_steps=0).metrics
    assert metrics['learner/gradient_steps'] == num_epochs * num_minibatches
  epochs = _epochs(learner, num_epochs)
  assert epochs.shape == (2, num_epochs, num_minibatches, _ELEMENTS)
  assert (epochs.sum(axis=2) == 1).all()
  assert (epochs.sum(axis=3) == _ELEMENTS // num_minibatches).all()


def test_the_elements_are_dealt_anew_in_each_epoch_and_update():
  learner = _learner()
  for _ in range(4):
    learner.step(_sample(), agent_steps=0)
  dealt = [tuple(epoch.ravel().tolist()) for update in _epochs(learner) for epoch in update]
  assert len(set(dealt)) == 12
  in_order = np.eye(_ELEMENTS).reshape(4, 3, _ELEMENTS).sum(axis=1)
  assert tuple(in_order.ravel().tolist()) not in dealt


def test_dealing_depends_on_the_seed_and_the_number_of_the_update_alone():
  long, late, other = _learner(), _learner(), _learner(seed=6)
  for seed in range(3):
    long.step(_sample(seed), agent_steps=seed)
    other.step(_sample(seed), agent_steps=seed)
  late.num_updates = 2
  late.step(_sample(9), agent_steps=500)
  np.testing.assert_array_equal(_book(late)[0], _epochs(long)[2].reshape(12, _ELEMENTS))
  assert (_epochs(long) != _epochs(other)).any(axis=(1, 2, 3)).all()


def test_a_restored_learner_goes_on_to_the_bit_as_the_unbroken_one():
  learner, other = _learner(), _learner()
  samples = [_sample(seed) for seed in range(4)]
  for sample in samples[:2]:
    learner.step(sample, agent_steps=10)
  arrays = {name: np.array(x) for name, x in learner.save().items()}
  other.step(samples[3], agent_steps=0)  # whatever it learnt before is gone
  other.restore(arrays, num_updates=2)
  for sample in samples[2:]:
    expected, actual = learner.step(sample, 20), other.step(sample, 20)
    assert actual.metrics == expected.metrics
    assert actual.variables.version == expected.variables.version
    _assert_all_equal(
      [x.numpy() for x in actual.variables.values], [x.numpy() for x in expected.variables.values]
    )
  saved, restored = learner.save(), other.save()
  assert saved.keys() == restored.keys()
  _assert_all_equal(list(restored.values()), list(saved.values()))


def test_the_sample_is_prepared_once_with_the_weights_before_the_first_pass():
  learner = _learner()
  for _ in range(2):
    learner.step(_sample(), agent_steps=0)
  _, preparations, first_ones, used = _book(learner)
  assert preparations == first_ones == used == [1] * 12 + [2] * 12


def test_or_before_each_epoch_and_the_first_is_told_apart():
  learner = _learner(prepares_each_epoch=True)
  for _ in range(2):
    learner.step(_sample(), agent_steps=0)
  _, preparations, first_ones, used = _book(learner)
  assert preparations == used == np.repeat(np.arange(1, 7), 4).tolist()
  assert first_ones == [1] * 12 + [2] * 12


def _toy_step(w, data, prepared_w, rate, m, v, t):
  """One step of Adam (Kingma and Ba 2015, algorithm 1) on `_loss`; no clipping."""
  config = config_lib.OptimizerConfig()
  gradient = ((w - data).mean(axis=0) + (w - prepared_w)) / 2
  m = config.adam_beta1 * m + (1 - config.adam_beta1) * gradient
  v = config.adam_beta2 * v + (1 - config.adam_beta2) * gradient**2
  m_hat, v_hat = m / (1 - config.adam_beta1**t), v / (1 - config.adam_beta2**t)
  return w - rate * m_hat / (np.sqrt(v_hat) + config.epsilon), m, v


@pytest.mark.parametrize('xla', [False, True])
@pytest.mark.parametrize('each_epoch', [False, True])
def test_the_weights_are_those_of_a_slow_reference(each_epoch, xla):
  learner = _learner(prepares_each_epoch=each_epoch, xla=xla, optimizer={'max_gradient_norm': 0.0})
  sample = _sample()
  update = learner.step(sample, agent_steps=0)
  data = sample.unroll.inputs.observation[:-1].reshape(_ELEMENTS, 2)
  w, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
  for t, elements in enumerate(_book(learner)[0]):
    if t == 0 or (each_epoch and t % 4 == 0):
      prepared_w = w
    w, m, v = _toy_step(w, data[elements.astype(bool)], prepared_w, _RATE, m, v, t + 1)
  np.testing.assert_allclose(learner._network.w.numpy(), w, rtol=1e-4)
  assert update.metrics['toy/finished_w'] == pytest.approx(w[0], rel=1e-4)


def test_metrics_are_means_over_the_gradient_steps_and_maxima_where_they_are_called_so():
  learner = _learner()
  for update in range(2):
    sample = _sample(update)
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


def test_what_finishes_comes_after_the_last_step_and_is_published():
  learner = _learner()
  for number in (1, 2):
    update = learner.step(_sample(), agent_steps=0)
    published = _by_name(learner, update.variables)
    assert published['finished_after'] == published['line'] == 12 * number
    assert update.metrics['toy/finished_w'] == published['w'][0]
    assert update.priorities is None


@pytest.mark.parametrize(
  'step, name, value',
  [
    (0, 'toy/odd', np.nan),
    (5, 'toy/odd', -np.inf),
    (11, 'toy/odd', np.nan),
    (5, 'toy/odd_max', np.nan),
    (5, 'toy/odd_max', np.inf),
  ],
)
def test_what_is_not_finite_in_any_gradient_step_stops_the_run(step, name, value):
  def loss(network, batch):
    is_odd = network.line == step + 12
    output = _loss(network, batch)
    return output._replace(metrics={name: tf.where(is_odd, value, 1.0), **output.metrics})

  learner = _learner(loss)
  learner.step(_sample(), agent_steps=0)
  with pytest.raises(learner_lib.NonFiniteError) as error:
    learner.step(_sample(), agent_steps=0)
  assert f'{name} became' in str(error.value) and 'update 2' in str(error.value)
  assert learner.num_updates == 1


def test_what_is_not_finite_at_the_end_stops_the_run():
  learner = _learner(finish=lambda network, sample: {'toy/end': tf.math.log(-(network.w[0] ** 2))})
  with pytest.raises(learner_lib.NonFiniteError, match='toy/end became nan in update 1'):
    learner.step(_sample(), agent_steps=0)


def test_a_gradient_that_is_not_finite_stops_the_run():
  learner = _learner()
  sample = _sample()
  sample.unroll.inputs.observation[1, 2] = np.nan
  with pytest.raises(learner_lib.NonFiniteError, match='learner/gradient_norm'):
    learner.step(sample, agent_steps=0)


def test_versions_are_the_number_of_updates_and_steps_count_once_a_sample():
  step_type = np.full((_T + 1, _B), MID, np.uint8)
  step_type[0, 1] = step_type[2, 3] = step_type[3, 0] = LAST  # the last row starts no step
  learner = _learner()
  assert learner.variables().version == 0
  for number in (1, 2, 3):
    update = learner.step(_sample(step_type=step_type, version=number - 1), agent_steps=0)
    assert update.variables.version == learner.num_updates == number
    assert update.trained_steps == _ELEMENTS - 2
    assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 0
  update = learner.step(_sample(version=1), agent_steps=0)
  assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 2


@pytest.mark.parametrize('agent_steps, share', [(0, 1.0), (250, 0.75), (1000, 0.0), (2000, 0.0)])
def test_the_learning_rate_follows_the_steps_of_the_run(agent_steps, share):
  learner = _learner(num_epochs=1, num_minibatches=1, optimizer={'schedule': 'linear'})
  before = learner._network.w.numpy().copy()
  metrics = learner.step(_sample(), agent_steps).metrics
  assert metrics['learner/learning_rate'] == pytest.approx(share * _RATE)
  # Adam's first step is the learning rate.
  np.testing.assert_allclose(
    np.abs(learner._network.w.numpy() - before), share * _RATE, rtol=1e-3, atol=1e-9
  )


def test_xla_changes_no_number():
  plain, compiled = _learner(), _learner(xla=True)
  for seed in range(3):
    expected, actual = (one.step(_sample(seed), agent_steps=0) for one in (plain, compiled))
    assert actual.metrics == pytest.approx(expected.metrics, rel=1e-4)
  for a, b in zip(_values(compiled), _values(plain)):
    np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize('xla', [False, True])
def test_published_values_do_not_change_when_further_updates_run(xla):
  learner = _learner(xla=xla)
  published = [learner.variables()] + [learner.step(_sample(), 0).variables for _ in range(2)]
  copies = [[np.array(x) for x in variables.values] for variables in published]
  for seed in range(2):
    learner.step(_sample(seed), agent_steps=0)
  for variables, copy in zip(published, copies):
    _assert_all_equal([x.numpy() for x in variables.values], copy)
  w = [_by_name(learner, variables)['w'] for variables in published]
  assert (w[0] != w[1]).all() and (w[1] != w[2]).all()
