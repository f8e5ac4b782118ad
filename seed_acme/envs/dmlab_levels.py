"""DMLab-30: its levels, the scores of random and human players, and the lengths of episodes.

Imports no optional package.
"""

from __future__ import annotations

from typing import NamedTuple

from seed_acme import types
from seed_acme.checks import near_names

FOLDER = 'contributed/dmlab30/'
_TRAIN, _TEST = '_train', '_test'


class Level(NamedTuple):
  """One of the 30 tasks, by the name of its level for training.

  random, human: mean undiscounted return of an episode, with unscaled rewards.
  episode_s: seconds of the game after which time is up.
  """

  random: float
  human: float
  episode_s: int


# Two tasks have a separate level for testing; all others are trained and tested on the same level.
# The scores are those of DeepMind's scalable_agent (dmlab30.py), the same 60 numbers as in SEED RL
# (dmlab/games.py); for the two pairs they are the test level's. The lengths were read in the level
# scripts of google-deepmind/lab (game_scripts/levels/contributed/dmlab30 and the factories that
# they call).
LEVELS: dict[str, Level] = {
  'rooms_collect_good_objects_train': Level(0.073, 10, 60),
  'rooms_exploit_deferred_effects_train': Level(8.501, 85.65, 60),
  'rooms_select_nonmatching_object': Level(0.312, 65.9, 12),
  'rooms_watermaze': Level(4.065, 54, 120),
  'rooms_keys_doors_puzzle': Level(4.135, 53.8, 60),
  'language_select_described_object': Level(-0.07, 389.5, 60),
  'language_select_located_object': Level(1.929, 280.7, 120),
  'language_execute_random_task': Level(-5.913, 254.05, 120),
  'language_answer_quantitative_question': Level(-0.33, 184.5, 60),
  'lasertag_one_opponent_small': Level(-0.224, 12.65, 240),
  'lasertag_three_opponents_small': Level(-0.214, 18.55, 240),
  'lasertag_one_opponent_large': Level(-0.083, 18.6, 240),
  'lasertag_three_opponents_large': Level(-0.102, 31.5, 240),
  'natlab_fixed_large_map': Level(2.173, 36.9, 120),
  'natlab_varying_map_regrowth': Level(2.989, 24.45, 120),
  'natlab_varying_map_randomized': Level(7.346, 42.35, 120),
  'skymaze_irreversible_path_hard': Level(0.1, 100, 60),
  'skymaze_irreversible_path_varied': Level(14.4, 100, 60),
  'psychlab_arbitrary_visuomotor_mapping': Level(0.163, 58.75, 300),
  'psychlab_continuous_recognition': Level(0.224, 58.3, 300),
  'psychlab_sequential_comparison': Level(0.129, 39.5, 300),
  'psychlab_visual_search': Level(0.085, 78.5, 150),
  'explore_object_locations_small': Level(3.575, 74.45, 90),
  'explore_object_locations_large': Level(4.673, 65.65, 120),
  'explore_obstructed_goals_small': Level(6.76, 206, 90),
  'explore_obstructed_goals_large': Level(2.61, 119.5, 120),
  'explore_goal_locations_small': Level(7.66, 267.5, 90),
  'explore_goal_locations_large': Level(3.14, 194.5, 120),
  'explore_object_rewards_few': Level(2.073, 77.7, 90),
  'explore_object_rewards_many': Level(2.438, 106.7, 120),
}
# (for training, for testing)
PAIRS: tuple[tuple[str, str], ...] = tuple(
  (name, name.removesuffix(_TRAIN) + _TEST if name.endswith(_TRAIN) else name) for name in LEVELS
)
HELD_OUT: tuple[str, ...] = tuple(test for train, test in PAIRS if test != train)
# Levels outside DMLab-30 that DeepMind Lab has in its root folder.
OTHERS: tuple[str, ...] = (
  'lt_chasm',
  'lt_hallway_slope',
  'lt_horseshoe_color',
  'lt_space_bounce_hard',
  'nav_maze_random_goal_01',
  'nav_maze_random_goal_02',
  'nav_maze_random_goal_03',
  'nav_maze_static_01',
  'nav_maze_static_02',
  'nav_maze_static_03',
  'seekavoid_arena_01',
  'stairway_to_melon',
)
NAMES: tuple[str, ...] = (*LEVELS, *HELD_OUT, *OTHERS)


def short_name(level: str) -> str:
  """Shortens `contributed/dmlab30/rooms_watermaze` to `rooms_watermaze`; keeps other names."""
  return level.removeprefix(FOLDER)


def path(level: str) -> str:
  """Returns the name under which DeepMind Lab finds a level; DMLab-30's may be given short."""
  name = short_name(level)
  return FOLDER + name if name in LEVELS or name in HELD_OUT else level


def for_training(level: str) -> str:
  """Returns the short name of a level, or of the training level of its pair."""
  name = short_name(level)
  return {test: train for train, test in PAIRS}.get(name, name)


def for_testing(level: str) -> str:
  """Returns the short name of a level, or of the test level of its pair."""
  name = short_name(level)
  return dict(PAIRS).get(name, name)


def episode_s(level: str) -> int:
  """Returns the seconds after which time is up in a DMLab-30 level; 0 = not known, for others."""
  name = for_training(level)
  return LEVELS[name].episode_s if name in LEVELS else 0


def human_normalized_percent(level: str, score: float) -> float:
  """Returns `100 (score - random) / (human - random)`, without a cap.

  level: either of a pair, short or with its folder. `types.UserError` outside DMLab-30.
  """
  name = for_training(level)
  if name not in LEVELS:
    near = near_names.near(name, (*LEVELS, *HELD_OUT))
    raise types.UserError(
      f'no human score is known for {level!r}{near}: expected a level of DMLab-30, one of '
      'seed_acme.envs.dmlab_levels.PAIRS'
    )
  random, human, _ = LEVELS[name]
  return 100 * (score - random) / (human - random)
