"""A hidden platform to be found again: DeepMind Lab with SEED RL's V-trace."""

from seed_acme import config as config_lib
from seed_acme.configs import dmlab_explore_goal_locations_small


def experiment() -> config_lib.ExperimentConfig:
  """The values of SEED RL's gcp script for the level, except for the action repeat: see `tuned`."""
  return dmlab_explore_goal_locations_small.tuned(
    'rooms_watermaze', lambda_=0.99, entropy_weight=0.00001, learning_rate=0.0001, epsilon=3.125e-7
  )
