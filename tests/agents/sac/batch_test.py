"""The part of a sample that is learnt from: rows in order, or pairs of them."""

from dm_env import specs
import numpy as np
import pytest
from scipy import stats
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.envs import goals

MID, LAST = types.MID, types.LAST
_U, _B = 5, 4


def _prepare(world, sample, key=(3, -4), goal_outcome=None):
  return batch_lib.prepare(
    sample, tf.constant(key, tf.int32), True, goal_outcome=goal_outcome, config=world.config
  )


def _numbered(world, make_sample, seed=0):
  """Returns a sample whose observations, actions, rewards and versions encode row and unroll."""
  sample = make_sample(world, seed)
  rows, unrolls = np.meshgrid(np.arange(_U + 1), np.arange(_B), indexing='ij')
  place = (10 * unrolls + rows).astype(np.float32)
  inputs = sample.unroll.inputs._replace(
    observation=np.repeat(place[..., None], 4, axis=-1), reward=place / 100
  )
  outputs = sample.unroll.outputs._replace(action=np.repeat(-place[..., None] / 100, 2, axis=-1))
  return sample._replace(
    unroll=sample.unroll._replace(
      inputs=inputs, outputs=outputs, policy_version=(1000 + place).astype(np.int64)
    )
  )


def _errors(world, batch):
  """Returns the first critic's TD errors `[T, N]`, with the policy's modes as fresh actions."""
  observation = batch.inputs.observation
  params = world.policy.function.over_rows(observation, ())
  modes = world.distribution.mode(params)
  rows = lambda nest, place: tree.map_structure(lambda x: x[place], nest)
  later = world.networks.targets.action_values[0].over_rows(
    rows(observation, slice(1, None)), (), rows(modes, slice(1, None))
  )[..., 0]
  played = world.networks.critics.action_values[0].over_rows(
    rows(observation, slice(-1)), (), batch.actions
  )[..., 0]
  return batch.rewards + batch.discounts * later - played


@pytest.mark.slow
@pytest.mark.parametrize('action', ['continuous', 'nested'])
def test_pairs_of_all_rows_are_the_rows_in_their_order(make_world, make_sample, action):
  fields = {'replay': 'prioritized', 'reward_scale': 2.0, 'max_abs_reward': 0.7}
  rows, pairs = (make_world(action, transitions_per_unroll=k, **fields) for k in (0, _U))
  sample = make_sample(rows)
  expected, found = _prepare(rows, sample), _prepare(pairs, sample)
  assert expected.mask.shape == (_U, _B) and found.mask.shape == (1, _U * _B)
  assert (expected.mask.numpy() == 0).any()
  flat = lambda x: np.reshape(x, (1, _U * _B, *x.shape[2:]))
  for name in ('actions', 'rewards', 'discounts', 'mask', 'weights'):
    for a, b in zip(*(tree.flatten(getattr(p.batch, name)) for p in (expected, found))):
      np.testing.assert_array_equal(flat(a), b, err_msg=name)
  np.testing.assert_array_equal(flat(expected.policy_version), found.policy_version)
  np.testing.assert_allclose(
    flat(_errors(rows, expected.batch)), _errors(pairs, found.batch), rtol=1e-4, atol=1e-5
  )


class _Median:
  """A distribution that always samples with uniforms of 1/2."""

  def __init__(self, distribution):
    self._distribution = distribution

  def __getattr__(self, name):
    return getattr(self._distribution, name)

  def sample_with_log_prob(self, params, uniforms):
    return self._distribution.sample_with_log_prob(params, tf.fill(uniforms.shape, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize(
  'action, bootstrap', [('continuous', 'state_value'), ('discrete', 'action_value')]
)
def test_pairs_of_all_rows_have_the_same_losses_and_priorities(
  make_world, make_sample, action, bootstrap
):
  fields = {'bootstrap': bootstrap, 'replay': 'prioritized', 'target_entropy': -1.0}
  rows, pairs = (make_world(action, transitions_per_unroll=k, **fields) for k in (0, _U))
  sample = make_sample(rows)
  expected, found = (
    world.losses(_prepare(world, sample).batch, distribution=_Median(world.distribution))
    for world in (rows, pairs)
  )
  for name, loss in expected.losses.items():
    np.testing.assert_allclose(found.losses[name], loss, rtol=1e-4, err_msg=name)
  np.testing.assert_allclose(found.priorities, expected.priorities, rtol=1e-4)
  assert len(set(found.priorities.numpy())) == _B


@pytest.mark.slow
def test_what_is_taken_of_a_transition_belongs_together(make_world, make_sample):
  world = make_world(transitions_per_unroll=3)
  sample = _numbered(world, make_sample)
  prepared = _prepare(world, sample)
  batch, step_type = prepared.batch, sample.unroll.inputs.step_type
  assert batch.inputs.step_type.shape == (2, 3 * _B)
  for i in range(3 * _B):
    place = int(batch.inputs.observation[0, i, 0])
    unroll, row = divmod(place, 10)
    assert unroll == i % _B
    assert batch.inputs.observation[1, i, 0] == place + 1
    np.testing.assert_array_equal(batch.actions[0, i], sample.unroll.outputs.action[row, unroll])
    is_transition = step_type[row, unroll] != LAST
    assert batch.mask[0, i] == is_transition == prepared.mask[0, i]
    reward = (place + 1) / 100 if is_transition else 0
    np.testing.assert_allclose(batch.rewards[0, i], reward, rtol=1e-6)
    assert prepared.policy_version[0, i] == 1000 + place
    assert batch.inputs.step_type[0, i] == step_type[row, unroll]


@pytest.mark.slow
def test_places_differ_and_each_is_as_likely(make_world, make_sample):
  """Applies chi-squared tests to places, by unroll and over pairs, and compares different keys."""
  world = make_world(transitions_per_unroll=2)
  sample = _numbered(world, make_sample)
  prepare = tf.function(
    lambda key: batch_lib.prepare(
      tree.map_structure(tf.constant, sample), key, True, goal_outcome=None, config=world.config
    ).batch.inputs.observation[0, :, 0],
    autograph=False,
  )
  counts = np.zeros((_B, _U, _U))
  for i in range(600):
    places = prepare(tf.constant([i, 7 - i], tf.int32)).numpy().reshape(2, _B) % 10
    assert (places[0] != places[1]).all()
    for b in range(_B):
      low, high = sorted(places[:, b].astype(int))
      counts[b, low, high] += 1
  pairs = np.stack([c[np.triu_indices(_U, 1)] for c in counts])
  assert pairs.sum() == 600 * _B
  for of_unroll in (*pairs, pairs.sum(axis=0)):
    assert stats.chisquare(of_unroll).pvalue > 1e-4


@pytest.mark.slow
def test_the_places_of_an_unroll_tell_nothing_of_anothers(make_world, make_sample):
  world = make_world(transitions_per_unroll=1)
  sample = _numbered(world, make_sample)
  prepare = tf.function(
    lambda key: batch_lib.prepare(
      tree.map_structure(tf.constant, sample), key, True, goal_outcome=None, config=world.config
    ).batch.inputs.observation[0, :, 0],
    autograph=False,
  )
  table = np.zeros((_U, _U))
  for i in range(600):
    places = prepare(tf.constant([i, 3], tf.int32)).numpy().astype(int) % 10
    table[places[0], places[1]] += 1
  assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.slow
def test_priorities_are_those_of_the_unrolls_in_order(make_world, make_sample):
  """An unroll with large rewards gets a large priority at every position."""
  for taken in (0, 2):
    world = make_world(replay='prioritized', transitions_per_unroll=taken)
    for which in range(_B):
      sample = make_sample(world, step_type=np.full((_U + 1, _B), MID, np.uint8))
      sample.unroll.inputs.reward[:, which] = 500.0
      priorities = world.losses(_prepare(world, sample).batch).priorities.numpy()
      assert priorities.shape == (_B,)
      assert priorities[which] > 400 and np.delete(priorities, which).max() < 100


def test_an_unroll_of_which_nothing_was_learnt_keeps_its_priority(make_world, make_sample):
  """With priority 0 it would never be drawn again."""
  world = make_world(replay='prioritized', transitions_per_unroll=1)
  step_type = np.full((_U + 1, _B), MID, np.uint8)
  step_type[2:4] = [[LAST], [types.FIRST]]
  batch = _prepare(world, make_sample(world, step_type=step_type)).batch
  is_learnt = batch.mask.numpy().reshape(_B)
  assert is_learnt.any() and not is_learnt.all()
  priorities = world.losses(batch).priorities.numpy()
  np.testing.assert_array_equal(np.isnan(priorities), ~is_learnt)
  assert (priorities[is_learnt] > 0).all()


@pytest.mark.slow
def test_importance_weights_are_those_of_the_unrolls(make_world, make_sample):
  for taken in (0, 2, _U):
    world = make_world(replay='prioritized', transitions_per_unroll=taken, importance_exponent=0.5)
    sample = make_sample(world)
    weights = _prepare(world, sample).batch.weights.numpy().reshape(-1, _B)
    expected = sample.probabilities**-0.5
    np.testing.assert_allclose(
      weights, np.tile(expected / expected.max(), (len(weights), 1)), rtol=1e-5
    )
  uniform = make_world(transitions_per_unroll=2)
  np.testing.assert_array_equal(_prepare(uniform, sample).batch.weights, np.ones((1, 2 * _B)))


_HINDSIGHT = sac_config.HindsightConfig(
  probability=1.0, goal_outcome='seed_acme.envs.goals:bits_equal', ends_at_goal=True
)


@pytest.mark.slow
@pytest.mark.parametrize('taken', [0, 2])
def test_goals_replaced_are_the_same_at_both_ends_and_pay(make_world, make_sample, taken):
  world = make_world(
    'discrete', 'goals', hindsight=_HINDSIGHT, transitions_per_unroll=taken, reward_scale=3.0
  )
  sample = make_sample(world, seed=1)
  observation = sample.unroll.inputs.observation
  observation['desired_goal'][:] = 77.0  # unlike any achieved goal
  batch = _prepare(world, sample, goal_outcome=goals.bits_equal).batch
  mask = batch.mask.numpy()[0]
  first, second = batch.inputs.observation['desired_goal'].numpy()
  np.testing.assert_array_equal(first, second)
  assert (first[mask] != 77).all() and (first[~mask] == 77).all()
  assert taken or (~mask).any()
  achieved = {tuple(goal) for goal in observation['achieved_goal'].reshape(-1, 2)}
  assert {tuple(goal) for goal in first[mask]} <= achieved
  is_reached = (batch.inputs.observation['achieved_goal'][1].numpy() == second).all(axis=-1)
  assert is_reached[mask].any()
  np.testing.assert_array_equal(batch.discounts.numpy()[0][mask & is_reached], 0)
  plain = _plain_rewards(world, sample, batch)
  np.testing.assert_allclose(
    batch.rewards.numpy()[0][mask], (plain + 3 * is_reached)[mask], rtol=1e-5
  )


def _plain_rewards(world, sample, batch):
  """Returns the rewards of the same transitions without goals, found by their first observation."""
  observation, reward = sample.unroll.inputs.observation['observation'], sample.unroll.inputs.reward
  of = {tuple(observation[t, b]): 3 * reward[t + 1, b] for t in range(_U) for b in range(_B)}
  return np.array([of[tuple(x)] for x in batch.inputs.observation['observation'][0].numpy()])


@pytest.mark.slow
def test_losses_take_the_goals_that_are_replaced(make_world, make_sample):
  world = make_world('discrete', 'goals', hindsight=_HINDSIGHT)
  sample = make_sample(world, seed=1)
  losses = []
  for goal in (5.0, -5.0):  # replaced, so that the transition's position does not matter
    sample.unroll.inputs.observation['desired_goal'][:] = goal
    losses.append(world.losses(_prepare(world, sample, goal_outcome=goals.bits_equal).batch).losses)
  for name, loss in losses[0].items():
    np.testing.assert_allclose(losses[1][name], loss, rtol=1e-5, err_msg=name)


_IMAGE = specs.BoundedArray((6, 6, 1), np.uint8, 0, 255)


@pytest.mark.slow
@pytest.mark.parametrize('taken, overlap', [(0, 0), (2, 0), (0, 2)])
def test_stacks_are_those_that_acting_saw(make_world, make_sample, taken, overlap):
  """Acts row by row on the stored frames; channel 0 is the newest image."""
  world = make_world(
    observation=_IMAGE, network={'frame_stack': 3}, transitions_per_unroll=taken, overlap=overlap
  )
  sample = make_sample(world)
  prepared = _prepare(world, sample)
  state, acted = sample.unroll.initial_state, []
  state = tree.map_structure(tf.constant, state)
  for t in range(_U + 1 + overlap):
    row = tree.map_structure(lambda x: tf.constant(x[t]), sample.unroll.inputs)  # noqa: B023
    prediction, state = world.acting(row, state)
    acted.append(prediction.policy_params.numpy())
  acted = np.stack(acted)[overlap:]
  found = world.policy.function.over_rows(prepared.batch.inputs.observation, ()).numpy()
  if not taken:
    np.testing.assert_allclose(found, acted, rtol=1e-4, atol=1e-5)
    return
  for i in range(taken * _B):
    matches = [
      np.allclose(found[:, i], acted[t : t + 2, i % _B], rtol=1e-4, atol=1e-5) for t in range(_U)
    ]
    assert sum(matches) == 1


def test_policy_and_critics_see_the_same_stacks(make_world, make_sample):
  world = make_world(observation=_IMAGE, network={'frame_stack': 3})
  batch = _prepare(world, make_sample(world)).batch
  assert batch.inputs.observation.shape == (_U + 1, _B, 6, 6, 3)
  assert batch.inputs.observation.dtype == tf.uint8
  output = world.losses(batch)
  assert all(np.isfinite(loss) for loss in output.losses.values())
