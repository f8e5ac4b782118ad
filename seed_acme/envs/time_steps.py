"""Checks time steps against the environment's specification, with the same messages everywhere.

The actor checks what its environments return, and the server checks what actors send, because it
must not trust them. Whole batches are checked at once; single rows are examined only to name the
wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import functools
from typing import Any, NamedTuple

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import choices

_STEP_TYPES = ('FIRST', 'MID', 'LAST')
_FIRST = np.uint8(types.FIRST)
_KNOWN = bytes((types.FIRST, types.MID, types.LAST))
_ONE = np.float32(1).view(np.uint32)
_LARGEST = float(np.finfo(np.float32).max)
FIRST_WORDS = 'FIRST (at the start and after LAST)'
LATER_WORDS = 'MID or LAST (within an episode)'
NUMBER_WORDS = 'a finite scalar'  # in float32, as all rewards are stored
NUMBERS_WORDS = 'finite numbers'
DISCOUNT_WORDS = 'a number in [0, 1]'


class Fault(NamedTuple):
  """A wrong value. row: its row in the batch. is_finite: False if it is NaN, infinite or too large
  for float32, which may not happen again in the next episode."""

  row: int
  field: str
  expected: str
  found: str
  is_finite: bool = True

  def error(self, name: str, number: int | None = None) -> types.UserError:
    """Returns the error. name: the environments'. number: index of the wrong one; None = `row`."""
    kind = types.UserError if self.is_finite else types.NotFinite
    row = self.row if number is None else number
    return kind(
      f'environment {row} of {name}: {self.field}: expected {self.expected}, got {self.found}'
    )


class WrongValue(Exception):
  """A wrong value of one environment, found by an adapter that does not know the index."""

  def __init__(self, field: str, expected: str, found: str):
    super().__init__(f'{field}: expected {expected}, got {found}')
    self.fault = Fault(0, field, expected, found)


def leaf_fields(observation_spec: types.Nest) -> list[str]:
  """Returns a name for each array of an observation, such as `observation/camera`."""
  return [
    '/'.join(['observation', *map(str, path)])
    for path, _ in tree.flatten_with_path(observation_spec)
  ]


class _Wrong(NamedTuple):
  """A `Fault` whose field is not known yet."""

  row: int
  expected: str
  found: str
  is_finite: bool


class TimeStepCheck:
  """Finds wrong values in time steps `[N, ...]` whose arrays have the right shapes and dtypes."""

  def __init__(self, observation_spec: types.Nest):
    self._leaves: list[tuple[int, Callable[[np.ndarray], _Wrong | None]]] = []
    self._fields = leaf_fields(observation_spec)
    for number, spec in enumerate(tree.flatten(observation_spec)):
      if spec.dtype.kind == 'f':
        self._leaves.append((number, _wrong_float))
      elif (sizes := choices.num_values(spec)) is not None:
        self._leaves.append((number, functools.partial(_wrong_choice, _greatest(spec, sizes))))
    self._is_array = isinstance(observation_spec, dm_specs.Array)

  def fault(
    self,
    timestep: types.VectorTimeStep,
    has_ended: np.ndarray,
    leaves: Sequence[np.ndarray] | None = None,
  ) -> Fault | None:
    """Returns the first wrong value; None if all are right.

    has_ended: `[N]` bool, whether the row must be FIRST because it is the first or follows LAST.
    leaves: those of the observation, if the caller has them already.
    """
    step_type, discount = timestep.step_type, timestep.discount
    is_first = step_type == _FIRST
    if is_first.tobytes() != has_ended.tobytes() or step_type.tobytes().translate(None, _KNOWN):
      return _wrong_step_type(step_type, has_ended)
    # Read as integers, floats from 0 to 1 are in order and all others are greater. Of these, -0 is
    # valid, too.
    if not _all(discount.view(np.uint32) <= _ONE) and not _all((discount >= 0) & (discount <= 1)):
      return _wrong_discount(discount)
    for field, values in (('reward', timestep.reward), ('score', timestep.score)):
      if not _all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        return Fault(row, field, NUMBER_WORDS, repr(float(values[row])), is_finite=False)
    if not self._leaves:
      return None
    if leaves is None:
      leaves = [timestep.observation] if self._is_array else tree.flatten(timestep.observation)
    for number, find in self._leaves:
      if (wrong := find(leaves[number])) is not None:
        return Fault(wrong.row, self._fields[number], wrong.expected, wrong.found, wrong.is_finite)
    return None


def _all(is_right: np.ndarray) -> bool:
  """Computes `is_right.all()` in a third of its time, for the rows of a batch."""
  return b'\0' not in is_right.tobytes()


def _wrong_step_type(step_type: np.ndarray, has_ended: np.ndarray) -> Fault:
  wrong = ((step_type == types.FIRST) != has_ended) | (step_type > types.LAST)
  row = int(np.argmax(wrong))
  return Fault(
    row,
    'step_type',
    FIRST_WORDS if has_ended[row] else LATER_WORDS,
    describe_step_type(step_type[row]),
  )


def describe_step_type(step_type: Any) -> str:
  """Names a step type, such as `LAST`, or shows the value if it is not one."""
  try:
    return _STEP_TYPES[int(step_type)] if int(step_type) >= 0 else str(step_type)
  except (IndexError, OverflowError, TypeError, ValueError):
    return repr(step_type)


def _wrong_discount(discount: np.ndarray) -> Fault:
  row = int(np.argmin((discount >= 0) & (discount <= 1)))
  is_finite = bool(np.isfinite(discount[row]))
  words = DISCOUNT_WORDS if is_finite else NUMBER_WORDS
  return Fault(row, 'discount', words, repr(float(discount[row])), is_finite)


def _wrong_float(values: np.ndarray) -> _Wrong | None:
  if values.dtype.itemsize <= 4:
    is_right = np.isfinite(values)
  else:
    is_right = np.abs(values) <= _LARGEST  # false for NaN
  if _all(is_right):
    return None
  place = _place(~is_right)
  found = describe_number(values[place[0]], place[1:])
  return _Wrong(place[0], NUMBERS_WORDS, found, is_finite=False)


def _greatest(spec: dm_specs.Array, sizes: np.ndarray) -> np.ndarray:
  """Returns the greatest value of each choice, in the shape of `spec` and as an unsigned integer.

  A single comparison then also finds values below 0, which as unsigned integers exceed all others.
  """
  unsigned = np.dtype(f'u{spec.dtype.itemsize}')
  greatest = np.minimum(sizes - 1, min(np.iinfo(spec.dtype).max, np.iinfo(np.int64).max))
  return greatest.astype(unsigned).reshape(spec.shape)


def _wrong_choice(greatest: np.ndarray, values: np.ndarray) -> _Wrong | None:
  is_right = values.view(greatest.dtype) <= greatest
  if _all(is_right):
    return None
  place = _place(~is_right)
  found = describe_number(values[place[0]], place[1:])
  return _Wrong(place[0], f'0 ... {greatest[place[1:]]}', found, is_finite=True)


def _place(is_wrong: np.ndarray) -> tuple[int, ...]:
  """Returns the indices of the first wrong value, its row first."""
  return tuple(map(int, np.argwhere(is_wrong)[0]))


def describe_number(values: np.ndarray, place: Sequence[int]) -> str:
  """Describes a number of one row, such as `nan at [3, 4]`."""
  where = f' at {list(place)}' if place else ''
  return f'{values[tuple(place)].item()!r}{where}'


def shown(value: Any) -> str:
  """Formats a value of any type in at most 100 characters."""
  text = ' '.join(repr(value).split())
  return text if len(text) <= 100 else f'{text[:97]}...'
