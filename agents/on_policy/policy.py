"""How the on-policy agent acts: it samples, and in evaluation takes the distribution's mode."""

from __future__ import annotations

import tensorflow as tf

from seed_acme import types
from seed_acme.ops import action_distributions
from seed_acme.ops import distributions


def select_actions(
  prediction: types.ActorCriticOutput,
  exploration: types.Exploration,
  *,
  distribution: distributions.Distribution,
) -> types.AgentOutput:
  """prediction `[N, ...]`, exploration `[N, ...]` -> actions, nest of `[N, ...]`.

  What is returned is what is stored, as the row's action and as the next row's previous one.
  """
  params = prediction.policy_params
  action = action_distributions.where(
    tf.cast(exploration.is_evaluation, tf.bool),
    distribution.mode(params),
    distribution.sample(params, exploration.uniforms),
  )
  return types.AgentOutput(action=action, prediction=prediction)
