"""CartPole with AWR."""

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
    name='cartpole_awr',
    total_steps=200_000,  # agent steps
    agent=presets.awr(
      unroll_length=32,
      batch_size=32,  # 1,024 transitions an update
      minibatch_size=64,
      num_epochs=10,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=0.5, epsilon=1e-9
      ),  # epsilon must be small, because the advantages make the gradients small
    ),
  )
