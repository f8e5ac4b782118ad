"""Acting alone on 2 × 256 boards of Catch, MLP 64-64."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_catch_mlp


def experiment() -> config_lib.ExperimentConfig:
  """The network and the unrolls of `bench_catch_mlp`."""
  config = bench_catch_mlp.experiment()
  return dataclasses.replace(
    config,
    name='acting_catch_2',
    num_actors=2,
    environments_per_actor=256,
    agent=dataclasses.replace(config.agent, agent='acting_agent:make_agent'),
  )
