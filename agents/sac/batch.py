"""Turns a sample of unrolls into the rows that SAC learns from."""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.agents import learnt_rows as rows_lib
from seed_acme.agents import priorities as priorities_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import hindsight
from seed_acme.networks import frame_stack
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import uniforms as uniforms_lib


class Batch(NamedTuple):
  """Consecutive rows, `[T+1, N]`, or pairs of rows, `[2, N]`, where T = 1.

  burn_in: preceding rows that warm up a recurrent state; `()` if there are none.
  inputs: `[T+1, N, ...]`. actions: nest of `[T, N, ...]`.
  rewards, discounts, mask: `[T, N]`; rewards are clipped and scaled.
  weights: `[T, N]` importance weights of the errors; 1 for uniform replay.
  policy_state: `[N, ...]` state of the policy before the first row, burn-in included.
  """

  burn_in: types.Nest
  inputs: types.AgentInput
  actions: types.Nest
  rewards: tf.Tensor
  discounts: tf.Tensor
  mask: tf.Tensor
  weights: tf.Tensor
  policy_state: types.Nest


def prepare(
  sample: types.Sample,
  key: tf.Tensor,
  is_first: bool,
  *,
  goal_outcome: hindsight.GoalOutcomeFunction | None,
  config: sac_config.SACConfig,
) -> agent_lib.Prepared:
  """See `agent.Learning`. goal_outcome: reward function of hindsight goals; None = no hindsight."""
  del is_first
  unroll = _with_stacked_images(sample.unroll)
  inputs, outputs = rows_lib.learnt_rows(unroll, config)
  actions = tree.map_structure(lambda x: x[:-1], outputs.action)
  version = unroll.policy_version[config.overlap : -1]
  if goal_outcome is not None or config.transitions_per_unroll:
    pairs, actions, version = _taken_pairs(inputs, actions, version, key, goal_outcome, config)
    inputs = pairs
  steps = transitions_lib.transitions(inputs, gamma=config.discount)
  rewards = transitions_lib.clip_rewards(steps.rewards, config.max_abs_reward)
  burn_in: types.Nest = ()
  if config.overlap:
    burn_in = tree.map_structure(lambda x: x[: config.overlap], unroll.inputs)
  batch = Batch(
    burn_in,
    inputs,
    actions,
    config.reward_scale * rewards,
    steps.discounts,
    steps.mask,
    _weights(sample, steps.mask, config),
    unroll.initial_state,
  )
  return agent_lib.Prepared(batch, steps.mask, version)


def _with_stacked_images(unroll: types.Unroll) -> types.Unroll:
  """Replaces images by the stacks that the acting network makes, which all networks see; the
  initial state becomes the policy's own.
  """
  state = unroll.initial_state
  if not isinstance(state, frame_stack.FrameStackState):
    return unroll
  observation, _ = frame_stack.stack_observation(
    unroll.inputs.step_type, unroll.inputs.observation, state.frames
  )
  return unroll._replace(
    inputs=unroll.inputs._replace(observation=observation), initial_state=state.core
  )


def _taken_pairs(
  inputs: types.AgentInput,
  actions: types.Nest,
  version: tf.Tensor,
  key: tf.Tensor,
  goal_outcome: hindsight.GoalOutcomeFunction | None,
  config: sac_config.SACConfig,
) -> tuple[types.AgentInput, types.Nest, tf.Tensor]:
  """Rows `[U+1, B, ...]` -> pairs of rows `[2, N, ...]`, actions and versions `[1, N, ...]`.

  N = `transitions_per_unroll` x B, or U x B.
  """
  goal_key, choice_key = uniforms_lib.split(key, 2)
  pairs = _pairs(inputs, goal_key, goal_outcome, config)
  first, second = (tree.map_structure(lambda x, i=i: x[i], pairs) for i in range(2))
  take = functools.partial(_chosen, _choices(choice_key, version, config))
  first, second, actions, version = tree.map_structure(take, (first, second, actions, version))
  pairs = tree.map_structure(lambda *rows: tf.stack(rows), first, second)
  one_row = lambda x: x[tf.newaxis]
  return pairs, tree.map_structure(one_row, actions), one_row(version)


def _pairs(
  inputs: types.AgentInput,
  key: tf.Tensor,
  goal_outcome: hindsight.GoalOutcomeFunction | None,
  config: sac_config.SACConfig,
) -> types.AgentInput:
  """Pairs each row with the next, `[2, U, B, ...]`, with relabelled goals if hindsight is on."""
  if goal_outcome is None:
    return tree.map_structure(lambda x: tf.stack([x[:-1], x[1:]]), inputs)
  return hindsight.relabel(
    inputs,
    key,
    probability=config.hindsight.probability,
    goal_outcome=goal_outcome,
    ends_at_goal=config.hindsight.ends_at_goal,
  )


def _choices(key: tf.Tensor, like: tf.Tensor, config: sac_config.SACConfig) -> tf.Tensor | None:
  """Draws k distinct transitions of each of B unrolls `[U, B]`, as indices `[k, B]`; None = all."""
  if config.transitions_per_unroll in (0, config.unroll_length):
    return None
  scores = uniforms_lib.draw(key, like.shape[::-1])
  return tf.transpose(tf.math.top_k(scores, config.transitions_per_unroll).indices)


def _chosen(choices: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor:
  """Takes the chosen transitions, `[U, B, ...]` -> `[k, B, ...]`, and merges axes: `[k B, ...]`."""
  x = tf.convert_to_tensor(x)
  if choices is not None:
    columns = tf.broadcast_to(tf.range(tf.shape(x)[1]), tf.shape(choices))
    x = tf.gather_nd(x, tf.stack([choices, columns], axis=-1))
  return tf.reshape(x, [x.shape[0] * x.shape[1], *x.shape[2:]])


def _weights(sample: types.Sample, mask: tf.Tensor, config: sac_config.SACConfig) -> tf.Tensor:
  """Returns the importance weight of its unroll for each transition. mask: `[U, B]`, or `[1, k B]`
  with k transitions of each of B unrolls, of which those of one unroll lie B apart."""
  weights = priorities_lib.importance_weights(sample.probabilities, config)
  by_unroll = tf.reshape(tf.ones_like(mask, tf.float32), [-1, config.batch_size])
  return tf.reshape(by_unroll * weights, mask.shape)
