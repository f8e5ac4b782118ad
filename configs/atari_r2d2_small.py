"""Pong with R2D2 on a laptop: a smaller network, shorter unrolls, a replay memory of 3.8 GB."""

from seed_acme import config as config_lib
from seed_acme.agents.r2d2 import config as r2d2_config


def experiment() -> config_lib.ExperimentConfig:
  """Values that differ from `atari_r2d2` are our choice.

  In so short a run the number of updates matters most: each step is trained on four times, in small
  batches, and the target network is copied every 12,000 agent steps.
  """
  return config_lib.ExperimentConfig(
    name='atari_r2d2_small',
    num_actors=2,
    environments_per_actor=16,
    num_evaluation_environments=4,
    total_steps=2_500_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong', settings={'full_action_set': False}),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=256,
      frame_stack=4,
      core='lstm',
      core_size=256,
      head_sizes=(256,),
      previous_action_input=True,
      previous_reward_input=True,
      previous_reward_bound=0.0,  # not clipped
    ),
    agent=r2d2_config.R2D2Config(
      unroll_length=40,  # agent steps
      overlap=10,
      batch_size=8,
      replay_capacity=10_000,  # unrolls of 51 screens: 3.8 GB at most
      replay_min_size=500,
      replay_ratio=4.0,
      discount=0.99,
      target_period=150,
      epsilon_base=0.1,
      optimizer=config_lib.OptimizerConfig(learning_rate=2e-4, epsilon=1e-8),
    ),
    # With one thread, the convolutions of training and inference would run one after the other.
    # Unrolls arrive in bursts, from all environments at once: with a shorter period rates jump.
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
    checkpoint=config_lib.CheckpointConfig(period_s=900.0),
  )
