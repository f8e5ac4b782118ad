"""SAC with a recurrent core: the memory and the branch of each network, and their inputs."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.ops import uniforms as uniforms_lib

_OVERLAP = 3


@pytest.fixture
def make_recurrent(make_world):
  """`make_recurrent(core, action, observation, **fields)`: a memory with all optional inputs."""

  def make(core='lstm', action='continuous', observation=None, **fields):
    network = {'core': core, 'previous_action_input': True, 'previous_reward_input': True}
    return make_world(action, observation, network, overlap=_OVERLAP, **fields)

  return make


def _functions(world):
  networks = world.networks
  return {
    'policy': networks.policy.function,
    **{f'critic {i}': f for i, f in enumerate(networks.critics.functions)},
    **{f'target {i}': f for i, f in enumerate(networks.targets.functions)},
  }


def _batch(world, sample):
  return batch_lib.prepare(
    sample, tf.constant([1, 2], tf.int32), True, goal_outcome=None, config=world.config
  ).batch


def _tensors(nest):
  return tree.map_structure(tf.convert_to_tensor, nest)


@pytest.mark.slow
@pytest.mark.parametrize('core, action', [('lstm', 'continuous'), ('gru', 'nested')])
def test_acting_row_by_row_equals_the_unroll(make_recurrent, make_sample, core, action):
  world = make_recurrent(core, action)
  sample = make_sample(world)
  inputs, state = _tensors((sample.unroll.inputs, sample.unroll.initial_state))
  assert (sample.unroll.inputs.step_type[1:] == types.FIRST).any()
  expected, last = world.acting.unroll(inputs, state)
  for t in range(inputs.step_type.shape[0]):
    prediction, state = world.acting(tree.map_structure(lambda x: x[t], inputs), state)  # noqa: B023
    np.testing.assert_allclose(
      prediction.policy_params, expected.policy_params[t], rtol=1e-5, atol=1e-5
    )
  for a, b in zip(tree.flatten(state), tree.flatten(last)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_losses_see_what_acting_saw(make_recurrent, make_sample):
  """The policy's parameters in the learnt rows, burn-in included, are those of acting."""
  world = make_recurrent()
  sample = make_sample(world)
  seen = []

  class Spy:
    def __getattr__(self, name):
      return getattr(world.distribution, name)

    def sample_with_log_prob(self, params, uniforms):
      seen.append(params.numpy())
      return world.distribution.sample_with_log_prob(params, uniforms)

  world.losses(_batch(world, sample), distribution=Spy())
  acted, _ = world.acting.unroll(*_tensors((sample.unroll.inputs, sample.unroll.initial_state)))
  np.testing.assert_allclose(seen[0], acted.policy_params[_OVERLAP:], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('core', ['lstm', 'gru'])
def test_a_first_row_forgets_all_before_it(make_recurrent, make_sample, core):
  world = make_recurrent(core)
  step_type = np.full((_OVERLAP + 6, 4), types.MID, np.uint8)
  step_type[4] = types.FIRST
  sample = make_sample(world, step_type=step_type)
  inputs = _tensors(sample.unroll.inputs)
  observation = sample.unroll.inputs.observation.copy()
  observation[:4] += 5
  others = inputs._replace(observation=tf.constant(observation))
  for name, function in _functions(world).items():
    one, other = (
      function.remember_unroll(rows, function.initial_state(4))[0].numpy()
      for rows in (inputs, others)
    )
    assert (np.abs(one[:4] - other[:4]).max(axis=(1, 2)) > 1e-4).all(), name
    np.testing.assert_array_equal(one[4:], other[4:], err_msg=name)


@pytest.mark.slow
def test_the_critics_memory_starts_empty_and_the_policys_with_what_was_stored(
  make_recurrent, make_sample
):
  world = make_recurrent()
  step_type = np.full((_OVERLAP + 6, 4), types.MID, np.uint8)
  sample = make_sample(world, step_type=step_type)
  output = world.losses(_batch(world, sample))
  state = tree.map_structure(lambda x: x + 1, sample.unroll.initial_state)
  other = world.losses(
    _batch(world, sample._replace(unroll=sample.unroll._replace(initial_state=state)))
  )
  assert output.metrics['q/mean'] == other.metrics['q/mean']
  assert abs(output.metrics['policy/entropy'] - other.metrics['policy/entropy']) > 1e-5


@pytest.mark.slow
def test_every_overlapping_row_warms_the_critics_up(make_recurrent, make_sample):
  world = make_recurrent()
  step_type = np.full((_OVERLAP + 6, 4), types.MID, np.uint8)
  sample = make_sample(world, step_type=step_type)
  means = [world.losses(_batch(world, sample)).metrics['q/mean']]
  for row in range(_OVERLAP):
    sample.unroll.inputs.observation[row] += 2
    means.append(world.losses(_batch(world, sample)).metrics['q/mean'])
  assert (np.abs(np.diff(means)) > 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize('bootstrap', ['action_value', 'state_value'])
def test_no_gradient_reaches_the_rows_of_burn_in_nor_the_stored_state(
  make_recurrent, make_sample, bootstrap
):
  world = make_recurrent(bootstrap=bootstrap)
  step_type = np.full((_OVERLAP + 6, 4), types.MID, np.uint8)
  sample = make_sample(world, step_type=step_type)
  batch = _tensors(_batch(world, sample))
  watched = (batch.burn_in.observation, batch.policy_state, batch.inputs.observation)
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(watched)
    losses = world.losses(batch).losses
  for name, loss in losses.items():
    *none, rows = (
      tape.gradient(loss, x, unconnected_gradients=tf.UnconnectedGradients.ZERO) for x in watched
    )
    for gradient in tree.flatten(none):
      np.testing.assert_array_equal(gradient, np.zeros_like(gradient), err_msg=name)
    assert np.abs(rows).max() > 0


@pytest.mark.slow
def test_the_desired_goal_stays_out_of_the_memory_and_both_reach_the_branch(
  make_recurrent, make_sample
):
  """Another desired goal leaves the memory unchanged, but changes the outputs."""
  world = make_recurrent(observation='goals')
  sample = make_sample(world)
  inputs = _tensors(sample.unroll.inputs)
  observation = dict(inputs.observation)
  for key, is_remembered in (('desired_goal', False), ('achieved_goal', True)):
    changed = inputs._replace(observation={**observation, key: observation[key] + 3.0})
    for name, function in _functions(world).items():
      one, other = (
        function.remember_unroll(rows, function.initial_state(4))[0] for rows in (inputs, changed)
      )
      assert (np.abs(one - other).max() > 0) == is_remembered, (name, key)
      action = None if name == 'policy' else inputs.previous_action
      said = [function.over_rows(rows.observation, one, action) for rows in (inputs, changed)]
      assert np.abs(said[0] - said[1]).max() > 1e-3, (name, key)


@pytest.mark.slow
def test_the_memory_is_of_the_observation_previous_action_and_reward(make_recurrent, make_sample):
  """The queried action is no input of the memory."""
  world = make_recurrent(observation='goals')
  inputs = _tensors(make_sample(world).unroll.inputs)
  observation = dict(inputs.observation)
  changed = {
    'observation': inputs._replace(
      observation={**observation, 'observation': observation['observation'] + 1}
    ),
    'previous_action': inputs._replace(previous_action=-inputs.previous_action),
    'reward': inputs._replace(reward=-inputs.reward),
    'discount': inputs._replace(discount=1 - inputs.discount),
  }
  for name, function in _functions(world).items():
    remembered = function.remember_unroll(inputs, function.initial_state(4))[0]
    for field, rows in changed.items():
      other = function.remember_unroll(rows, function.initial_state(4))[0]
      assert (np.abs(other - remembered).max() > 1e-4) == (field != 'discount'), (name, field)


@pytest.mark.slow
def test_what_is_remembered_is_no_matter_of_the_actions_played(make_recurrent, make_sample):
  """The action of row t is queried in row t, and enters the memory from row t+1 on, as
  `previous_action`; so other actions change the errors but not the fresh actions."""
  world = make_recurrent()
  sample = make_sample(world)
  outputs = sample.unroll.outputs._replace(action=-sample.unroll.outputs.action)
  other = sample._replace(unroll=sample.unroll._replace(outputs=outputs))
  one, two = (world.losses(_batch(world, s)) for s in (sample, other))
  assert one.losses['policy'] == two.losses['policy']
  assert abs(one.losses['critics'] - two.losses['critics']) > 1e-4


@pytest.mark.slow
def test_the_best_action_depends_on_what_is_remembered(make_recurrent, make_sample):
  """If a critic only added a term for its memory, the best action would not depend on it."""
  world = make_recurrent()
  inputs = _tensors(make_sample(world).unroll.inputs)
  row = tree.map_structure(lambda x: x[0], inputs)
  critic = world.networks.critics.action_values[0]
  slopes = []
  for seed in (1, 2):
    remembered = 2 * uniforms_lib.draw(tf.constant([seed, 0], tf.int32), [4, 5]) - 1
    with tf.GradientTape() as tape:
      tape.watch(row.previous_action)
      value = critic(row.observation, remembered, row.previous_action)
    slopes.append(tape.gradient(value, row.previous_action).numpy())
  assert np.abs(slopes[0] - slopes[1]).max() > 1e-3
