"""`bench_pong_cnn` with the games of envpool: `seed-acme bench --against=bench_pong_cnn_envpool`.

Needs the extra `envpool` and, if the learner runs under Python 3.10, an interpreter for its actors.
"""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_pong_cnn


def experiment() -> config_lib.ExperimentConfig:
  """The same values; the game has the same screens, rewards and ends of episodes."""
  return dataclasses.replace(
    bench_pong_cnn.experiment(),
    name='bench_pong_cnn_envpool',
    environment=config_lib.EnvironmentConfig(id='envpool:Pong-v5'),
  )
