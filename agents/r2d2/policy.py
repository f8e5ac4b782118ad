"""R2D2's epsilon-greedy action selection, where each environment has its own epsilon."""

from __future__ import annotations

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config

NUM_UNIFORMS = 2  # whether to act at random, and which action


def select_actions(
  prediction: types.QOutput,
  exploration: types.Exploration,
  *,
  num_actions: int,
  config: r2d2_config.R2D2Config,
) -> types.AgentOutput:
  """prediction `[N, A]`, exploration `[N, ...]` -> int32 actions `[N]`."""
  q_values = prediction.q_values
  explore, which = tf.unstack(tf.convert_to_tensor(exploration.uniforms), axis=-1)
  random = tf.cast(which * num_actions, tf.int32)
  greedy = tf.argmax(q_values, axis=-1, output_type=tf.int32)
  action = tf.where(explore < epsilons(exploration, config), random, greedy)
  return types.AgentOutput(action=action, prediction=prediction)


def epsilons(exploration: types.Exploration, config: r2d2_config.R2D2Config) -> tf.Tensor:
  """`[N]` probabilities of a random action (Horgan et al. 2018, section 4).

  epsilon_i = base^(1 + exponent i / (N - 1)), and evaluation_epsilon in evaluation
  """
  training = tf.pow(config.epsilon_base, 1.0 + config.epsilon_exponent * exploration.place)
  return tf.where(tf.cast(exploration.is_evaluation, tf.bool), config.evaluation_epsilon, training)
