"""Any gym environment with discrete actions, CartPole unless another is named.

`seed-acme train --config=gym_vtrace --config.environment.id=Acrobot-v1`
"""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values, chosen for CartPole-v1 (episodes are truncated at 500 steps) on 2 cores.

  Ends with a mean return of at least 475 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return config_lib.ExperimentConfig(
    name='gym_vtrace',
    num_actors=2,
    environments_per_actor=16,
    total_steps=600_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='CartPole-v1'),
    # In a shared torso, the value's gradients, which are far larger, would drown the policy's.
    network=config_lib.NetworkConfig(
      torso='mlp',
      mlp_sizes=(64, 64),
      activation='tanh',
      initializer='orthogonal',
      policy_head_gain=0.01,
      separate_value_network=True,
    ),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=16,
      minibatch_size=8,
      num_epochs=4,
      lambda_=0.95,
      advantage_form='gae',
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      normalize_advantages=True,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=32, unrolls_per_item=8),
  )
