"""`mujoco_ppo_halfcheetah` with envpool's HalfCheetah, which is an extra of this project."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import mujoco_ppo_halfcheetah


def experiment() -> config_lib.ExperimentConfig:
  """The same robot, stepped by envpool in the process of the actor."""
  return dataclasses.replace(
    mujoco_ppo_halfcheetah.experiment(),
    name='halfcheetah_envpool',
    environment=config_lib.EnvironmentConfig(id='envpool:HalfCheetah-v4'),
  )
