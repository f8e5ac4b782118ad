"""Keys and doors in the right order: DeepMind Lab with SEED RL's V-trace."""

from seed_acme import config as config_lib
from seed_acme.configs import dmlab_explore_goal_locations_small


def experiment() -> config_lib.ExperimentConfig:
  """The values of SEED RL's gcp script for the level, except for the action repeat: see `tuned`."""
  return dmlab_explore_goal_locations_small.tuned(
    'rooms_keys_doors_puzzle',
    lambda_=0.922,
    entropy_weight=0.002,
    learning_rate=0.0001,
    epsilon=3.125e-11,
  )
