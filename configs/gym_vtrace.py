"""Any gym environment with discrete actions, CartPole unless another is named.

`seed-acme train --config=gym_vtrace --config.environment.id=Acrobot-v1`
"""

from seed_acme import config as config_lib
from seed_acme.agents.vtrace import config as vtrace_config


def experiment() -> config_lib.ExperimentConfig:
  """Own numbers, chosen for CartPole-v1 (episodes cut off at 500 steps) on 2 cores."""
  return config_lib.ExperimentConfig(
    name='gym_vtrace',
    num_actors=2,
    environments_per_actor=16,
    total_steps=600_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='CartPole-v1'),
    network=config_lib.NetworkConfig(torso='mlp', mlp_sizes=(64, 64)),
    agent=vtrace_config.VTraceConfig(
      unroll_length=20,  # agent steps
      batch_size=16,
      lambda_=0.95,  # long episodes: less variance than 1.0, which forgot what it had learnt
      value_cost=0.25,  # returns reach 100 here, discounted; 1 in Catch
      entropy_cost=0.01,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=1.0
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=32, unrolls_per_item=8),
  )
