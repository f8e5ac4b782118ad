"""Specifications of floats as agents see them: in float32, without bounds that bound nothing."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

# Old environments, and envpool, give the limits of the type where there is no bound.
_NO_BOUND = 1e30


def without_limits(spec: dm_specs.Array) -> dm_specs.Array:
  """Returns an unbounded `Array` if a bound of floats is merely the limit of the type."""
  is_float = isinstance(spec, dm_specs.BoundedArray) and np.issubdtype(spec.dtype, np.floating)
  if is_float and any((np.abs(bound) >= _NO_BOUND).any() for bound in (spec.minimum, spec.maximum)):
    return dm_specs.Array(spec.shape, spec.dtype, spec.name)
  return spec


def narrow_spec(spec: dm_specs.Array) -> dm_specs.Array:
  """Returns the specification with float32 in place of float64."""
  if spec.dtype != np.float64:
    return spec
  if isinstance(spec, dm_specs.BoundedArray):
    with np.errstate(over='ignore'):  # a bound that float32 cannot hold becomes infinite
      return spec.replace(
        dtype=np.float32,
        minimum=spec.minimum.astype(np.float32),
        maximum=spec.maximum.astype(np.float32),
      )
  return spec.replace(dtype=np.float32)


def narrow_inwards(spec: dm_specs.Array) -> dm_specs.Array:
  """Does `narrow_spec` for actions: values within the new bounds are also within the old ones.

  Where no float32 is within the old bounds, as with a locked joint, both become the nearest one.
  Bounds that are merely the limits of a type are left out.
  """
  spec = without_limits(spec)
  narrow = narrow_spec(spec)
  if narrow is spec or not isinstance(spec, dm_specs.BoundedArray):
    return narrow
  low, high = narrow.minimum, narrow.maximum
  low = np.where(low < spec.minimum, np.nextafter(low, np.float32(np.inf)), low)
  high = np.where(high > spec.maximum, np.nextafter(high, np.float32(-np.inf)), high)
  is_empty = low > high
  if is_empty.any():
    low, high = (np.where(is_empty, narrow.minimum, bound) for bound in (low, high))
  return narrow.replace(minimum=low, maximum=high)


def clip_bounds(spec: dm_specs.Array) -> tuple[np.ndarray, np.ndarray] | None:
  """Returns the bounds to which an action within those of `narrow_inwards` must be clipped, in the
  environment's dtype; None if it is within them anyway."""
  narrow = narrow_inwards(spec)
  if narrow is spec or not isinstance(narrow, dm_specs.BoundedArray):
    return None
  # In float64, to which numpy would not convert an array for the sake of a single number.
  low, high = narrow.minimum.astype(np.float64), narrow.maximum.astype(np.float64)
  is_within = (low >= spec.minimum).all() and (high <= spec.maximum).all()
  return None if is_within else (spec.minimum, spec.maximum)
