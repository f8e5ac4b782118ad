"""How the on-policy agent acts: it samples, and in evaluation takes the distribution's mode."""

from __future__ import annotations

import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import network
from seed_acme.ops import action_distributions


def num_uniforms(spec: types.EnvironmentSpec) -> int:
  """Random numbers that one action takes."""
  return action_distributions.num_uniforms(spec.action)


def select_actions(
  spec: types.EnvironmentSpec,
  prediction: types.ActorCriticOutput,
  exploration: types.Exploration,
  config: on_policy_config.OnPolicyConfig,
) -> types.AgentOutput:
  """prediction `[N, ...]`, exploration `[N, ...]` -> actions, nest of `[N, ...]`.

  What is returned is what is stored, as the row's action and as the next row's previous one.
  """
  distribution = network.make_distribution(spec, config)
  params = prediction.policy_params
  sampled = distribution.sample(params, exploration.uniforms)
  mode = distribution.mode(params)
  is_evaluation = tf.cast(exploration.is_evaluation, tf.bool)
  action = tree.map_structure(
    lambda m, s: tf.where(tf.reshape(is_evaluation, [-1] + [1] * (s.shape.rank - 1)), m, s),
    mode,
    sampled,
  )
  return types.AgentOutput(action=action, prediction=prediction)
