"""Laser tag against three opponents: DeepMind Lab with SEED RL's V-trace."""

from seed_acme import config as config_lib
from seed_acme.configs import dmlab_explore_goal_locations_small


def experiment() -> config_lib.ExperimentConfig:
  """The values of SEED RL's gcp script for the level, except for the action repeat: see `tuned`."""
  return dmlab_explore_goal_locations_small.tuned(
    'lasertag_three_opponents_small',
    lambda_=0.9,
    entropy_weight=0.0013043623417080615,
    learning_rate=0.000398313170083425,
    epsilon=3.125e-11,
  )
