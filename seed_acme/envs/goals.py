"""What goals bring, in batches: a goal environment's reward as a function of goals.

Hindsight replay asks what a transition would have brought under another goal. Its learner has no
environment at hand, whose `compute_reward` could tell, so the function stands here, beside the
environment that it is of. This module needs TensorFlow and no environment; actors do not load it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

_FIVE_CM = 0.05  # metres


class GoalOutcome(NamedTuple):
  """reward: `[N]` float32, the part of the reward that the goal decides. is_reached: `[N]` bool."""

  reward: tf.Tensor
  is_reached: tf.Tensor


def bits_equal(achieved_goal: Any, desired_goal: Any) -> GoalOutcome:
  """Goals `[N, ...]`: reached, with reward 1, where all numbers are equal, else 0: `bit_flip`."""
  is_equal = tf.equal(achieved_goal, desired_goal)
  is_reached = tf.reduce_all(is_equal, axis=_of_one_goal(is_equal))
  return GoalOutcome(tf.cast(is_reached, tf.float32), is_reached)


def within_5_cm(achieved_goal: Any, desired_goal: Any) -> GoalOutcome:
  """Goals `[N, ...]` in metres: reached where |achieved - desired| <= 0.05; reward 0, else -1.

  The norm is Euclidean, over all numbers of a goal. This is the sparse reward of
  gymnasium-robotics' Fetch environments (`FetchReach`, `FetchPush`, `FetchSlide`,
  `FetchPickAndPlace`), at whose goals no episode ends.
  """
  difference = tf.cast(achieved_goal, tf.float32) - tf.cast(desired_goal, tf.float32)
  distance = tf.sqrt(tf.reduce_sum(tf.square(difference), axis=_of_one_goal(difference)))
  is_reached = distance <= _FIVE_CM
  return GoalOutcome(tf.cast(is_reached, tf.float32) - 1.0, is_reached)


def _of_one_goal(x: tf.Tensor) -> list[int]:
  """All axes but the first."""
  return list(range(1, x.shape.rank))
