"""HalfCheetah with SAC."""

from seed_acme import config as config_lib
from seed_acme.agents.sac import config as sac_config


def experiment() -> config_lib.ExperimentConfig:
  """Haarnoja et al. 2018b, table 1 (discount, networks, learning rate, memory, target smoothing, an
  update for each step), and its target entropy of -6, minus the number of action dimensions.

  Our own choices: 8 environments at once; 10,000 random steps at the start; transitions are stored
  eight to an unroll, of which an update takes four, since drawing unrolls of one transition costs
  as much as learning from them; 128 transitions in a batch instead of 256. At equal cost, batches
  of 256 with an update every other step had a return of 690 after 56,000 steps, and batches of 128
  with an update every step 2,640.
  """
  optimizer = config_lib.OptimizerConfig(learning_rate=3e-4, epsilon=1e-8, max_gradient_norm=0.0)
  return config_lib.ExperimentConfig(
    name='mujoco_sac_halfcheetah',
    num_actors=1,
    environments_per_actor=8,
    total_steps=1_000_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='HalfCheetah-v4'),
    network=config_lib.NetworkConfig(mlp_sizes=(256, 256)),
    agent=sac_config.SACConfig(
      unroll_length=8,  # agent steps
      transitions_per_unroll=4,
      batch_size=32,  # unrolls: 128 transitions
      replay_capacity=125_000,  # unrolls: a million steps
      replay_min_size=1_250,  # the 10,000 random steps
      random_steps=10_000,
      updates_per_step=1.0,
      discount=0.99,
      target_step=0.005,
      target_entropy=-6.0,
      optimizer=optimizer,
      critic_optimizer=optimizer,
      entropy_optimizer=optimizer,
    ),
    inference=config_lib.InferenceConfig(publish_period=4),
    learner=config_lib.LearnerConfig(xla=True),
    checkpoint=config_lib.CheckpointConfig(period_s=600.0),
  )
