"""The script that made tf_agents_numbers.npz for independent_test.py: PPO's losses by TF-Agents.

TF-Agents 0.12 shares no code with this project. It cannot be installed with TensorFlow 2.15, so its
results are saved. To make them again, in an environment of Python 3.10 with tf-agents 0.12.0,
tensorflow-cpu 2.8.4, tensorflow-probability 0.16.0, protobuf 3.19.6 and numpy 1.23.5:

  python tests/agents/on_policy/tf_agents_numbers.py
"""

from __future__ import annotations

import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.agents.ppo import ppo_agent
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.networks import sequential
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step
from tf_agents.utils import value_ops

_ROWS, _ACTIONS = 200, 4
EPSILONS, CLIPS, LAMBDAS = (0.1, 0.2, 0.5), (0.0, 0.3), (0.0, 0.7, 0.95, 1.0)


def main() -> None:
  """Writes all cases; a name is `case/parameter/array`."""
  numbers = {}
  for case in (_policy_losses, _value_losses, _gae, _truncated_gae, _normalised):
    for name, array in case().items():
      numbers[f'{case.__name__[1:]}/{name}'] = np.asarray(array)
  np.savez_compressed(pathlib.Path(__file__).with_suffix('.npz'), **numbers)


def _random(seed):
  rng = np.random.default_rng(seed)
  floats = lambda *shape, mean=0.0, scale=1.0: rng.normal(mean, scale, shape).astype(np.float32)
  return {
    'params': floats(_ROWS, _ACTIONS),
    'behaviour': floats(_ROWS, _ACTIONS),
    'actions': rng.integers(0, _ACTIONS, _ROWS).astype(np.int32),
    'advantages': floats(_ROWS, mean=0.5, scale=2.0),
    'mask': rng.random(_ROWS) < 0.8,
    'observation': floats(_ROWS, 3),
    'returns': floats(_ROWS),
    'old_values': floats(_ROWS),
  }


def _value_net():
  """Returns a value network with fixed weights; random ones may give very small gradients."""
  squeeze = tf.keras.layers.Lambda(lambda x: tf.squeeze(x, axis=-1))
  dense = tf.keras.layers.Dense(
    1,
    kernel_initializer=tf.constant_initializer([0.5, -0.4, 0.3]),
    bias_initializer=tf.constant_initializer(0.2),
  )
  return sequential.Sequential([dense, squeeze])


def _agent(value_net=None, **settings):
  """Returns an agent with a dense layer per network; its policy loss gets distributions."""
  categorical = tf.keras.layers.Lambda(lambda x: tfp.distributions.Categorical(logits=x))
  return ppo_clip_agent.PPOClipAgent(
    time_step.time_step_spec(tensor_spec.TensorSpec([3], tf.float32)),
    tensor_spec.BoundedTensorSpec([], tf.int32, 0, _ACTIONS - 1),
    optimizer=tf.keras.optimizers.Adam(),
    actor_net=sequential.Sequential([tf.keras.layers.Dense(_ACTIONS), categorical]),
    value_net=value_net or _value_net(),
    normalize_observations=False,
    normalize_rewards=False,
    value_pred_loss_coef=1.0,
    aggregate_losses_across_replicas=False,
    train_step_counter=tf.Variable(0),
    **settings,
  )


def _weights(mask):
  """Returns weights for TF-Agents, whose mean is over all rows; ours is over unmasked ones."""
  mask = tf.cast(mask, tf.float32)
  return mask / tf.reduce_mean(mask)


def _policy_losses():
  x = _random(1)
  params = tf.constant(x['params'])
  log_mu = tfp.distributions.Categorical(logits=x['behaviour']).log_prob(x['actions'])
  found = dict(x)
  for epsilon in EPSILONS:
    agent = _agent(importance_ratio_clipping=epsilon)
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss = agent.policy_gradient_loss(
        time_step.restart(tf.constant(x['observation']), batch_size=_ROWS),
        tf.constant(x['actions']),
        log_mu,
        tf.constant(x['advantages']),
        tfp.distributions.Categorical(logits=params),
        _weights(x['mask']),
      )
    found |= {f'{epsilon}/loss': loss, f'{epsilon}/gradient': tape.gradient(loss, params)}
  return found


def _value_losses():
  x = _random(2)
  found = dict(x)
  steps = time_step.restart(tf.constant(x['observation']), batch_size=_ROWS)
  for clip in CLIPS:
    net = _value_net()
    agent = _agent(net, value_clipping=clip)
    with tf.GradientTape() as tape:
      loss = agent.value_estimation_loss(
        steps, tf.constant(x['returns']), _weights(x['mask']), tf.constant(x['old_values'])
      )
    kernel, bias = tape.gradient(loss, net.trainable_variables)
    found |= {f'{clip}/loss': loss, f'{clip}/kernel': kernel, f'{clip}/bias': bias}
  return found


def _gae():
  """Returns a case with terminations within the trace; it has no separate LAST rows."""
  rng = np.random.default_rng(3)
  shape = (12, 9)
  rewards, values = rng.normal(size=shape), rng.normal(size=(13, 9))
  discounts = 0.97 * (rng.random(shape) > 0.2)
  rewards, values, discounts = (np.float32(a) for a in (rewards, values, discounts))
  found = {'rewards': rewards, 'values': values, 'discounts': discounts}
  for lambda_ in LAMBDAS:
    found[str(lambda_)] = value_ops.generalized_advantage_estimation(
      tf.constant(values[:-1]),
      tf.constant(values[-1]),
      tf.constant(discounts),
      tf.constant(rewards),
      td_lambda=lambda_,
    )
  return found


def _truncated_gae():
  """Returns a case whose trace ends where the episode is truncated, after three steps."""
  reward, values = np.random.default_rng(4).normal(size=(2, 6, 1)).astype(np.float32)
  found = value_ops.generalized_advantage_estimation(
    tf.constant(values[:3]),
    tf.constant(values[3]),
    tf.fill([3, 1], 0.97),
    tf.constant(reward[1:4]),
    td_lambda=0.9,
  )
  return {'reward': reward, 'values': values, 'advantages': found}


def _normalised():
  x = _random(5)
  kept = tf.boolean_mask(x['advantages'], x['mask'])
  found = ppo_agent._normalize_advantages(kept, axes=(0,), variance_epsilon=1e-8)
  return {'advantages': x['advantages'], 'mask': x['mask'], 'normalised': found}


if __name__ == '__main__':
  main()
