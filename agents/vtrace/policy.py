"""How the V-trace agent acts: it samples, and is greedy in evaluation."""

from __future__ import annotations

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.ops import distributions


def num_uniforms(spec: types.EnvironmentSpec) -> int:
  """Random numbers that one action takes."""
  types.num_discrete_actions(spec)  # raises where there is none
  return 1


def select_actions(
  spec: types.EnvironmentSpec,
  prediction: types.ActorCriticOutput,
  exploration: types.Exploration,
  config: vtrace_config.VTraceConfig,
) -> types.AgentOutput:
  """prediction `[N, ...]`, exploration `[N, ...]` -> int32 actions `[N]`."""
  del spec, config
  params = prediction.policy_params
  policy = distributions.Categorical(params.shape[-1])
  sampled = policy.sample(params, exploration.uniforms)
  greedy = policy.mode(params)
  return types.AgentOutput(
    action=tf.where(tf.cast(exploration.is_evaluation, tf.bool), greedy, sampled),
    prediction=prediction,
  )
