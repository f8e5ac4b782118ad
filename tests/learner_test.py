"""The learner on made-up samples: its arithmetic, its metrics, its checkpoints."""

import functools

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import learner as learner_lib
from seed_acme import types
from seed_acme.agents.vtrace import agent
from seed_acme.agents.vtrace import config as vtrace_config

_T, _B = 4, 3
_RATE = 0.05
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((4,), np.float32), action=specs.DiscreteArray(3)
)
FIRST, MID, LAST = types.FIRST, types.MID, types.LAST


class _Linear(snt.Module):
  """A vector and a matrix, whose gradients the sample dictates (see `_linear_loss`)."""

  def __init__(self):
    super().__init__(name='linear')
    self.w = tf.Variable([1.0, -2.0, 0.5], name='w')
    self.m = tf.Variable([[0.25, 3.0]], name='m')


def _linear_loss(network, sample):
  """d/dw = mean of the observations, d/dm = mean reward for each of its entries."""
  observation = tf.reduce_mean(sample.unroll.inputs.observation, axis=(0, 1))
  reward = tf.reduce_mean(sample.unroll.inputs.reward)
  loss = tf.reduce_sum(network.w * observation) + tf.reduce_sum(network.m) * reward
  return types.LossOutput(loss=loss, metrics={'toy/reward': reward})


def _linear_gradients(sample):
  inputs = sample.unroll.inputs
  return [
    np.full((1, 2), inputs.reward.astype(np.float64).mean()),
    inputs.observation.astype(np.float64).mean((0, 1)),
  ]  # `m`, `w`: Sonnet's order


def _agent_config(optimizer=None, **changes):
  optimizer = optimizer or config_lib.OptimizerConfig(learning_rate=_RATE)
  return vtrace_config.VTraceConfig(
    **{'unroll_length': _T, 'batch_size': _B, 'optimizer': optimizer, **changes}
  )


def _linear_learner(total_steps=1000, overlap=0, **optimizer):
  config = _agent_config(
    config_lib.OptimizerConfig(**{'learning_rate': _RATE, **optimizer}), overlap=overlap
  )
  return learner_lib.Learner(_Linear(), _linear_loss, config, total_steps)


def _vtrace_learner(seed=1, core='none', **changes):
  tf.random.set_seed(seed)
  config = _agent_config(**changes)
  network = agent.AGENT.make_network(
    _SPEC, config_lib.NetworkConfig(mlp_sizes=(8,), core=core, core_size=6), config
  )
  loss = lambda network, sample: agent.AGENT.loss(network, sample, config)
  return learner_lib.Learner(network, loss, config, total_steps=1000)


def _sample(seed=0, num_rows=_T + 1, observation_size=3, step_type=None, state=(), scale=1.0):
  rng = np.random.default_rng(seed)
  shape = (num_rows, _B)
  normal = lambda *size: rng.normal(size=size, scale=scale).astype(np.float32)
  inputs = types.AgentInput(
    step_type=np.full(shape, MID, np.uint8) if step_type is None else step_type,
    reward=normal(*shape),
    discount=np.ones(shape, np.float32),
    previous_action=rng.integers(0, 3, shape).astype(np.int32),
    observation=normal(*shape, observation_size),
  )
  outputs = types.AgentOutput(
    action=rng.integers(0, 3, shape).astype(np.int32),
    prediction=types.ActorCriticOutput(normal(*shape, 3), normal(*shape)),
  )
  unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
  return types.Sample(unroll, np.arange(_B, dtype=np.uint64), np.ones(_B))


def _vtrace_sample(learner, seed=0):
  state = tf.nest.map_structure(lambda x: x.numpy(), learner._network.initial_state(_B))
  return _sample(seed, observation_size=4, state=state)


def _with_inputs(sample, **fields):
  return sample._replace(
    unroll=sample.unroll._replace(inputs=sample.unroll.inputs._replace(**fields))
  )


def _values(learner):
  """Copies of all weights; `numpy()` of a tensor may share its memory."""
  return [np.array(value) for value in learner.variables().values]


def _assert_all_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)


def _adam(config, gradients):
  """Kingma and Ba 2015, algorithm 1; gradients of each step -> sum of all changes."""
  m, v, change = 0.0, 0.0, 0.0
  for t, g in enumerate(gradients, start=1):
    m = config.adam_beta1 * m + (1 - config.adam_beta1) * g
    v = config.adam_beta2 * v + (1 - config.adam_beta2) * g * g
    m_hat, v_hat = m / (1 - config.adam_beta1**t), v / (1 - config.adam_beta2**t)
    change = change - config.learning_rate * m_hat / (np.sqrt(v_hat) + config.epsilon)
  return change


def _rmsprop(config, gradients):
  """TensorFlow's form of Hinton's lecture 6e: epsilon within the root, momentum outside."""
  square, momentum, change = 0.0, 0.0, 0.0
  for g in gradients:
    square = config.rmsprop_decay * square + (1 - config.rmsprop_decay) * g * g
    momentum = config.rmsprop_momentum * momentum + config.learning_rate * g / np.sqrt(
      square + config.epsilon
    )
    change = change - momentum
  return change


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
  learner = _linear_learner(**settings)
  start = _values(learner)
  samples = [_sample(seed, scale=10**-seed) for seed in range(4)]
  for sample in samples:
    learner.step(sample, agent_steps=0)
  config = config_lib.OptimizerConfig(**{'learning_rate': _RATE, **settings})
  gradients = zip(*[_linear_gradients(sample) for sample in samples])
  for before, after, of_steps in zip(start, _values(learner), gradients):
    np.testing.assert_allclose(after, before + reference(config, of_steps), rtol=1e-5, atol=1e-6)


def _applied_norm(learner):
  """Norm of the gradient that reached an Adam of beta1 = 0: its first moment."""
  moments = [x for name, x in learner.save().items() if '/m/' in name]
  assert len(moments) == 2
  return np.sqrt(sum(np.sum(np.square(x, dtype=np.float64)) for x in moments))


@pytest.mark.parametrize('max_norm', [0.01, 0.3, 1e3, 0.0])
def test_gradients_are_scaled_down_to_the_limit_and_reported_unscaled(max_norm):
  learner = _linear_learner(max_gradient_norm=max_norm, adam_beta1=0.0)
  sample = _sample()
  norm = np.sqrt(sum(np.sum(g**2) for g in _linear_gradients(sample)))
  assert norm > 0.3
  metrics = learner.step(sample, agent_steps=0).metrics
  assert metrics['learner/gradient_norm'] == pytest.approx(norm, rel=1e-5)
  expected = min(norm, max_norm) if max_norm else norm
  assert _applied_norm(learner) == pytest.approx(expected, rel=1e-5)


def test_clipping_keeps_the_direction():
  learner = _linear_learner(max_gradient_norm=0.01, adam_beta1=0.0)
  sample = _sample()
  learner.step(sample, agent_steps=0)
  gradients = _linear_gradients(sample)
  scale = 0.01 / np.sqrt(sum(np.sum(g**2) for g in gradients))
  moments = [x for name, x in learner.save().items() if '/m/' in name]
  for moment, gradient in zip(moments, gradients):
    np.testing.assert_allclose(moment, gradient * scale, rtol=1e-4)


@pytest.mark.parametrize('agent_steps, share', [(0, 1.0), (250, 0.75), (1000, 0.0), (2000, 0.0)])
def test_linear_schedule_runs_over_the_steps_of_the_experiment(agent_steps, share):
  learner = _linear_learner(schedule='linear', total_steps=1000)
  before = _values(learner)
  metrics = learner.step(_sample(), agent_steps).metrics
  assert metrics['learner/learning_rate'] == pytest.approx(share * _RATE)
  for old, new in zip(before, _values(learner)):  # Adam's first step is the learning rate
    np.testing.assert_allclose(np.abs(new - old), share * _RATE, rtol=1e-3, atol=1e-9)


def test_metrics_are_named_by_group_and_are_plain_floats():
  update = _linear_learner().step(_sample(), agent_steps=0)
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
  learner = _linear_learner()
  for seed in range(3):
    sample = _sample(seed)
    weights = _values(learner)
    update = learner.step(sample, agent_steps=0)
    gradients = _linear_gradients(sample)
    loss = sum(np.sum(w * g) for w, g in zip(weights, gradients))
    assert update.metrics['loss/total'] == pytest.approx(loss, rel=1e-4)
    assert update.metrics['toy/reward'] == pytest.approx(gradients[0][0, 0], rel=1e-5)


def test_priorities_of_the_loss_come_out():

  def loss(network, sample):
    output = _linear_loss(network, sample)
    return output._replace(priorities=tf.reduce_sum(sample.unroll.inputs.reward, axis=0))

  learner = learner_lib.Learner(_Linear(), loss, _agent_config(), total_steps=1000)
  sample = _sample()
  np.testing.assert_allclose(
    learner.step(sample, 0).priorities, sample.unroll.inputs.reward.sum(0), rtol=1e-5
  )


def test_policy_lag_and_trained_steps_count_unmasked_transitions_after_the_overlap():
  """Rows 0 and 1 are burn-in, row 5 is only bootstrapped from; LAST rows are no steps."""
  overlap, num_rows = 2, 6
  step_type = np.full((num_rows, _B), MID, np.uint8)
  step_type[2, 0] = step_type[4, 1] = step_type[5, 2] = step_type[0, 2] = LAST
  step_type[3, 0] = step_type[5, 1] = step_type[1, 2] = FIRST
  version = np.full((num_rows, _B), -100, np.int64)  # where nothing is counted
  version[2:5] = [[-50, 3, 3], [4, 3, 4], [5, -50, 1]]  # -50: LAST rows
  learner = _linear_learner(overlap=overlap)
  learner.num_updates = 7
  sample = _sample(num_rows=num_rows, step_type=step_type)
  sample = sample._replace(unroll=sample.unroll._replace(policy_version=version))
  update = learner.step(sample, agent_steps=0)
  lags = [7 - 3, 7 - 3, 7 - 4, 7 - 3, 7 - 4, 7 - 5, 7 - 1]
  assert update.trained_steps == len(lags)
  assert update.metrics['learner/policy_lag'] == pytest.approx(np.mean(lags))
  assert update.metrics['learner/policy_lag_max'] == 6
  assert update.variables.version == 8


def test_a_sample_without_any_step_has_no_lag():
  step_type = np.full((_T + 1, _B), LAST, np.uint8)
  update = _linear_learner().step(_sample(step_type=step_type), agent_steps=0)
  assert update.trained_steps == 0
  assert update.metrics['learner/policy_lag'] == update.metrics['learner/policy_lag_max'] == 0


def test_policy_lag_follows_the_updates():
  learner = _linear_learner()
  lags = [learner.step(_sample(), 0).metrics['learner/policy_lag'] for _ in range(3)]
  assert lags == [0, 1, 2]


@pytest.mark.parametrize(
  'core, target_entropy, number', [('none', None, 6), ('none', 0.5, 7), ('lstm', 0.5, 10)]
)
def test_every_trainable_variable_changes(core, target_entropy, number):
  learner = _vtrace_learner(core=core, target_entropy=target_entropy)
  before = _values(learner)
  learner.step(_vtrace_sample(learner), agent_steps=0)
  names = [v.name for v in learner._network.trainable_variables]
  assert len(names) == len(before) == number
  for name, old, new in zip(names, before, _values(learner)):
    assert (old != new).any(), name


@pytest.mark.parametrize(
  'field, metric',
  [
    ('reward', 'loss/policy'),
    ('observation', 'learner/gradient_norm'),  # a ReLU turns NaN into 0: the gradient shows it
  ],
)
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_what_is_not_finite_stops_the_run_and_the_metric_is_named(field, metric, value):
  learner = _vtrace_learner()
  good = _vtrace_sample(learner)
  learner.step(good, agent_steps=0)
  array = np.array(getattr(good.unroll.inputs, field))
  array[2, 1] = value
  with pytest.raises(learner_lib.NonFiniteError) as error:
    learner.step(_with_inputs(good, **{field: array}), agent_steps=0)
  assert metric in str(error.value)
  assert 'update 2' in str(error.value)
  assert len(str(error.value).splitlines()) <= 4
  assert learner.num_updates == 1


def test_a_gradient_that_is_not_finite_stops_the_run_though_the_loss_is():

  def loss(network, sample):
    del sample
    return types.LossOutput(  # sqrt(0) = 0 with an infinite slope
      loss=tf.reduce_sum(tf.sqrt(network.w - network.w[0])[:1]) + tf.reduce_sum(network.m),
      metrics={},
    )

  learner = learner_lib.Learner(_Linear(), loss, _agent_config(), total_steps=1000)
  with pytest.raises(learner_lib.NonFiniteError, match='learner/gradient_norm'):
    learner.step(_sample(), agent_steps=0)


@pytest.mark.parametrize('name', ['adam', 'rmsprop'])
def test_published_values_do_not_change_when_further_updates_run(name):
  learner = _linear_learner(name=name, learning_rate=1.0)
  published = [learner.variables()] + [learner.step(_sample(), 0).variables for _ in range(3)]
  copies = [[np.array(x) for x in variables.values] for variables in published]
  for seed in range(20):
    learner.step(_sample(seed), agent_steps=0)
  assert [variables.version for variables in published] == [0, 1, 2, 3]
  for variables, copy in zip(published, copies):
    _assert_all_equal([x.numpy() for x in variables.values], copy)
  for older, newer in zip(copies, copies[1:]):
    assert all((a != b).any() for a, b in zip(older, newer))


def test_an_update_publishes_the_weights_after_it():
  learner = _vtrace_learner()
  update = learner.step(_vtrace_sample(learner), agent_steps=0)
  _assert_all_equal([x.numpy() for x in update.variables.values], _values(learner))


def test_the_acting_network_is_not_the_learners():
  first, second = _vtrace_learner(seed=1), _vtrace_learner(seed=1)
  before = _values(second)
  first.step(_vtrace_sample(first), agent_steps=0)
  _assert_all_equal(_values(second), before)


_LEARNERS = {
  'adam': _vtrace_learner,
  'rmsprop': functools.partial(
    _vtrace_learner,
    optimizer=config_lib.OptimizerConfig(name='rmsprop', rmsprop_momentum=0.9, learning_rate=_RATE),
  ),
  'lstm_target_entropy': functools.partial(_vtrace_learner, core='lstm', target_entropy=0.3),
}


@pytest.mark.parametrize('kind', _LEARNERS)
def test_after_restoring_the_next_steps_are_equal_to_the_bit(kind):
  learner, other = _LEARNERS[kind](seed=1), _LEARNERS[kind](seed=2)
  samples = [_vtrace_sample(learner, seed) for seed in range(4)]
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


def test_a_checkpoint_is_complete_before_the_first_update():
  fresh, trained = _vtrace_learner(), _vtrace_learner()
  trained.step(_vtrace_sample(trained), agent_steps=0)
  before = fresh.save()
  assert before.keys() == trained.save().keys()
  moments = [x for name, x in before.items() if name.startswith('optimizer/')]
  assert len(moments) > len(fresh._network.trainable_variables)
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
  spoil, wanted, index
):
  learner = _vtrace_learner()
  learner.step(_vtrace_sample(learner), agent_steps=0)
  before = {name: np.array(x) for name, x in learner.save().items()}
  other = _vtrace_learner(seed=2)
  other.step(_vtrace_sample(other, seed=5), agent_steps=0)
  arrays = other.save()
  name = list(arrays)[index]
  spoil(arrays, name)
  with pytest.raises(types.UserError) as error:
    learner.restore(arrays, num_updates=9)
  assert name in str(error.value)
  assert wanted in str(error.value)
  assert len(str(error.value).splitlines()) <= 4
  _assert_all_equal(list(learner.save().values()), list(before.values()))
  assert learner.num_updates == 1


def test_warm_start_takes_the_weights_and_leaves_the_optimiser_new():
  donor, learner = _vtrace_learner(seed=1), _vtrace_learner(seed=2)
  for _ in range(3):
    donor.step(_vtrace_sample(donor), agent_steps=0)
  learner.warm_start(donor.save())
  _assert_all_equal(_values(learner), _values(donor))
  assert learner.num_updates == 0
  assert all((x == 0).all() for name, x in learner.save().items() if name.startswith('optimizer/'))


def test_warm_start_needs_no_optimiser_in_the_checkpoint():
  donor, learner = _vtrace_learner(seed=1), _vtrace_learner(seed=2)
  learner.warm_start({name: x for name, x in donor.save().items() if name.startswith('network/')})
  _assert_all_equal(_values(learner), _values(donor))


def test_a_variable_that_the_loss_does_not_use_is_named():
  network = _Linear()
  network.idle = tf.Variable(1.0, name='idle')
  learner = learner_lib.Learner(network, _linear_loss, _agent_config(), total_steps=1000)
  with pytest.raises(types.UserError, match='idle') as error:
    learner.step(_sample(), agent_steps=0)
  assert len(str(error.value).splitlines()) <= 4
