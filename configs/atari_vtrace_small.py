"""Pong with V-trace on a laptop of two cores, in an hour and a half."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Own numbers: small batches, because two cores do few updates in an hour."""
  return config_lib.ExperimentConfig(
    name='atari_vtrace_small',
    num_actors=2,
    environments_per_actor=16,
    total_steps=6_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong', settings={'full_action_set': False}),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=256,
      frame_stack=4,
      initializer='orthogonal',
      policy_head_gain=0.01,
    ),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=8,
      lambda_=0.95,
      value_cost=0.25,
      entropy=on_policy_config.PenaltyConfig(weight=0.005),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(learning_rate=6e-4, epsilon=1e-8, max_gradient_norm=0.5),
    ),
    replay=config_lib.ReplayConfig(queue_size=16),
    # With one thread, convolutions of training and of inference take turns on it. Unrolls
    # come in bursts, all environments at once: shorter periods would show rates that jump.
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
  )
