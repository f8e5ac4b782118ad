"""Pong, deep residual network and LSTM, V-trace: throughput with a heavy network."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values; unroll 20 and stack 4, as other frameworks are measured."""
  return config_lib.ExperimentConfig(
    name='bench_pong_resnet_lstm',
    num_actors=2,
    environments_per_actor=32,
    environment=config_lib.EnvironmentConfig(id='atari:Pong'),
    network=config_lib.NetworkConfig(
      torso='impala_resnet',
      torso_output_size=256,
      frame_stack=4,
      core='lstm',
      core_size=256,
      previous_action_input=True,
      previous_reward_input=True,
    ),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=16,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(learning_rate=1e-3),
    ),
    replay=config_lib.ReplayConfig(queue_size=64),
    # With one thread, the convolutions of training and inference would run one after the other.
    learner=config_lib.LearnerConfig(tensorflow_threads=2),
  )
