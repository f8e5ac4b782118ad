"""`bench_pong_cnn` with the games of envpool: `seed-acme bench --against=bench_pong_cnn_envpool`.

The environments run under another Python: `make actor-python EXTRAS=envpool` once, before.
"""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_pong_cnn


def experiment() -> config_lib.ExperimentConfig:
  """The same numbers; the game has the same screens, rewards and ends."""
  return dataclasses.replace(
    bench_pong_cnn.experiment(),
    name='bench_pong_cnn_envpool',
    environment=config_lib.EnvironmentConfig(id='envpool:Pong-v5'),
    actor=config_lib.ActorConfig(python='.venv-actor/bin/python'),
  )
