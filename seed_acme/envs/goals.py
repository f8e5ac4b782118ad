"""Goal environments' rewards as functions of batches of goals, for hindsight replay.

Hindsight replay needs the reward that a transition would have had under another goal. The learner
has no environment whose `compute_reward` it could ask, so these functions compute it. The module
needs TensorFlow but no environment; actors do not load it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

_FIVE_CM = 0.05  # metres


class GoalOutcome(NamedTuple):
  """reward: `[N]` float32, the part that depends on the goal. is_reached: `[N]` bool."""

  reward: tf.Tensor
  is_reached: tf.Tensor


def bits_equal(achieved_goal: Any, desired_goal: Any) -> GoalOutcome:
  """Goals `[N, ...]` of `bit_flip` are reached, with reward 1, if all numbers are equal; else 0."""
  is_equal = tf.equal(achieved_goal, desired_goal)
  is_reached = tf.reduce_all(is_equal, axis=_of_one_goal(is_equal))
  return GoalOutcome(tf.cast(is_reached, tf.float32), is_reached)


def within_5_cm(achieved_goal: Any, desired_goal: Any) -> GoalOutcome:
  """Goals `[N, ...]` in metres are reached if |achieved - desired| <= 0.05; reward 0, else -1.

  The norm is Euclidean, over all numbers of a goal. This is the sparse reward of
  gymnasium-robotics' Fetch environments (`FetchReach`, `FetchPush`, `FetchSlide`,
  `FetchPickAndPlace`), at whose goals no episode ends.
  """
  difference = tf.cast(achieved_goal, tf.float32) - tf.cast(desired_goal, tf.float32)
  distance = tf.sqrt(tf.reduce_sum(tf.square(difference), axis=_of_one_goal(difference)))
  is_reached = distance <= _FIVE_CM
  return GoalOutcome(tf.cast(is_reached, tf.float32) - 1.0, is_reached)


def _of_one_goal(x: tf.Tensor) -> list[int]:
  """Returns all axes but the first."""
  return list(range(1, x.shape.rank))
