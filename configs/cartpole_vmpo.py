"""CartPole with V-MPO."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import presets
from seed_acme.configs import cartpole_ppo


def experiment() -> config_lib.ExperimentConfig:
  """The values of `cartpole_ppo`, with another agent and without XLA, which saves nothing here.

  Ends with a mean return of at least 475 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return dataclasses.replace(
    cartpole_ppo.experiment(),
    name='cartpole_vmpo',
    total_steps=300_000,  # agent steps
    agent=presets.vmpo(
      unroll_length=32,
      batch_size=32,  # 1,024 transitions an update
      minibatch_of='transitions',
      minibatch_size=256,
      num_epochs=10,
      value_cost=0.5,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=0.5
      ),
    ),
    learner=config_lib.LearnerConfig(),
  )
