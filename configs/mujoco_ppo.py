"""PPO on MuJoCo: HalfCheetah as it is, and with the same numbers Hopper and Walker2d."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import mujoco_ppo_halfcheetah


def experiment() -> config_lib.ExperimentConfig:
  """Own numbers, chosen with seeds 11 and 12 (docs/results.md).

  Against the original's of `mujoco_ppo_halfcheetah`: unrolls of 32 steps in 64 environments instead
  of 16 in 8, so that GAE looks further; advantages anew in each epoch; less noise at first.
  """
  base = mujoco_ppo_halfcheetah.experiment()
  return dataclasses.replace(
    base,
    name='mujoco_ppo',
    environments_per_actor=64,
    agent=dataclasses.replace(
      base.agent,
      unroll_length=32,
      batch_size=64,  # 2,048 transitions an update, as there
      recompute_advantages='epoch',
      initial_std=0.6,
      value_cost=0.5,
    ),
    replay=config_lib.ReplayConfig(queue_size=64, unrolls_per_item=64),
  )
