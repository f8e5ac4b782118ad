"""Specifications of choices: numbers that name something and have no order and no distance."""

from __future__ import annotations

import math
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import numpy.typing as npt

# One-hot rows of this size, one per row of a batch, are still small compared with the first layer.
MOST_ONE_HOT_VALUES = 10_000


class ChoicesArray(dm_specs.BoundedArray):
  """Independent choices, each 0 ... n - 1 with its own n: a `DiscreteArray` of any shape.

  It is needed because a plain integer `BoundedArray` may also be an image or a counter.
  """

  def __init__(self, num_values: npt.ArrayLike, dtype: Any = np.int32, name: str | None = None):
    """num_values: n of each element, in the shape of the array."""
    sizes = np.array(num_values, np.int64)
    if not (sizes > 0).all():
      raise ValueError(f'num_values ({sizes.tolist()}) must be >= 1')
    super().__init__(sizes.shape, dtype, 0, sizes - 1, name)
    sizes.setflags(write=False)
    self._num_values = sizes

  @property
  def num_values(self) -> np.ndarray:
    """n of each element, int64 in the shape of the array."""
    return self._num_values

  def __repr__(self) -> str:
    return (
      f'ChoicesArray(num_values={self._num_values.tolist()}, dtype={self.dtype!r}, '
      f'name={self.name!r})'
    )

  def __reduce__(self) -> tuple[Any, ...]:
    return ChoicesArray, (self._num_values, self.dtype, self.name)


def num_values(spec: dm_specs.Array) -> np.ndarray | None:
  """Returns `[K]`, the number of values of each of an array's K choices; None without choices."""
  if isinstance(spec, (dm_specs.DiscreteArray, ChoicesArray)) and math.prod(spec.shape):
    return np.asarray(spec.num_values, np.int64).reshape(-1)
  return None


def as_choices(spec: dm_specs.Array) -> dm_specs.Array:
  """Converts the specification of an action's array: integers become choices, 0 ... maximum."""
  if isinstance(spec, dm_specs.DiscreteArray) or not np.issubdtype(spec.dtype, np.integer):
    return spec
  assert isinstance(spec, dm_specs.BoundedArray)
  # In int64, because 255 + 1 is 0 in uint8.
  sizes = np.broadcast_to(spec.maximum, spec.shape).astype(np.int64) + 1
  return ChoicesArray(sizes, spec.dtype, spec.name)
