"""Pendulum with SAC: one continuous action, solved within 20,000 agent steps."""

from seed_acme import config as config_lib
from seed_acme.agents.sac import config as sac_config


def experiment() -> config_lib.ExperimentConfig:
  """Learning rate, network, batch and one gradient step per step are rl-zoo3's for this task, but
  transitions are stored four to an unroll.

  Ends with a mean return of at least -200 over 200 greedy episodes (seeds 1, 2, 3).
  """
  optimizer = config_lib.OptimizerConfig(learning_rate=1e-3, epsilon=1e-8, max_gradient_norm=0.0)
  return config_lib.ExperimentConfig(
    name='pendulum_sac',
    num_actors=1,
    environments_per_actor=4,
    total_steps=20_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='Pendulum-v1'),
    network=config_lib.NetworkConfig(mlp_sizes=(256, 256)),
    agent=sac_config.SACConfig(
      unroll_length=4,  # agent steps
      batch_size=64,  # unrolls: 256 transitions
      replay_capacity=5_000,  # unrolls: all 20,000 steps
      replay_min_size=50,
      random_steps=500,
      target_entropy=-1.0,
      optimizer=optimizer,
      critic_optimizer=optimizer,
      entropy_optimizer=optimizer,
    ),
    learner=config_lib.LearnerConfig(xla=True),
  )
