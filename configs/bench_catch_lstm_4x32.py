"""Catch, MLP 64x64 and LSTM 64, 4 actors of 32 environments: the setting of the original."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values; batch and queue give a high throughput at a policy lag below 8 updates."""
  return config_lib.ExperimentConfig(
    name='bench_catch_lstm_4x32',
    num_actors=4,
    environments_per_actor=32,
    environment=config_lib.EnvironmentConfig(id='catch'),
    network=config_lib.NetworkConfig(torso='mlp', mlp_sizes=(64, 64), core='lstm', core_size=64),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=64,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      optimizer=config_lib.OptimizerConfig(learning_rate=1e-3),
    ),
    replay=config_lib.ReplayConfig(queue_size=128, unrolls_per_item=16),
    inference=config_lib.InferenceConfig(batch_size=128),  # rows: all environments
  )
