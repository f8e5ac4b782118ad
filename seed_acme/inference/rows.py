"""Rows of a batch: as received with the requests, as inputs of the policy, and acted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seed_acme import types
from seed_acme.inference import noise
from seed_acme.inference import slots as slots_lib
from seed_acme.progress import counting
from seed_acme.tensors import nests


class Rows:
  """The rows of one batch, padded to `size`; rows from `num_rows` on have no effect."""

  def __init__(self, requests: Sequence[types.ActorRequest], size: int):
    self.env_ids = _joined([r.env_ids for r in requests]).astype(np.int64)
    self.run_ids = _joined([r.run_ids for r in requests])
    self.num_rows = self.env_ids.size
    self.request_numbers = _joined(
      [np.full(r.env_ids.size, r.request_number, np.int64) for r in requests]
    )
    self.timestep = nests.map_arrays(
      lambda *parts: _padded(parts, size), *[r.timestep for r in requests]
    )


def _padded(parts: Sequence[np.ndarray], size: int) -> np.ndarray:
  num_rows = sum(part.shape[0] for part in parts)
  if num_rows == size:
    return _joined(parts)
  rows = np.zeros((size, *parts[0].shape[1:]), parts[0].dtype)
  np.concatenate(parts, out=rows[:num_rows])
  return rows


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
  return np.concatenate(parts) if len(parts) > 1 else parts[0]


class ActedRows(NamedTuple):
  """The rows of a batch and the policy's outputs, `[N, ...]` each."""

  is_evaluation: np.ndarray
  inputs: types.AgentInput
  score: np.ndarray
  outputs: types.AgentOutput
  entering_state: types.Nest


class InputReader:
  """Assembles the policy's inputs: state and previous action from the slots, and random numbers."""

  def __init__(
    self,
    slots: slots_lib.EnvironmentSlots,
    counters: counting.Counters,
    num_training: int,
    num_environments: int,
    num_uniforms: int,
  ):
    """num_uniforms: random numbers that the policy needs for one row."""
    self._slots = slots
    self._counters = counters
    self._num_training = num_training
    self._num_uniforms = num_uniforms
    self._place = np.minimum(np.arange(num_environments) / max(1, num_training - 1), 1).astype(
      np.float32
    )

  def __call__(self, rows: Rows) -> tuple[types.AgentInput, types.Nest, types.Exploration]:
    timestep, n = rows.timestep, rows.num_rows
    size = timestep.step_type.shape[0]
    ids = rows.env_ids
    if size > n:  # padding reads the first row's slot and writes none
      ids = np.concatenate([ids, np.full(size - n, ids[0])])
    is_first = timestep.step_type == types.FIRST

    def zero_at_first(x: np.ndarray) -> np.ndarray:
      x[is_first] = 0
      return x

    inputs = types.AgentInput(
      step_type=timestep.step_type,
      reward=np.where(is_first, np.float32(0), timestep.reward),
      discount=timestep.discount,
      # The action sampled at LAST must not leak into the next episode.
      previous_action=nests.map_arrays(lambda a: zero_at_first(a[ids]), self._slots.action),
      observation=timestep.observation,
    )
    state = nests.map_arrays(lambda s: s[ids], self._slots.state)
    exploration = types.Exploration(
      uniforms=noise.uniforms(
        self._slots.noise_keys[ids], self._slots.row_numbers[ids], self._num_uniforms
      ),
      place=self._place[ids],
      is_evaluation=ids >= self._num_training,
      agent_steps=np.full(size, self._counters.agent_steps, np.int64),
    )
    return inputs, state, exploration
