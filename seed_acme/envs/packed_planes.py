"""Packs up to 16 boolean planes of a picture into the bits of one uint16 per pixel.

Football's stacked mini map has 16 planes of 0 and 255. Packed, they take an eighth of the bytes on
the wire, in replay and in the learner. Networks unpack them (`networks.torsos.unpack_planes`).
A bounded uint16 observation `[height, width, 1]` whose name begins with `packed_` counts as packed,
and its greatest value tells how many planes there are. Without the name it would be a picture of
numbers, such as a camera's depth.
"""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

MOST_PLANES = 16
_MARK = 'packed_'


def spec(height: int, width: int, num_planes: int, name: str) -> dm_specs.BoundedArray:
  """Returns the specification of `num_planes` packed planes. Its name is `packed_` and `name`."""
  if not 1 <= num_planes <= MOST_PLANES:
    raise ValueError(f'{num_planes} planes: expected 1 ... {MOST_PLANES}')
  return dm_specs.BoundedArray(
    (height, width, 1), np.uint16, 0, (1 << num_planes) - 1, _MARK + name
  )


def num_planes(observation: dm_specs.Array) -> int:
  """Returns how many planes a packed observation holds; 0 for any other kind of array."""
  is_packed = (
    isinstance(observation, dm_specs.BoundedArray)
    and (observation.name or '').startswith(_MARK)
    and observation.dtype == np.uint16
    and len(observation.shape) == 3
    and observation.shape[-1] == 1
  )
  return int(np.max(observation.maximum)).bit_length() if is_packed else 0


def pack(planes: np.ndarray) -> np.ndarray:
  """Packs `[..., P]`, where anything but 0 is set, to `[..., 1]` uint16; plane i is bit i."""
  count = planes.shape[-1]
  if not 1 <= count <= MOST_PLANES:
    raise ValueError(f'{count} planes: expected 1 ... {MOST_PLANES}')
  bits = (planes != 0).astype(np.uint16) << np.arange(count, dtype=np.uint16)
  return np.bitwise_or.reduce(bits, axis=-1, keepdims=True)


def unpack(packed: np.ndarray, count: int) -> np.ndarray:
  """Unpacks `[..., 1]` uint16 to `[..., count]` uint8, 0 or 255."""
  bits = packed >> np.arange(count, dtype=np.uint16) & np.uint16(1)
  return (bits * 255).astype(np.uint8)
