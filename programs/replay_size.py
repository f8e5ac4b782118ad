"""What a replay memory will take, before anything is started: memory, and seconds to save.

Imports neither TensorFlow nor Reverb: the front end asks.
"""
from __future__ import annotations

import pathlib

import numpy as np
import psutil
import tree

from seed_acme import config as config_lib
from seed_acme.envs import registry as environments

_SAVING_BYTES_PER_S = 20e6  # slower than any disk that a checkpoint is meant for
_SHARE_OF_MEMORY = 0.8  # the rest is for weights, activations and the actors
_CGROUP_LIMIT = pathlib.Path('/sys/fs/cgroup/memory.max')


def replay_bytes(config: config_lib.ExperimentConfig) -> int:
  """Bytes of the observations in a full replay memory; 0 with a queue.

  Upper end: Reverb compresses, which helps with plain screens and not with rich ones. Builds
  one environment, for its specification.
  """
  if not isinstance(config.agent, config_lib.ReplayAgentConfig):
    return 0
  observation = environments.environment_spec(config.environment).observation
  row = sum(int(np.prod(leaf.shape, dtype=np.int64)) * np.dtype(leaf.dtype).itemsize
            for leaf in tree.flatten(observation))
  return config.agent.replay_capacity * config_lib.unroll_rows(config.agent) * row


def saving_seconds(num_bytes: int) -> float:
  """How long a checkpoint may take that holds so much replay."""
  return num_bytes / _SAVING_BYTES_PER_S


def memory_warning(config: config_lib.ExperimentConfig, num_bytes: int,
                   available: int | None = None) -> str:
  """One line where a full replay memory of `num_bytes` may not fit into memory, else ''.

  available: bytes; None asks the machine.
  """
  room = int(_SHARE_OF_MEMORY * (available_memory() if available is None else available))
  if num_bytes <= room or not isinstance(config.agent, config_lib.ReplayAgentConfig):
    return ''
  capacity = config.agent.replay_capacity
  return (f'a full replay memory of {capacity:,} unrolls takes up to {_gigabytes(num_bytes)}, and '
          f'{_gigabytes(room)} are free for it here: '
          f'--config.agent.replay_capacity={_rounded(capacity * room // num_bytes)} fits')


def available_memory() -> int:
  """Bytes that may still be taken: of the machine, or of the container if that is less."""
  available = psutil.virtual_memory().available
  try:
    return min(available, int(_CGROUP_LIMIT.read_text()))
  except (OSError, ValueError):  # no control group, or no limit ('max')
    return available


def _gigabytes(num_bytes: int) -> str:
  return f'{num_bytes / 1e9:.3g} GB'


def _rounded(number: int) -> int:
  """Two leading digits, downwards."""
  number = max(1, number)
  unit = 10 ** max(0, len(str(number)) - 2)
  return number // unit * unit
