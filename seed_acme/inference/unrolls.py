"""Assembles rows into overlapping unrolls, for all environments at once."""

from __future__ import annotations

import numpy as np
import tree

from seed_acme import types
from seed_acme.tensors import aligned


class UnrollAssembler:
  """Assembles rows into finished unrolls of `overlap + unroll_length + 1` rows.

  Consecutive unrolls of one environment share `overlap + 1` rows. With `overlap` 2 and
  `unroll_length` 3, where p is padding of step type LAST, which the mask excludes:

    rows       p  p  0  1  2  3  4  5  6
    unroll 0  [p  p  0  1  2  3]             learns the transitions from 0 to 3
    unroll 1           [1  2  3  4  5  6]    learns those from 3 to 6; 1 and 2 are burn-in

  The `initial_state` of unroll 1 is the state before row 1. It is stored when that row arrives,
  while unroll 0 is still being filled. Row 0 is FIRST and resets the state.

  Used by the inference thread only.
  """

  def __init__(
    self,
    num_environments: int,
    unroll_length: int,
    overlap: int,
    row_example: tuple[types.AgentInput, types.AgentOutput],
    state_example: types.Nest,
  ):
    """row_example, state_example: nests of arrays of one row, without batch axis."""
    self._num_rows = overlap + unroll_length + 1
    self.overlap = overlap
    self._unroll_length = unroll_length
    self._row_structure = (*row_example, np.zeros((), np.int64))  # + policy_version
    # Time first, as learners read unrolls, so that finished ones are copied only once.
    self._rows = [
      np.zeros((self._num_rows, num_environments, *np.shape(x)), np.asarray(x).dtype)
      for x in tree.flatten(self._row_structure)
    ]
    # Unroll k of a run starts at row k T - overlap of the run. The states before those rows
    # are stored here, at index k modulo the number of unrolls that can be unfinished.
    self._num_kept = overlap // unroll_length + 2
    self._kept_states = tree.map_structure(
      lambda x: np.zeros((num_environments, self._num_kept, *np.shape(x)), np.asarray(x).dtype),
      state_example,
    )
    self._is_recurrent = bool(tree.flatten(state_example))
    self._row_number = np.zeros(num_environments, np.int64)  # of the run
    self._unroll_number = np.zeros(num_environments, np.int64)  # of the run
    # As after `reset`, which would make the memory of environments resident that never come here.
    self._index = np.full(num_environments, overlap, np.int64)
    self._unflatten(self._rows)[0].step_type[:overlap] = types.LAST

  def reset(self, env_ids: np.ndarray) -> None:
    """Drops the partial unrolls of these environments; their next row starts a run."""
    self._index[env_ids] = self.overlap
    for buffer in self._rows:
      buffer[: self.overlap, env_ids] = 0
    step_type = self._unflatten(self._rows)[0].step_type
    step_type[: self.overlap, env_ids] = types.LAST
    self._row_number[env_ids] = 0
    self._unroll_number[env_ids] = 0
    # Unrolls that start in the padding begin with zeros, and FIRST resets the state after it.
    tree.map_structure(lambda kept: kept.__setitem__(env_ids, 0), self._kept_states)

  def append(
    self,
    env_ids: np.ndarray,
    inputs: types.AgentInput,
    outputs: types.AgentOutput,
    entering_state: types.Nest,
    policy_version: int,
  ) -> types.Unroll | None:
    """Adds one row of each environment, leaves `[N, ...]`; env_ids `[N]` unique.

    entering_state: the state before the row, before any reset at FIRST.
    Returns the unrolls that these rows finished, leaves `[K, L, ...]`, or None. The leaves are
    views of arrays `[L, K, ...]`, whose memory may become that of tensors.
    """
    index = self._index[env_ids]
    versions = np.broadcast_to(np.int64(policy_version), env_ids.shape)
    place = _place(index, env_ids)
    for buffer, rows in zip(self._rows, tree.flatten((inputs, outputs, versions))):
      buffer[place] = rows
    if self._is_recurrent:
      self._keep_states(env_ids, entering_state)
    self._row_number[env_ids] += 1
    index = index + 1
    self._index[env_ids] = index
    finished = env_ids[index == self._num_rows]
    return self._take(finished) if finished.size else None

  def is_last_row(self, env_ids: np.ndarray) -> np.ndarray:
    """Returns `[N]` bool, whether the next row of each of these environments finishes an unroll."""
    return self._index[env_ids] == self._num_rows - 1

  def rewind(self, env_ids: np.ndarray) -> None:
    """Makes the next row replace the last one, which remains the end of the unroll it finished."""
    self._index[env_ids] -= 1
    self._row_number[env_ids] -= 1

  def _keep_states(self, env_ids: np.ndarray, entering_state: types.Nest) -> None:
    """Stores the state before this row where the row starts an unroll."""
    unroll_number, row = np.divmod(self._row_number[env_ids] + self.overlap, self._unroll_length)
    starts = row == 0
    if starts.any():
      place = (env_ids[starts], unroll_number[starts] % self._num_kept)
      tree.map_structure(
        lambda kept, state: kept.__setitem__(place, state[starts]),
        self._kept_states,
        entering_state,
      )

  def _take(self, env_ids: np.ndarray) -> types.Unroll:
    finished = [_taken(buffer, env_ids) for buffer in self._rows]
    place = (env_ids, self._unroll_number[env_ids] % self._num_kept)
    initial_state = tree.map_structure(lambda kept: kept[place], self._kept_states)
    shared = self.overlap + 1
    for buffer, rows in zip(self._rows, finished):
      buffer[:shared, env_ids] = rows[-shared:]
    self._unroll_number[env_ids] += 1
    self._index[env_ids] = shared
    inputs, outputs, policy_version = self._unflatten([rows.swapaxes(0, 1) for rows in finished])
    return types.Unroll(initial_state, inputs, outputs, policy_version)

  def _unflatten(self, leaves: list[np.ndarray]) -> types.Nest:
    return tree.unflatten_as(self._row_structure, leaves)


def _taken(buffer: np.ndarray, env_ids: np.ndarray) -> np.ndarray:
  """Returns the columns `[L, K, ...]` of these environments as an array of their own."""
  num_rows, _, *row = buffer.shape
  taken = aligned.empty((num_rows, env_ids.size, *row), buffer.dtype)
  # Any mode but the default one writes to `out` without a temporary array.
  return np.take(buffer, env_ids, axis=1, out=taken, mode='clip')


def _place(index: np.ndarray, env_ids: np.ndarray) -> tuple[np.ndarray | int, np.ndarray | slice]:
  """Returns `(index, env_ids)`, as a number and a slice if possible, which is three times as fast.

  It nearly always is, because an actor's environments have consecutive ids and step together.
  """
  first, size = int(env_ids[0]), env_ids.size
  if (index == index[0]).all() and (env_ids == np.arange(first, first + size)).all():
    return int(index[0]), slice(first, first + size)
  return index, env_ids


def num_steps(unrolls: types.Unroll, overlap: int) -> int:
  """Counts agent steps in unrolls: transitions of the loss part that do not start at a LAST row."""
  return int(np.count_nonzero(unrolls.inputs.step_type[:, overlap:-1] != types.LAST))
