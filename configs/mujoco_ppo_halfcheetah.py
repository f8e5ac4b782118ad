"""HalfCheetah with PPO and the tuned values of the original's MuJoCo configuration."""

import math

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """`mujoco/gin/ppo.gin` and `gcp/train_mujoco.sh` of SEED RL; docs/agents.md says what differs."""
  return config_lib.ExperimentConfig(
    name='mujoco_ppo_halfcheetah',
    num_actors=1,
    environments_per_actor=8,
    total_steps=1_000_000,  # agent steps; original: 2 million
    environment=config_lib.EnvironmentConfig(id='HalfCheetah-v4'),
    network=config_lib.NetworkConfig(
      mlp_sizes=(64, 64),
      activation='tanh',
      initializer='orthogonal',
      hidden_gain=math.sqrt(2.0),
      policy_head_gain=0.01,
      value_head_gain=1.0,
      separate_value_network=True,
    ),
    agent=presets.ppo(
      unroll_length=16,
      batch_size=128,  # 2,048 transitions an update
      minibatch_size=64,
      num_epochs=10,
      discount=0.99,
      lambda_=0.95,
      ppo_epsilon=0.2,
      normalize_advantages=False,
      observations=on_policy_config.NormalizationConfig(statistics='average'),
      observation_clip=10.0,
      values=on_policy_config.NormalizationConfig(statistics='average'),
      value_compensation=False,
      action_distribution='tanh_normal',
      std_function='safe_exp',
      initial_std=1.0,
      min_std=1e-3,
      state_independent_std=True,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=3e-4, schedule='linear', max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=128, unrolls_per_item=0),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(xla=True),
  )
