"""Football, a whole game against the hard opponents, rewarded for goals alone, 500e6 steps."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Values of the original's tuned script (`gcp/`), as far as it gives them.

  Its unroll and batch are 32 x 32; the paper's own runs had batches of 128 and 160. It has 25
  machines with 8 environments each. The engine has to be built: `make football`.
  """
  return config_lib.ExperimentConfig(
    name='football_scoring',
    num_actors=25,
    environments_per_actor=8,
    total_steps=500_000_000,  # the action repeat is 1
    environment=config_lib.EnvironmentConfig(
      id='football:11_vs_11_hard_stochastic', settings={'rewards': 'scoring'}
    ),
    network=config_lib.NetworkConfig(
      torso='football_resnet', torso_output_size=256, initializer='lecun_normal'
    ),
    agent=presets.vtrace(
      unroll_length=32,
      batch_size=32,
      discount=0.997,
      lambda_=0.9,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=0.000031948327487872845),
      max_abs_reward=0.0,  # no clipping
      optimizer=config_lib.OptimizerConfig(
        learning_rate=0.00005533923433816456, epsilon=1e-7, max_gradient_norm=0.0
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=32),
    inference=config_lib.InferenceConfig(batch_size=64),
    actor=config_lib.ActorConfig(python='.venv-football/bin/python'),
    checkpoint=config_lib.CheckpointConfig(period_s=1800.0),
  )
