"""Rows of an environment with goals, and relabelling them in slow loops."""

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import hindsight
from seed_acme.envs import goals

FIRST, MID, LAST = types.FIRST, types.MID, types.LAST
KEY = tf.constant([3, -7], tf.int32)
# A window of 9 rows of four environments: one episode throughout, two with an end inside, and
# one that ends with the window.
STEP_TYPES = np.array(
  [
    [MID] * 9,
    [MID, MID, LAST, FIRST, MID, MID, MID, LAST, FIRST],
    [LAST, FIRST, LAST, FIRST, MID, MID, MID, MID, MID],
    [FIRST, MID, MID, MID, MID, MID, MID, MID, LAST],
  ],
  np.uint8,
).T


def numbered_rows(step_types=STEP_TYPES, seed=0):
  """Returns rows whose achieved goals are (row, environment), so that a goal identifies its row."""
  num_rows, batch_size = step_types.shape
  random = np.random.default_rng(seed)
  place = np.stack(
    np.meshgrid(np.arange(num_rows), np.arange(batch_size), indexing='ij'), axis=-1
  ).astype(np.float32)
  desired = np.full_like(place, -1)
  return types.AgentInput(
    step_type=step_types,
    reward=random.normal(size=step_types.shape).astype(np.float32),
    discount=random.choice(np.float32([0, 0.5, 1]), step_types.shape),
    previous_action=random.integers(3, size=step_types.shape).astype(np.int32),
    observation={
      'observation': random.normal(size=(*step_types.shape, 5)).astype(np.float32),
      'achieved_goal': place,
      'desired_goal': desired,
    },
  )


def bit_rows(step_types=STEP_TYPES, seed=0, num_bits=1):
  """Returns rows with goals of few bits, so that old and new goals are both reached and missed.

  The desired goal is constant within an episode.
  """
  rows = numbered_rows(step_types, seed)
  random = np.random.default_rng(seed + 1)
  achieved = random.integers(2, size=(*step_types.shape, num_bits)).astype(np.float32)
  desired = random.integers(2, size=achieved.shape).astype(np.float32)
  for t in range(1, len(step_types)):
    same_episode = step_types[t - 1] != LAST
    desired[t, same_episode] = desired[t - 1, same_episode]
  return rows._replace(
    observation={**rows.observation, 'achieved_goal': achieved, 'desired_goal': desired}
  )


def relabel(rows, key=KEY, *, probability=1.0, goal_outcome=goals.bits_equal, ends_at_goal=True):
  return tree.map_structure(
    lambda x: x.numpy(),
    hindsight.relabel(
      rows, key, probability=probability, goal_outcome=goal_outcome, ends_at_goal=ends_at_goal
    ),
  )


def last_rows(step_types):
  """Returns `[W, B]`, the last row within the window of each row's episode, by a slow loop."""
  num_rows, batch_size = step_types.shape
  result = np.zeros((num_rows - 1, batch_size), int)
  for t in range(num_rows - 1):
    for b in range(batch_size):
      last = t
      while last < num_rows - 1 and step_types[last, b] != LAST:
        last += 1
      result[t, b] = last
  return result


def slow_relabel(rows, chosen_goals, is_substituted, outcome, ends_at_goal):
  """Applies the rules to each transition in turn: reward, discount and both goals."""
  num_transitions, batch_size = is_substituted.shape
  reward, discount = rows.reward[1:].copy(), rows.discount[1:].copy()
  desired = rows.observation['desired_goal']
  goal_pairs = np.stack([desired[:-1], desired[1:]])
  for t in range(num_transitions):
    for b in range(batch_size):
      if not is_substituted[t, b]:
        continue
      achieved, old = rows.observation['achieved_goal'][t + 1, b], desired[t + 1, b]
      new = chosen_goals[t, b]
      goal_pairs[:, t, b] = new
      reward[t, b] += outcome(achieved, new)[0] - outcome(achieved, old)[0]
      if ends_at_goal and outcome(achieved, new)[1]:
        discount[t, b] = 0
      elif ends_at_goal and outcome(achieved, old)[1]:
        discount[t, b] = 1
  return reward, discount, goal_pairs


def equal_outcome(achieved, goal):
  is_reached = bool((achieved == goal).all())
  return float(is_reached), is_reached


def near_outcome(achieved, goal):
  is_reached = bool(np.linalg.norm(achieved - goal) <= 0.05)
  return float(is_reached) - 1, is_reached
