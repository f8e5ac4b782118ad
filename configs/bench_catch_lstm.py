"""Catch, MLP 64x64 and LSTM 128, one actor of 512 environments."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_catch_mlp


def experiment() -> config_lib.ExperimentConfig:
  """Values of `bench_catch_mlp` with half of its batch, and a queue of as many unrolls."""
  mlp = bench_catch_mlp.experiment()
  return dataclasses.replace(
    mlp,
    name='bench_catch_lstm',
    network=dataclasses.replace(mlp.network, core='lstm', core_size=128),
    agent=dataclasses.replace(mlp.agent, batch_size=256),
    replay=dataclasses.replace(mlp.replay, queue_size=256, unrolls_per_item=0),
  )
