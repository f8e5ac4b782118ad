"""Pong with V-trace on a laptop of two cores: it moves within an hour."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Own numbers: small batches, because two cores do few updates in an hour."""
  return config_lib.ExperimentConfig(
    name='atari_vtrace_small',
    num_actors=2,
    environments_per_actor=16,
    total_steps=3_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong', settings={'full_action_set': False}),
    network=config_lib.NetworkConfig(torso='nature_cnn', torso_output_size=256, frame_stack=4),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=8,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(learning_rate=4e-4, epsilon=1e-8),
    ),
    replay=config_lib.ReplayConfig(queue_size=32),
    # With one thread, convolutions of training and of inference take turns on it. Unrolls
    # come in bursts, all environments at once: shorter periods would show rates that jump.
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
  )
