"""The memory that a replay buffer will take, and the time to save it, estimated before the start.

Imports neither TensorFlow nor Reverb, because the front end uses it.
"""

from __future__ import annotations

from collections.abc import Callable
import pathlib

from dm_env import specs as dm_specs
import numpy as np
import psutil
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.loggers import terminal

_SAVING_BYTES_PER_S = 20e6  # slower than any disk that checkpoints should be on
_SHARE_OF_MEMORY = 0.8  # the rest is for weights, activations and the actors
_CGROUP = pathlib.Path('/sys/fs/cgroup')
# cached file pages, which a container frees before it runs out of memory
_RECLAIMABLE = 'inactive_file'
# Per row, besides observation, action (previous and current) and Q values: step type, reward,
# discount, version of the weights.
_ROW_BYTES = 1 + 4 + 4 + 8
_FLOAT_BYTES = 4
_CORE_STATES = {'none': 0, 'gru': 1, 'lstm': 2}  # vectors in a core's recurrent state


def replay_bytes(
  config: config_lib.ExperimentConfig, spec_of: Callable[[], types.EnvironmentSpec]
) -> int:
  """Returns the bytes of the unrolls in a full replay memory; 0 with a queue.

  This is an upper bound, because Reverb compresses, which helps with plain screens but not with
  rich ones. It leaves out the recurrent state of the user's own network (`network.module`), which
  is unknown here.
  spec_of: returns the specification of the environments; called only if there is a memory.
  """
  replay = config.agent.replay_spec()
  if not replay.is_memory:
    return 0
  spec = spec_of()
  observation = _spec_bytes(spec.observation)
  row = (
    observation
    + 2 * _spec_bytes(spec.action)
    + _ROW_BYTES
    + _num_predicted(spec.action) * _FLOAT_BYTES
  )
  unroll = config.agent.unroll_rows * row + _state_bytes(config.network, observation)
  return replay.capacity * unroll


def _state_bytes(network: config_lib.NetworkConfig, observation: int) -> int:
  """Returns the bytes of an unroll's initial recurrent state: the core's, and stacked screens."""
  if network.module:
    return 0
  return (
    _CORE_STATES[network.core] * network.core_size * _FLOAT_BYTES
    + (network.frame_stack - 1) * observation
  )


def _num_predicted(action: types.Nest) -> int:
  """Returns an upper bound on the numbers that a network outputs per row.

  One for each discrete choice, two for each continuous dimension, and a value.
  """
  number = 1
  for leaf in tree.flatten(action):
    if np.issubdtype(leaf.dtype, np.integer):
      number += _num_choices(leaf)
    else:
      number += 2 * int(np.prod(leaf.shape, dtype=np.int64))
  return number


def _num_choices(leaf: dm_specs.Array) -> int:
  """Returns the number of choices of an action's integers, each of which is chosen separately."""
  if isinstance(leaf, dm_specs.DiscreteArray):
    return int(leaf.num_values)
  if not isinstance(leaf, dm_specs.BoundedArray):  # unbounded, which the checks before a run refuse
    return 0
  low = np.broadcast_to(leaf.minimum, leaf.shape).astype(np.int64)
  high = np.broadcast_to(leaf.maximum, leaf.shape).astype(np.int64)
  return int(np.sum(high - low + 1))


def _spec_bytes(spec: types.Nest) -> int:
  return sum(
    int(np.prod(leaf.shape, dtype=np.int64)) * np.dtype(leaf.dtype).itemsize
    for leaf in tree.flatten(spec)
  )


def saving_seconds(num_bytes: int) -> float:
  """Returns how long saving this much replay into a checkpoint may take."""
  return num_bytes / _SAVING_BYTES_PER_S


def memory_warning(
  config: config_lib.ExperimentConfig, num_bytes: int, available: int | None = None
) -> str:
  """Returns a warning if a full replay memory of `num_bytes` may not fit into memory, else ''.

  available: bytes; None asks the machine.
  """
  room = int(_SHARE_OF_MEMORY * (available_memory() if available is None else available))
  replay = config.agent.replay_spec()
  if num_bytes <= room or not replay.is_memory:
    return ''
  capacity, least = replay.capacity, replay.min_size
  fitting = _rounded(capacity * room // num_bytes)
  settings = f'--config.agent.replay_capacity={fitting}'
  if fitting < least:  # keeps the share of the capacity
    settings += f' --config.agent.replay_min_size={_rounded(fitting * least // capacity)}'
  return (
    f'a full replay memory of {capacity:,} unrolls takes up to {_gigabytes(num_bytes)}, and '
    f'{_gigabytes(room)} are free for it here: {settings} fits'
  )


def available_memory() -> int:
  """Returns the bytes that are available on the machine, or in the container if that is less."""
  available = psutil.virtual_memory().available
  try:
    limit, used = (int((_CGROUP / f'memory.{name}').read_text()) for name in ('max', 'current'))
    figures = dict(line.split() for line in (_CGROUP / 'memory.stat').read_text().splitlines())
    return max(0, min(available, limit - used + int(figures[_RECLAIMABLE])))
  except (OSError, ValueError, KeyError):  # no control group, or no limit ('max')
    return available


def _gigabytes(num_bytes: int) -> str:
  return f'{terminal.number(num_bytes / 1e9, 3)} GB'


def _rounded(number: int) -> int:
  """Rounds down to two leading digits."""
  number = max(1, number)
  unit = 10 ** max(0, len(str(number)) - 2)
  return number // unit * unit
