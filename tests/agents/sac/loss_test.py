"""SAC's losses equal loops over unrolls and rows in float64, which call networks row by row.

Haarnoja et al. 2018a, section 4; 2018b, section 5 and appendix C.
"""

from dm_env import specs
import numpy as np
import pytest
from scipy import special
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.agents.sac import network as network_lib

_LOG_2PI = np.log(2 * np.pi)


class _Recording:
  """A distribution that records the uniforms that it was given."""

  def __init__(self, distribution):
    self._distribution = distribution
    self.uniforms = None

  def __getattr__(self, name):
    return getattr(self._distribution, name)

  def sample_with_log_prob(self, params, uniforms):
    assert self.uniforms is None, 'one fresh action a row'
    self.uniforms = uniforms.numpy()
    return self._distribution.sample_with_log_prob(params, uniforms)


def _fresh_action(spec, params, uniforms, config):
  """Returns a row's (action nest, log p(a) over all its numbers, standard deviations), Haarnoja
  2018b, appendix C."""
  actions, total, stds = [], 0.0, []
  for leaf in tree.flatten(spec):
    if np.issubdtype(leaf.dtype, np.integer):
      action, log_prob, used, drawn = _choose(leaf, params, uniforms)
    else:
      action, log_prob, std, used, drawn = _squash(leaf, params, uniforms, config)
      stds.extend(std)
    actions.append(action)
    total, params, uniforms = total + log_prob, params[used:], uniforms[drawn:]
  assert not len(params) and not len(uniforms)
  return tree.unflatten_as(spec, actions), total, stds


def _squash(leaf, params, uniforms, config):
  size = int(np.prod(leaf.shape))
  mean, raw = params[:size], params[size : 2 * size]
  std = (config.initial_std - config.min_std) * np.exp(raw) + config.min_std  # safe_exp
  z = special.ndtri(uniforms[:size])
  action = np.tanh(mean + std * z)
  log_prob = -0.5 * z**2 - np.log(std) - 0.5 * _LOG_2PI - np.log(1 - action**2)
  return action.reshape(leaf.shape), log_prob.sum(), std, 2 * size, size


def _choose(leaf, params, uniforms):
  if isinstance(leaf, specs.DiscreteArray):
    sizes = [leaf.num_values]
  else:
    sizes = (np.broadcast_to(leaf.maximum, leaf.shape).ravel() + 1).tolist()
  choices, log_prob, start = [], 0.0, 0
  for size, u in zip(sizes, uniforms):
    logits = params[start : start + size]
    p = np.exp(logits - special.logsumexp(logits))
    choices.append(int(np.searchsorted(np.cumsum(p), u, side='right')))
    log_prob += np.log(p[choices[-1]])
    start += size
  return np.array(choices, leaf.dtype).reshape(leaf.shape), log_prob, start, len(sizes)


def _ask(function, rows, actions=None, state=None):
  """Returns `[L, P]` float64 for the rows of one unroll, from the state before row 0.

  rows: nest of `[L, ...]`, burn-in included. actions: one nest for each row. state: None = initial.
  """
  state, found = function.initial_state(1) if state is None else state, []
  if not tree.flatten(state):  # without memory, rows are independent
    remembered, _ = function.remember(tree.map_structure(tf.constant, rows), state)
    if actions is not None:
      actions = tree.map_structure(lambda *x: tf.constant(np.stack(x)), *actions)
    return function(rows.observation, remembered, actions).numpy().astype(np.float64)
  for t in range(len(rows.step_type)):
    row = tree.map_structure(lambda x: tf.constant(x[t : t + 1]), rows)  # noqa: B023
    remembered, state = function.remember(row, state)
    action = None
    if actions is not None:
      action = tree.map_structure(lambda x: tf.constant(np.asarray(x)[None]), actions[t])
    found.append(function(row.observation, remembered, action)[0].numpy().astype(np.float64))
  return np.stack(found)


def _slow_losses(world, sample, uniforms):
  """Returns ({loss: number}, priorities `[B]`, entropies of all unmasked rows, their standard
  deviations), from the papers.

  uniforms: `[T+1, B, U]` of the fresh actions.
  """
  config, networks = world.config, world.networks
  alpha = float(networks.entropy_weight())
  weights = np.asarray(sample.probabilities) ** -config.importance_exponent
  weights = weights / weights.max() if config.replay == 'prioritized' else np.ones_like(weights)
  policy, values, errors, entropies, log_probs, advantages = [], [], [], [], [], []
  priorities, stds = [], []
  for b in range(len(weights)):
    rows = _unroll(sample, b)
    of_unroll = []
    for step in _transitions(world, rows, uniforms[:, b], alpha):
      policy.append(alpha * step['log_prob'] - step['q_fresh'])
      entropies.append(-step['log_prob'])
      log_probs.append(step['log_prob'])
      stds.extend(step['std'])
      errors.append([(weights[b], step['target'] - q) for q in step['q_played']])
      of_unroll.append(max(abs(step['target'] - q) for q in step['q_played']))
      if 'value' in step:
        advantages.append(-policy[-1] - step['value'])
        values.append(advantages[-1])
    share = config.max_priority_share
    priorities.append(
      share * max(of_unroll) + (1 - share) * np.mean(of_unroll) if of_unroll else 0.0
    )
  found = {'policy': np.mean(policy)}
  if not world.distribution.is_reparametrizable:
    centred = np.array(advantages) - np.mean(advantages)
    found['policy'] = -np.mean(centred / (centred.std() + 1e-3) * np.array(log_probs))
  found['critics'] = sum(
    0.5 * np.mean([w * e**2 for w, e in of_critic]) for of_critic in zip(*errors)
  )
  if values:
    found['critics'] += 0.5 * np.mean(np.square(values))
  if config.target_entropy is not None:
    found['entropy_weight'] = alpha * (np.mean(entropies) - config.target_entropy)
  return found, np.array(priorities), entropies, stds


def _unroll(sample, b):
  """Returns (inputs, actions, initial state) of one unroll."""
  take = lambda nest: tree.map_structure(lambda x: np.asarray(x)[:, b], nest)
  state = tree.map_structure(
    lambda x: tf.constant(np.asarray(x)[b : b + 1]), sample.unroll.initial_state
  )
  return take(sample.unroll.inputs), take(sample.unroll.outputs.action), state


def _transitions(world, unroll, uniforms, alpha):
  """Returns the losses' terms for each unmasked transition of one unroll."""
  inputs, played, state = unroll
  config, networks, start = world.config, world.networks, world.config.overlap
  inputs = world.policy.normalized(inputs)
  inputs = inputs._replace(observation=tree.map_structure(np.asarray, inputs.observation))
  params = _ask(networks.policy.function, inputs, state=state)
  uniforms = uniforms.astype(np.float64)
  fresh = [
    _fresh_action(world.spec.action, params[t], uniforms[t - start], config)
    if t >= start
    else (None, None, None)
    for t in range(len(params))
  ]
  blank = tree.map_structure(lambda x: np.zeros(x.shape, x.dtype), world.spec.action)
  like_spec = lambda action: (
    blank
    if action is None
    else tree.map_structure(lambda x, s: np.asarray(x, s.dtype), action, world.spec.action)
  )
  fresh_actions = [like_spec(action) for action, _, _ in fresh]
  played = [tree.map_structure(lambda x: x[t], played) for t in range(len(params))]  # noqa: B023
  q_played = [_ask(f, inputs, played)[:, 0] for f in networks.critics.action_values]
  q_fresh = np.min(
    [_ask(f, inputs, fresh_actions)[:, 0] for f in networks.critics.action_values], axis=0
  )
  if networks.targets.state_value is not None:
    later = _ask(networks.targets.state_value, inputs)[:, 0]
  else:
    later = np.min(
      [_ask(f, inputs, fresh_actions)[:, 0] for f in networks.targets.action_values], axis=0
    )
    later = [
      q - alpha * log_prob if log_prob is not None else None
      for q, (_, log_prob, _) in zip(later, fresh)
    ]
  value = None
  if networks.critics.state_value is not None:
    value = _ask(networks.critics.state_value, inputs)[:, 0]
  limit = config.max_abs_reward or np.inf
  for t in range(start, len(params) - 1):
    if inputs.step_type[t] == types.LAST:
      continue
    reward = config.reward_scale * np.clip(float(inputs.reward[t + 1]), -limit, limit)
    discount = config.discount * float(inputs.discount[t + 1])
    yield {
      'q_played': [q[t] for q in q_played],
      'q_fresh': q_fresh[t],
      'log_prob': fresh[t][1],
      'std': fresh[t][2],
      'target': reward + discount * later[t + 1],
      **({} if value is None else {'value': value[t]}),
    }


def _key():
  return tf.constant([1, 2], tf.int32)


def _learnt(world, sample):
  """Returns the agent's losses, and the uniforms of its fresh actions."""
  prepared = batch_lib.prepare(sample, _key(), True, goal_outcome=None, config=world.config)
  recording = _Recording(world.distribution)
  return world.losses(prepared.batch, distribution=recording), recording.uniforms


_LEARNT_WEIGHT = {'target_entropy': -0.5, 'entropy_speed': 2.0}
_PRIORITIZED = {'replay': 'prioritized', 'importance_exponent': 0.6, 'max_priority_share': 0.8}


@pytest.mark.parametrize(
  'action, bootstrap, num_critics',
  [
    ('continuous', 'action_value', 2),
    ('continuous', 'state_value', 3),
    ('discrete', 'action_value', 1),
    ('discrete', 'state_value', 2),
    ('multi_discrete', 'action_value', 3),
    ('nested', 'action_value', 2),
    ('nested', 'state_value', 1),
  ],
)
def test_equals_a_slow_loop_from_the_papers(
  make_world, make_sample, action, bootstrap, num_critics
):
  world = make_world(action, bootstrap=bootstrap, num_critics=num_critics, **_LEARNT_WEIGHT)
  _check(world, make_sample(world, seed=num_critics))


@pytest.mark.slow
@pytest.mark.parametrize(
  'bootstrap, changes',
  [
    ('action_value', _PRIORITIZED),
    ('state_value', _PRIORITIZED),
    ('action_value', {**_PRIORITIZED, 'importance_exponent': 0.0}),
    ('state_value', {'max_abs_reward': 0.5, 'reward_scale': 0.1}),
    ('action_value', {'entropy_weight': 0.0, 'discount': 1.0}),
    ('action_value', {'overlap': 2}),
    ('state_value', {'overlap': 2, 'target_entropy': 0.0}),
    ('action_value', {'unroll_length': 1, 'overlap': 0}),
    ('state_value', {'normalize_observations': True, 'observation_clip': 0.5}),
  ],
  ids=str,
)
def test_equals_it_with_other_settings(make_world, make_sample, bootstrap, changes):
  world = make_world(bootstrap=bootstrap, **changes)
  _check(world, make_sample(world, seed=5))


@pytest.mark.slow
@pytest.mark.parametrize(
  'core, action, bootstrap',
  [('gru', 'continuous', 'state_value'), ('lstm', 'nested', 'action_value')],
)
def test_equals_it_with_a_memory(make_world, make_sample, core, action, bootstrap):
  world = make_world(
    action,
    network={'core': core, 'previous_action_input': True, 'previous_reward_input': True},
    bootstrap=bootstrap,
    overlap=3,
    batch_size=2,  # each row is asked for alone
    **_PRIORITIZED,
  )
  _check(world, make_sample(world, seed=2))


def _check(world, sample):
  step_type = sample.unroll.inputs.step_type[world.config.overlap :]
  output, uniforms = _learnt(world, sample)
  expected, priorities, entropies, stds = _slow_losses(world, sample, uniforms)
  assert len(entropies) == (step_type[:-1] != types.LAST).sum()
  if world.config.unroll_length > 1:
    assert len(entropies) < step_type[:-1].size
  assert output.losses.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(output.losses[name], value, rtol=2e-4, atol=2e-5, err_msg=name)
  np.testing.assert_allclose(
    output.metrics['policy/entropy'], np.mean(entropies), rtol=1e-4, atol=1e-5
  )
  assert ('policy/std' in output.metrics) == bool(stds)
  if stds:
    np.testing.assert_allclose(output.metrics['policy/std'], np.mean(stds), rtol=1e-5)
  if world.config.replay == 'uniform':
    assert output.priorities is None
  else:
    np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)


@pytest.mark.slow
def test_a_target_of_0_counts_as_a_target(make_world, make_sample):
  world = make_world(target_entropy=0.0)
  sample = make_sample(world)
  output, _ = _learnt(world, sample)
  entropy = output.metrics['policy/entropy']
  np.testing.assert_allclose(output.losses['entropy_weight'], 0.3 * entropy, rtol=1e-5)
  assert abs(entropy) > 0.1
  fixed, _ = _learnt(make_world(), sample)
  assert 'entropy_weight' not in fixed.losses


@pytest.mark.slow
@pytest.mark.parametrize('size', [2, 4])
def test_the_entropy_is_summed_over_the_dimensions_of_the_action(make_world, make_spec, size):
  """The entropy of n equal dimensions is n times that of one; a mean would not change."""

  def entropy(size):
    action = specs.BoundedArray((size,), np.float32, -1.0, 1.0)
    spec = types.EnvironmentSpec(make_spec().observation, action)
    distribution = network_lib.make_distribution(spec, make_world().config)
    params = tf.constant([[0.2] * size + [-0.3] * size])
    return -distribution.sample_with_log_prob(params, tf.fill([1, size], 0.6))[1].numpy()[0]

  np.testing.assert_allclose(entropy(size), size * entropy(1), rtol=1e-5)
