"""How the V-trace agent acts: it samples, and is greedy in evaluation."""
from __future__ import annotations

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.ops import distributions


def num_uniforms(spec: types.EnvironmentSpec) -> int:
  """Random numbers that one action takes."""
  return distributions.CATEGORICAL.num_uniforms(spec)


def select_actions(
    spec: types.EnvironmentSpec, prediction: types.ActorCriticOutput,
    exploration: types.Exploration, config: vtrace_config.VTraceConfig) -> types.AgentOutput:
  """prediction `[N, ...]`, exploration `[N, ...]` -> int32 actions `[N]`."""
  del spec, config
  params = prediction.policy_params
  sampled = distributions.CATEGORICAL.sample(params, exploration.uniforms)
  greedy = distributions.CATEGORICAL.mode(params)
  return types.AgentOutput(
      action=tf.where(tf.cast(exploration.is_evaluation, tf.bool), greedy, sampled),
      prediction=prediction)
