"""Pong, Nature CNN, V-trace, 2 actors of 32 environments: throughput on images."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values; unroll 20, stack 4 and one gradient pass, as other frameworks are measured."""
  return config_lib.ExperimentConfig(
    name='bench_pong_cnn',
    num_actors=2,
    environments_per_actor=32,
    environment=config_lib.EnvironmentConfig(id='atari:Pong'),
    network=config_lib.NetworkConfig(torso='nature_cnn', torso_output_size=512, frame_stack=4),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=32,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(learning_rate=1e-3),
    ),
    replay=config_lib.ReplayConfig(queue_size=64),
    # With one thread, the convolutions of training and inference would run one after the other.
    learner=config_lib.LearnerConfig(tensorflow_threads=2),
  )
