"""Acting alone on 2 × 16 environments of random frames, Nature CNN."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_pong_cnn


def experiment() -> config_lib.ExperimentConfig:
  """The network and the unrolls of `bench_pong_cnn`, on observations that are stacked already.

  Where nothing is trained, one thread makes more steps per CPU-second than two.
  """
  config = bench_pong_cnn.experiment()
  return dataclasses.replace(
    config,
    name='acting_frames_2',
    environments_per_actor=16,
    environment=config_lib.EnvironmentConfig(id='acting_boards:frames'),
    network=dataclasses.replace(config.network, frame_stack=1),
    agent=dataclasses.replace(config.agent, agent='acting_agent:make_agent'),
    learner=dataclasses.replace(config.learner, tensorflow_threads=1),
  )
