"""Environments and channels whose calls are logged."""

from __future__ import annotations

from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import core
from seed_acme import types

Log = list[tuple[Any, ...]]


class LoggedEnvironment:
  """Two environments whose every call is written to `log` under `name`."""

  num_environments = 2
  spec = types.EnvironmentSpec(
    dm_specs.Array((1,), np.float32), dm_specs.DiscreteArray(100, dtype=np.int32)
  )

  def __init__(self, name: str, log: Log):
    self._name, self._log, self._row = name, log, 0

  def reset(self) -> types.VectorTimeStep:
    self._log.append((self._name, 'reset'))
    return self._timestep(types.FIRST)

  def step(self, actions: np.ndarray) -> types.VectorTimeStep:
    self._log.append((self._name, 'step', actions.tolist()))
    self._row += 1
    return self._timestep(types.MID)

  def close(self) -> None:
    self._log.append((self._name, 'close environment'))

  def _timestep(self, step_type: int) -> types.VectorTimeStep:
    row = np.full(2, self._row, np.float32)
    return types.VectorTimeStep(np.full(2, step_type, np.uint8), row, row, row[:, None], row)


class LoggedChannel:
  """Answers request n of a group with actions `[first env_id, n]`; ends after `num_replies`."""

  def __init__(self, name: str, log: Log, num_replies: int = 1000):
    self._name, self._log, self._num_replies = name, log, num_replies
    self.requests: list[types.ActorRequest] = []

  def send(self, request: types.ActorRequest) -> None:
    self._log.append((self._name, 'send', request.request_number))
    self.requests.append(request)

  def receive(self) -> np.ndarray:
    request = self.requests[-1]
    if request.request_number >= self._num_replies:
      raise core.ChannelClosed
    self._log.append((self._name, 'receive', request.request_number))
    return np.array([request.env_ids[0], request.request_number], np.int32)

  def close(self) -> None:
    self._log.append((self._name, 'close channel'))
