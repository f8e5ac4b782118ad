"""Pong, R2D2 with the network and the unrolls of the paper: throughput with replay."""

from seed_acme import config as config_lib
from seed_acme.agents.r2d2 import config as r2d2_config


def experiment() -> config_lib.ExperimentConfig:
  """The paper's agent except for Adam's epsilon; batch and memory are smaller, so that a short
  measurement covers many updates.
  """
  return config_lib.ExperimentConfig(
    name='bench_pong_r2d2',
    num_actors=2,
    environments_per_actor=32,
    environment=config_lib.EnvironmentConfig(id='atari:Pong'),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=512,
      frame_stack=4,
      core='lstm',
      core_size=512,
      head_sizes=(512,),
      previous_action_input=True,
      previous_reward_input=True,
      previous_reward_bound=0.0,
    ),
    agent=r2d2_config.R2D2Config(
      batch_size=8,
      replay_capacity=500,
      replay_min_size=64,
      # The agent's default except for epsilon, because 1e-3 is larger than the gradients here.
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-4, epsilon=1e-8, max_gradient_norm=80.0
      ),
    ),
    # With one thread, the convolutions of training and inference would run one after the other.
    learner=config_lib.LearnerConfig(tensorflow_threads=2),
  )
