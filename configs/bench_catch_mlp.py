"""Catch, MLP 64x64, one actor of 512 environments: measures the overhead of the system itself."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values; batch and queue give a high throughput at a policy lag below 8 updates."""
  return config_lib.ExperimentConfig(
    name='bench_catch_mlp',
    num_actors=1,
    environments_per_actor=512,
    environment=config_lib.EnvironmentConfig(id='catch'),
    network=config_lib.NetworkConfig(torso='mlp', mlp_sizes=(64, 64)),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=512,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      optimizer=config_lib.OptimizerConfig(learning_rate=1e-3),
    ),
    replay=config_lib.ReplayConfig(queue_size=512, unrolls_per_item=0),
  )
