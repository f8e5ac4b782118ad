"""HalfCheetah with PPO as SEED RL's script for Google Cloud runs it: on 4 actors."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import mujoco_ppo_halfcheetah


def experiment() -> config_lib.ExperimentConfig:
  """The sizes of `gcp/train_mujoco.sh`; its other values are those of `mujoco_ppo_halfcheetah`."""
  return dataclasses.replace(
    mujoco_ppo_halfcheetah.experiment(),
    name='mujoco_ppo_halfcheetah_gcp',
    num_actors=4,
    environments_per_actor=1,
    total_steps=2_000_000,  # agent steps; the action repeat is 1
  )
