"""Catch, MLP 64x64 and LSTM 64, 4 actors of 32 environments: the setting of the original."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_catch_lstm


def experiment() -> config_lib.ExperimentConfig:
  """Values of `bench_catch_lstm` with other sizes; batch and queue again give a high throughput at
  a policy lag below 8 updates."""
  lstm = bench_catch_lstm.experiment()
  return dataclasses.replace(
    lstm,
    name='bench_catch_lstm_4x32',
    num_actors=4,
    environments_per_actor=32,
    network=dataclasses.replace(lstm.network, core_size=64),
    agent=dataclasses.replace(lstm.agent, batch_size=64),
    replay=config_lib.ReplayConfig(queue_size=128, unrolls_per_item=0),
    inference=config_lib.InferenceConfig(batch_size=128),  # rows: all environments
  )
