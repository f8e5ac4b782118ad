"""The losses' gradients: which weights they reach, their size, and what has none."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.ops import uniforms as uniforms_lib

LAST = types.LAST
_KEY = (1, 2)


def _prepared(world, sample):
  return batch_lib.prepare(
    sample, tf.constant(_KEY, tf.int32), True, goal_outcome=None, config=world.config
  ).batch


def _uniforms(world, batch):
  """Returns numbers of the right shape that do not depend on how the losses draw theirs."""
  shape = [*batch.inputs.step_type.shape, world.distribution.num_uniforms]
  return uniforms_lib.draw(tf.constant([8, 9], tf.int32), shape)


class _Given:
  """A distribution that samples with given uniforms."""

  def __init__(self, distribution, uniforms):
    self._distribution, self._uniforms = distribution, uniforms

  def __getattr__(self, name):
    return getattr(self._distribution, name)

  def sample_with_log_prob(self, params, uniforms):
    del uniforms
    return self._distribution.sample_with_log_prob(params, self._uniforms)


def _policy_params(world, batch):
  return world.policy.function.over_rows(batch.inputs.observation, ())


def _least_value(world, batch, actions):
  """Returns the least value `[T, N]` of the learnt critics."""
  rows = lambda nest: tree.map_structure(lambda x: x[:-1], nest)
  return tf.reduce_min(
    tf.stack(
      [
        critic.over_rows(rows(batch.inputs.observation), (), rows(actions))[..., 0]
        for critic in world.networks.critics.action_values
      ]
    ),
    axis=0,
  )


def _of_mask(x, mask):
  return tf.reduce_mean(tf.boolean_mask(x, mask))


@pytest.mark.slow
def test_the_policys_gradient_is_that_of_the_expectation(make_world, make_sample):
  """Recomputes d/dtheta E[c log pi(a|x) - Q_min(x, a)] through a = tanh(mean + std z)."""
  world = make_world()
  batch = _prepared(world, make_sample(world))
  uniforms = _uniforms(world, batch)
  z = tf.math.ndtri(uniforms)
  with tf.GradientTape() as tape:
    mean, raw = tf.split(_policy_params(world, batch), 2, axis=-1)
    std = (0.7 - 1e-3) * tf.exp(raw) + 1e-3
    x = mean + std * z
    actions = tf.tanh(x)
    log_slopes = 2 * (np.log(2) - x - tf.nn.softplus(-2 * x))
    log_probs = tf.reduce_sum(-0.5 * z**2 - tf.math.log(std) - log_slopes, axis=-1)
    loss = _of_mask(0.3 * log_probs[:-1] - _least_value(world, batch, actions), batch.mask)
  expected = tape.gradient(loss, world.policy.trainable_variables)
  found, _ = world.gradients(batch, distribution=_Given(world.distribution, uniforms))
  for a, b in zip(found['policy']['policy'], expected):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert np.abs(b).max() > 1e-3


@pytest.mark.slow
def test_the_policys_gradient_agrees_with_finite_differences(make_world, make_sample):
  world = make_world(target_entropy=-1.0)
  batch = _prepared(world, make_sample(world))
  found, _ = world.gradients(batch)
  rng = np.random.default_rng(4)
  for variable, gradient in zip(world.policy.trainable_variables, found['policy']['policy']):
    kept, direction = variable.numpy(), rng.normal(size=variable.shape).astype(np.float32)
    values = []
    for step in (1e-2, -1e-2):
      variable.assign(kept + np.float32(step) * direction)
      values.append(float(world.losses(batch).losses['policy']))
    variable.assign(kept)
    np.testing.assert_allclose(
      np.sum(gradient * direction), (values[0] - values[1]) / 2e-2, rtol=3e-2, atol=3e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize('action', ['discrete', 'multi_discrete', 'nested'])
def test_the_score_function_is_the_score_alone(make_world, make_sample, action):
  """The gradient is -mean(A grad log pi(a)) for given actions, continuous parts included."""
  world = make_world(action)
  batch = _prepared(world, make_sample(world))
  uniforms = _uniforms(world, batch)
  params = _policy_params(world, batch)
  actions, values = tree.map_structure(
    tf.stop_gradient, world.distribution.sample_with_log_prob(params, uniforms)
  )
  with tf.GradientTape() as tape:
    log_probs = world.distribution.log_prob(_policy_params(world, batch), actions)[:-1]
    soft = _least_value(world, batch, actions) - 0.3 * values[:-1]
    value = world.networks.critics.state_value.over_rows(batch.inputs.observation, ())[:-1, :, 0]
    advantages = tf.stop_gradient(tf.boolean_mask(soft - value, batch.mask))
    centred = advantages - tf.reduce_mean(advantages)
    scaled = centred / (tf.math.reduce_std(advantages) + 1e-3)
    loss = -tf.reduce_mean(scaled * tf.boolean_mask(log_probs, batch.mask))
  expected = tape.gradient(loss, world.policy.trainable_variables)
  found, _ = world.gradients(batch, distribution=_Given(world.distribution, uniforms))
  for a, b in zip(found['policy']['policy'], expected):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert np.abs(b).max() > 1e-4


@pytest.mark.slow
def test_the_score_function_leads_where_the_expectation_does(make_world, make_sample):
  """Averaged over samples in one state it points along -grad E[Q - c log pi], a sum over
  choices."""
  world = make_world('discrete', unroll_length=2000, batch_size=1)
  sample = make_sample(world, step_type=np.full((2001, 1), types.MID, np.uint8))
  rows = sample.unroll.inputs.observation
  rows[:] = rows[0]
  batch = _prepared(world, sample)
  found, _ = world.gradients(batch)
  one = tree.map_structure(lambda x: x[:1, 0], batch.inputs.observation)
  every = tf.repeat(one, 3, axis=0)
  q = tf.reduce_min(
    tf.stack(
      [critic(every, (), tf.range(3))[:, 0] for critic in world.networks.critics.action_values]
    ),
    axis=0,
  )
  with tf.GradientTape() as tape:
    log_p = tf.nn.log_softmax(world.policy.function(one, ())[0])
    loss = tf.reduce_sum(tf.exp(log_p) * (0.3 * log_p - q))
  flat = lambda gradients: np.concatenate([np.ravel(g) for g in gradients])
  expected = flat(tape.gradient(loss, world.policy.trainable_variables))
  actual = flat(found['policy']['policy'])
  cosine = actual @ expected / np.linalg.norm(actual) / np.linalg.norm(expected)
  assert cosine > 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
  'action, bootstrap, network',
  [
    ('continuous', 'action_value', {}),
    ('continuous', 'state_value', {'core': 'lstm'}),
    ('discrete', 'action_value', {'core': 'lstm'}),
    ('multi_discrete', 'state_value', {}),
    ('nested', 'action_value', {}),
  ],
  ids=str,
)
def test_each_loss_moves_what_its_objective_names(
  make_world, make_sample, action, bootstrap, network
):
  world = make_world(
    action, network=network, bootstrap=bootstrap, target_entropy=-0.5, overlap=2 if network else 0
  )
  gradients, _ = world.gradients(_prepared(world, make_sample(world)))
  assert set(gradients) == {'policy', 'critics', 'entropy_weight'}
  for name, by_part in gradients.items():
    assert all(g is None for g in by_part['targets']), name
    for variable, gradient in zip(world.parts()[name], by_part[name]):
      assert gradient is not None, (name, variable.name)
      gradient = tf.convert_to_tensor(gradient).numpy()
      assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0, (name, variable.name)
  nothing = lambda loss, part: all(g is None for g in gradients[loss][part])
  assert nothing('critics', 'policy') and nothing('critics', 'entropy_weight')
  assert nothing('entropy_weight', 'policy') and nothing('entropy_weight', 'critics')
  assert nothing('policy', 'entropy_weight')


@pytest.mark.slow
@pytest.mark.parametrize(
  'action, bootstrap', [('continuous', 'action_value'), ('discrete', 'state_value')]
)
def test_a_batch_taken_twice_has_the_same_losses(make_world, make_sample, action, bootstrap):
  """Both halves have the same fresh actions."""
  fields = {'bootstrap': bootstrap, 'replay': 'prioritized', 'target_entropy': -0.5}
  world = make_world(action, **fields)
  twice = make_world(action, batch_size=8, **fields)
  sample = make_sample(world)
  doubled = sample._replace(
    unroll=tree.map_structure(lambda x: np.concatenate([x, x], axis=1), sample.unroll),
    probabilities=np.tile(sample.probabilities, 2),
  )
  batch = _prepared(world, sample)
  uniforms = _uniforms(world, batch)
  once, output = world.gradients(batch, distribution=_Given(world.distribution, uniforms))
  both, output_of_both = twice.gradients(
    _prepared(twice, doubled),
    distribution=_Given(twice.distribution, tf.concat([uniforms, uniforms], axis=1)),
  )
  for name, loss in output.losses.items():
    np.testing.assert_allclose(output_of_both.losses[name], loss, rtol=1e-4, atol=1e-6)
    for a, b in zip(both[name][name], once[name][name]):
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(output_of_both.priorities, np.tile(output.priorities, 2), rtol=1e-4)


def _poisoned(sample, spec):
  """Returns a sample with NaN, or another action, in everything that must not be used."""
  inputs = sample.unroll.inputs
  is_last = inputs.step_type == LAST
  after_last = np.concatenate([np.zeros_like(is_last[:1]), is_last[:-1]])
  after_last[0] = True  # the transition before the window
  assert after_last[1:].sum() > 1
  nan = lambda x: np.where(after_last, np.nan, x).astype(np.float32)
  unused = is_last.copy()
  unused[-1] = True

  def other(x, array):
    where = unused.reshape(unused.shape + (1,) * (x.ndim - 2))
    return np.where(where, np.asarray(array.maximum) - x, x).astype(x.dtype)

  actions = tree.map_structure(other, sample.unroll.outputs.action, spec.action)
  outputs = sample.unroll.outputs._replace(action=actions)
  return sample._replace(
    unroll=sample.unroll._replace(
      outputs=outputs,
      inputs=inputs._replace(reward=nan(inputs.reward), discount=nan(inputs.discount)),
    )
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'action, bootstrap',
  [
    ('continuous', 'action_value'),
    ('continuous', 'state_value'),
    ('multi_discrete', 'action_value'),
    ('nested', 'state_value'),
  ],
)
def test_nan_in_everything_masked_changes_no_bit(make_world, make_sample, action, bootstrap):
  world = make_world(
    action, bootstrap=bootstrap, replay='prioritized', target_entropy=-0.5, max_abs_reward=1.0
  )
  sample = make_sample(world)
  expected = world.gradients(_prepared(world, sample))
  actual = world.gradients(_prepared(world, _poisoned(sample, world.spec)))
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    assert (a is None) == (b is None)
    if a is not None:
      assert np.isfinite(b).all()
      np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_what_is_said_of_a_terminated_row_is_of_no_matter(make_world, make_sample):
  """A terminated row has no future; a truncation bootstraps from its LAST row."""
  world = make_world(batch_size=2)
  step_type = np.full((6, 2), types.MID, np.uint8)
  step_type[5] = LAST
  sample = make_sample(world, step_type=step_type)
  sample.unroll.inputs.discount[:] = 1
  sample.unroll.inputs.discount[5] = [0, 1]
  before = world.losses(_prepared(world, sample)).losses['critics']
  changed = []
  for b in (0, 1):
    observation = sample.unroll.inputs.observation.copy()
    observation[5, b] = np.nan if b == 0 else 3.0
    inputs = sample.unroll.inputs._replace(observation=observation)
    other = sample._replace(unroll=sample.unroll._replace(inputs=inputs))
    changed.append(float(world.losses(_prepared(world, other)).losses['critics'] - before))
  assert changed[0] == 0 and abs(changed[1]) > 1e-4


@pytest.mark.slow
def test_a_wholly_masked_batch_moves_nothing(make_world, make_sample):
  world = make_world(replay='prioritized')
  sample = make_sample(world, step_type=np.full((6, 4), LAST, np.uint8))
  gradients, output = world.gradients(_prepared(world, sample))
  np.testing.assert_array_equal(output.priorities, np.zeros(4))
  for name, loss in output.losses.items():
    assert loss == 0, name
    for gradient in gradients[name][name]:
      np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))
