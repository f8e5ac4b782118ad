"""Hindsight experience replay: relabels transitions as if an achieved goal had been desired.

Andrychowicz et al. 2017 (arXiv 1707.01495), with the strategy "future": the new goal was achieved
later in the same episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.envs import goals
from seed_acme.networks import state_functions
from seed_acme.ops import shapes
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import uniforms

# Achieved and desired goals, `[N, ...]` each, to reward and success: see `seed_acme.envs.goals`.
GoalOutcomeFunction = Callable[[tf.Tensor, tf.Tensor], goals.GoalOutcome]

_ACHIEVED, _DESIRED = state_functions.ACHIEVED_GOAL, state_functions.DESIRED_GOAL
# Folded into the key, because the losses get the same key as the preparation of their batch, and
# actions sampled there must not depend on the goals chosen here.
_OWN_KEY = 1707_01495


class _Substitution(NamedTuple):
  """The drawn substitutions, `[W, B]`: whether a goal is replaced, and the row of its new goal."""

  is_made: tf.Tensor
  goal_row: tf.Tensor


def relabel(
  rows: types.AgentInput,
  key: tf.Tensor,
  *,
  probability: float,
  goal_outcome: GoalOutcomeFunction,
  ends_at_goal: bool,
) -> types.AgentInput:
  """Turns W+1 rows into W pairs of rows, one per transition, each with its own goal.

  rows: `[W+1, B, ...]` each, W known when traced; the observation is a dict with `achieved_goal`
    and `desired_goal`, of equal shapes and dtypes.
  key: `[2]` int32, the only source of randomness.
  probability: with which the goal of a transition is replaced, independently of the others.
  goal_outcome: computes what goals are worth, without the environment.
  ends_at_goal: whether the environment terminates an episode where its goal is reached.

  Returns leaves `[2, W, B, ...]`: `[0, t]` is row t, `[1, t]` is row t+1. Where the goal is
  replaced, by g = achieved[k] with k uniform over t+1 ... the last row of t's episode in the
  window, both rows of the pair get it, and the second one

    reward = reward[t+1] + R(achieved[t+1], g) - R(achieved[t+1], desired[t+1])
    discount = 0 if g is reached, 1 if desired[t+1] was and g is not, else discount[t+1]

  so other parts of a reward and other reasons to terminate are kept; without `ends_at_goal` no
  discount changes. Everything else stays as it is: step types, the reward and discount of the first
  row, which belong to an earlier transition, and pairs that start at a LAST row. Such pairs are not
  transitions and must be masked; their contents, even NaN, never affect other pairs.
  """
  pairs = tree.map_structure(lambda x: tf.stack([x[:-1], x[1:]]), rows)
  achieved, old_goal = pairs.observation[_ACHIEVED][1], pairs.observation[_DESIRED][1]
  substitution = _draw(rows.step_type, key, probability)
  new_goal = _rows_at(rows.observation[_ACHIEVED], substitution.goal_row)
  new = _outcome(goal_outcome, achieved, new_goal)
  old = _outcome(goal_outcome, achieved, old_goal)
  reward, discount = pairs.reward[1] + (new.reward - old.reward), pairs.discount[1]
  if ends_at_goal:
    discount = tf.where(old.is_reached, tf.ones_like(discount), discount)
    discount = tf.where(new.is_reached, tf.zeros_like(discount), discount)

  def replaced(pair: tf.Tensor, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Replaces the rows of `pair`, `[2, W, B, ...]`, where a substitution is made."""
    is_made = _with_axes_of(substitution.is_made, first)
    return tf.stack([tf.where(is_made, first, pair[0]), tf.where(is_made, second, pair[1])])

  return pairs._replace(
    reward=replaced(pairs.reward, pairs.reward[0], reward),
    discount=replaced(pairs.discount, pairs.discount[0], discount),
    observation={
      **pairs.observation,
      _DESIRED: replaced(pairs.observation[_DESIRED], new_goal, new_goal),
    },
  )


def _draw(step_type: tf.Tensor, key: tf.Tensor, probability: float) -> _Substitution:
  """Draws substitutions from step_type `[W+1, B]`; there is none where row t is LAST."""
  starts = tf.convert_to_tensor(step_type)[:-1]
  is_transition = tf.not_equal(starts, tf.cast(types.LAST, starts.dtype))
  # Rows of t's episode after t: n_t = m_t (1 + n_{t+1}), with m_t = 0 where row t is LAST.
  mask = shapes.as_float(is_transition)
  num_rows = transitions_lib.backward_sums(mask, mask)
  which, place = (
    uniforms.draw(one_key, tf.shape(starts))
    for one_key in uniforms.split(uniforms.fold_in(key, _OWN_KEY), 2)
  )
  later = tf.floor(place * num_rows)  # 0 ... n - 1, as u <= 1 - 2^-24 keeps u n from rounding to n
  first = tf.range(1, tf.shape(starts)[0] + 1)[:, tf.newaxis]
  return _Substitution(is_transition & (which < probability), first + tf.cast(later, tf.int32))


def _rows_at(x: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
  """x `[W+1, B, ...]`, index `[W, B]` -> `[W, B, ...]`, x[index[t, b], b]."""
  batch_size = tf.shape(x)[1]
  flat = tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0))
  return tf.gather(flat, index * batch_size + tf.range(batch_size))


def _outcome(
  goal_outcome: GoalOutcomeFunction, achieved: tf.Tensor, goal: tf.Tensor
) -> goals.GoalOutcome:
  """Evaluates goals `[W, B, ...]`: reward and is_reached, `[W, B]` each."""
  batch = tf.shape(achieved)[:2]
  flat_shape = tf.concat([[-1], tf.shape(achieved)[2:]], axis=0)
  outcome = goal_outcome(tf.reshape(achieved, flat_shape), tf.reshape(goal, flat_shape))
  return goals.GoalOutcome(
    tf.reshape(shapes.as_float(outcome.reward), batch), tf.reshape(outcome.is_reached, batch)
  )


def _with_axes_of(x: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
  """x `[W, B]` -> `[W, B, 1 ...]`, of the rank of `other`."""
  return tf.reshape(x, tf.concat([tf.shape(x), [1] * (other.shape.rank - 2)], axis=0))
