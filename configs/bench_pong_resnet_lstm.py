"""Pong, deep residual network and LSTM, V-trace: throughput with a heavy network."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import bench_pong_cnn


def experiment() -> config_lib.ExperimentConfig:
  """Values of `bench_pong_cnn`, as other frameworks are measured, with half of its batch."""
  cnn = bench_pong_cnn.experiment()
  return dataclasses.replace(
    cnn,
    name='bench_pong_resnet_lstm',
    network=config_lib.NetworkConfig(
      torso='impala_resnet',
      torso_output_size=256,
      frame_stack=4,
      core='lstm',
      core_size=256,
      previous_action_input=True,
      previous_reward_input=True,
    ),
    agent=dataclasses.replace(cnn.agent, batch_size=16),
  )
