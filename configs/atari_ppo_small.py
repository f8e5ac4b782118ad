"""Pong with PPO on a laptop with two cores: the return starts to rise within half an hour."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Common values for PPO on Atari; the number of environments and the unrolls are our choice."""
  return config_lib.ExperimentConfig(
    name='atari_ppo_small',
    num_actors=1,
    environments_per_actor=16,
    total_steps=2_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong', settings={'full_action_set': False}),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=512,
      frame_stack=4,
      initializer='orthogonal',
      policy_head_gain=0.01,
    ),
    agent=presets.ppo(
      unroll_length=32,
      batch_size=32,  # 1,024 transitions an update
      minibatch_of='unrolls',
      minibatch_size=8,
      num_epochs=4,
      discount=0.99,
      lambda_=0.95,
      ppo_epsilon=0.1,
      max_abs_reward=1.0,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      optimizer=config_lib.OptimizerConfig(learning_rate=4e-4, epsilon=1e-8, max_gradient_norm=0.5),
    ),
    replay=config_lib.ReplayConfig(queue_size=32),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
  )
