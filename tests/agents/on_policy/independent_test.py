"""PPO's losses and GAE against TF-Agents 0.12, which shares no code with this project."""

import sys
import types as python_types

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import advantages
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import policy_losses
from seed_acme.ops import distributions
from seed_acme.ops import transitions

_N, _A = 200, 4


@pytest.fixture(scope='module')
def tf_agents():
  """The few modules of it that are used here, imported late: they take their time.

  It would import dm_control if it could, and so fix the way this process draws.
  """
  before = sys.modules.get('dm_control', False)
  if before is False:
    sys.modules['dm_control'] = None
  try:
    import tensorflow_probability as tfp
    from tf_agents.agents.ppo import ppo_agent
    from tf_agents.agents.ppo import ppo_clip_agent
    from tf_agents.networks import sequential
    from tf_agents.specs import tensor_spec
    from tf_agents.trajectories import time_step
    from tf_agents.utils import value_ops
  finally:
    if before is False:
      del sys.modules['dm_control']
  return python_types.SimpleNamespace(
    ppo_agent=ppo_agent,
    PPOClipAgent=ppo_clip_agent.PPOClipAgent,
    Sequential=sequential.Sequential,
    tensor_spec=tensor_spec,
    time_step=time_step,
    value_ops=value_ops,
    tfp=tfp,
  )


def _data(seed):
  rng = np.random.default_rng(seed)
  return {
    'params': tf.constant(rng.normal(size=(_N, _A)), tf.float32),
    'behaviour': tf.constant(rng.normal(size=(_N, _A)), tf.float32),
    'actions': tf.constant(rng.integers(0, _A, _N), tf.int32),
    'advantages': tf.constant(rng.normal(0.5, 2.0, _N), tf.float32),
    'mask': tf.constant(rng.random(_N) < 0.8),
    'observation': tf.constant(rng.normal(size=(_N, 3)), tf.float32),
    'returns': tf.constant(rng.normal(size=_N), tf.float32),
    'old_values': tf.constant(rng.normal(size=_N), tf.float32),
  }


def _value_net(tf_agents):
  """Its weights are fixed: with random ones a gradient is now and then too small to compare."""
  squeeze = tf.keras.layers.Lambda(lambda x: tf.squeeze(x, axis=-1))
  dense = tf.keras.layers.Dense(
    1,
    kernel_initializer=tf.constant_initializer([0.5, -0.4, 0.3]),
    bias_initializer=tf.constant_initializer(0.2),
  )
  return tf_agents.Sequential([dense, squeeze])


def _other_agent(tf_agents, value_net=None, **settings):
  """Their agent with one dense layer each; a distribution is handed to its policy loss directly."""
  spec = tf_agents.tensor_spec
  categorical = tf.keras.layers.Lambda(lambda x: tf_agents.tfp.distributions.Categorical(logits=x))
  return tf_agents.PPOClipAgent(
    tf_agents.time_step.time_step_spec(spec.TensorSpec([3], tf.float32)),
    spec.BoundedTensorSpec([], tf.int32, 0, _A - 1),
    optimizer=tf.keras.optimizers.Adam(),
    actor_net=tf_agents.Sequential([tf.keras.layers.Dense(_A), categorical]),
    value_net=value_net or _value_net(tf_agents),
    normalize_observations=False,
    normalize_rewards=False,
    value_pred_loss_coef=1.0,
    aggregate_losses_across_replicas=False,
    train_step_counter=tf.Variable(0),
    **settings,
  )


def _weights(mask):
  """Theirs is a mean over all of w x; ours is one over the unmasked."""
  mask = tf.cast(mask, tf.float32)
  return mask / tf.reduce_mean(mask)


@pytest.mark.parametrize('epsilon', [0.1, 0.2, 0.5])
def test_the_clipped_policy_loss_and_its_gradient(epsilon, tf_agents, make_config, gradients):
  other, x = _other_agent(tf_agents, importance_ratio_clipping=epsilon), _data(1)
  params, distribution = x['params'], distributions.Categorical(_A)
  log_mu = distribution.log_prob(x['behaviour'], x['actions'])

  def ours():
    log_prob = distribution.log_prob(params, x['actions'])
    return policy_losses.policy_loss(
      log_prob,
      log_prob - log_mu,
      x['advantages'],
      x['mask'],
      None,
      make_config(policy_loss='ppo', ppo_epsilon=epsilon),
    ).loss

  def theirs():
    return other.policy_gradient_loss(
      tf_agents.time_step.restart(x['observation'], batch_size=_N),
      x['actions'],
      log_mu,
      x['advantages'],
      tf_agents.tfp.distributions.Categorical(logits=params),
      _weights(x['mask']),
    )

  (loss, [gradient]), (other_loss, [other_gradient]) = (
    gradients(function, [params]) for function in (ours, theirs)
  )
  assert np.abs(other_gradient).max() > 1e-3
  np.testing.assert_allclose(loss, other_loss, rtol=1e-5)
  np.testing.assert_allclose(gradient, other_gradient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize('clip', [0.0, 0.3])
def test_the_value_loss_and_its_gradient(clip, tf_agents, make_config, gradients):
  net, x = _value_net(tf_agents), _data(2)
  other = _other_agent(tf_agents, net, value_clipping=clip)
  steps = tf_agents.time_step.restart(x['observation'], batch_size=_N)

  def ours():
    values, _ = net(x['observation'], steps.step_type)
    return loss_lib.value_loss(
      values, x['returns'], x['old_values'], x['mask'], make_config(value_clip=clip)
    )

  theirs = lambda: other.value_estimation_loss(
    steps, x['returns'], _weights(x['mask']), x['old_values']
  )
  (loss, found), (other_loss, other_found) = (
    gradients(function, net.trainable_variables) for function in (ours, theirs)
  )
  np.testing.assert_allclose(loss, 0.5 * other_loss, rtol=1e-5)  # theirs has no half
  for a, b in zip(found, other_found):
    np.testing.assert_allclose(a, 0.5 * b, rtol=1e-4, atol=1e-6)
    assert np.abs(b).max() > 1e-3


@pytest.mark.parametrize('lambda_', [0.0, 0.7, 0.95, 1.0])
def test_gae(lambda_, tf_agents, make_config):
  """Terminations within the trace; the rows of theirs have no LAST of their own."""
  rng = np.random.default_rng(3)
  shape = (12, 9)
  rewards, values = rng.normal(size=shape), rng.normal(size=(13, 9))
  discounts = 0.97 * (rng.random(shape) > 0.2)
  rewards, values, discounts = (tf.constant(a, tf.float32) for a in (rewards, values, discounts))
  theirs = tf_agents.value_ops.generalized_advantage_estimation(
    values[:-1], values[-1], discounts, rewards, td_lambda=lambda_
  )
  ours = advantages.estimate(
    values,
    transitions.Transitions(rewards, discounts, tf.fill(shape, True)),
    tf.zeros(shape),
    make_config(advantage='gae', lambda_=lambda_),
  )
  np.testing.assert_allclose(ours.advantages, theirs, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(ours.targets, theirs + values[:-1], rtol=1e-4, atol=1e-5)


def test_gae_of_a_truncated_episode(tf_agents, make_config):
  """Ours reads it in the middle of a trace, theirs as a trace that ends there."""
  rng = np.random.default_rng(4)
  first, mid, last = types.FIRST, types.MID, types.LAST
  step_type = np.uint8([[first], [mid], [mid], [last], [first], [mid]])
  reward, values = rng.normal(size=(2, 6, 1)).astype(np.float32)
  inputs = types.AgentInput(step_type, reward, np.ones((6, 1), np.float32), None, None)
  config = make_config(advantage='gae', lambda_=0.9, discount=0.97)
  ours = advantages.estimate(
    tf.constant(values), transitions.transitions(inputs, gamma=0.97), tf.zeros([5, 1]), config
  )
  theirs = tf_agents.value_ops.generalized_advantage_estimation(
    tf.constant(values[:3]),
    tf.constant(values[3]),
    tf.fill([3, 1], 0.97),
    tf.constant(reward[1:4]),
    td_lambda=0.9,
  )
  np.testing.assert_allclose(ours.advantages[:3], theirs, rtol=1e-5, atol=1e-6)


def test_normalised_advantages(tf_agents, make_config):
  """They add epsilon to the variance, we to its root: no difference here."""
  x = _data(5)
  kept = tf.boolean_mask(x['advantages'], x['mask'])
  theirs = tf_agents.ppo_agent._normalize_advantages(kept, axes=(0,), variance_epsilon=1e-8)
  ours, _ = policy_losses.preprocess(
    x['advantages'], x['mask'], make_config(normalize_advantages=True)
  )
  np.testing.assert_allclose(tf.boolean_mask(ours, x['mask']), theirs, rtol=1e-4, atol=1e-5)
