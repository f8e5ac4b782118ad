"""Action selection of the on-policy agent: it samples, or takes the mode in evaluation."""

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

  The returned action is also stored, as the row's action and as the next row's previous action.
  """
  params = prediction.policy_params
  action = action_distributions.where(
    tf.cast(exploration.is_evaluation, tf.bool),
    distribution.mode(params),
    distribution.sample(params, exploration.uniforms),
  )
  return types.AgentOutput(action=action, prediction=prediction)
