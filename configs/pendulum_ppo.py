"""Pendulum with PPO: one continuous action, rewards of large scale, no terminal states."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values; a random policy returns about -1,200, a good one about -150 to -200.

  Ends with a mean return of at least -250 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return config_lib.ExperimentConfig(
    name='pendulum_ppo',
    num_actors=1,
    environments_per_actor=8,
    total_steps=150_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='Pendulum-v1'),
    network=config_lib.NetworkConfig(
      mlp_sizes=(64, 64),
      activation='tanh',
      initializer='orthogonal',
      policy_head_gain=0.01,
      separate_value_network=True,
    ),
    agent=presets.ppo(
      unroll_length=128,
      batch_size=8,  # 1,024 transitions an update
      minibatch_size=64,
      num_epochs=10,
      discount=0.9,
      lambda_=0.95,
      values=on_policy_config.NormalizationConfig(statistics='average'),
      state_independent_std=True,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=8, unrolls_per_item=8),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(xla=True),
  )
