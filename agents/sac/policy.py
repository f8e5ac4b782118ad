"""SAC's action selection: random actions at the beginning of the run, then the policy's."""

from __future__ import annotations

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import network
from seed_acme.ops import action_distributions
from seed_acme.ops import distributions


def select_actions(
  prediction: network.PolicyOutput,
  exploration: types.Exploration,
  *,
  distribution: distributions.Distribution,
  action_spec: types.Nest,
  config: sac_config.SACConfig,
) -> types.AgentOutput:
  """prediction `[N, ...]`, exploration `[N, ...]` -> actions `[N, ...]`; the mode in evaluation."""
  params, uniforms = prediction.policy_params, exploration.uniforms
  action = distribution.sample(params, uniforms)
  if config.random_steps:
    is_early = tf.convert_to_tensor(exploration.agent_steps) < config.random_steps
    at_random = action_distributions.uniform_actions(action_spec, uniforms)
    action = action_distributions.where(is_early, at_random, action)
  is_evaluation = tf.cast(exploration.is_evaluation, tf.bool)
  action = action_distributions.where(is_evaluation, distribution.mode(params), action)
  # The prediction is not stored, because the learner computes all it needs again.
  return types.AgentOutput(action=action, prediction=())
