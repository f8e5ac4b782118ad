"""Divisors of uint8 observations, applied before a network sees them. Imports no TensorFlow."""

from __future__ import annotations

from typing import Any, Union

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types

Divisor = Union[float, np.ndarray]
BYTE = 255.0  # the greatest uint8


def divisors(byte_scale: str, observation_spec: types.Nest) -> list[Divisor]:
  """Returns each array's divisor of bytes: a number, or one for each of its numbers `[K]`. Arrays
  of other types have one, too, which is not used.

  byte_scale: see `NetworkConfig.byte_scale`.
  """
  return [
    _bound(leaf) if byte_scale == 'bound' else float(byte_scale)
    for leaf in tree.flatten(observation_spec)
  ]


def largest(divisor: Divisor) -> float:
  """Returns one divisor for a whole array, so that its numbers are between 0 and 1."""
  return float(np.max(divisor))


def _bound(leaf: Any) -> Divisor:
  if not isinstance(leaf, dm_specs.BoundedArray) or leaf.dtype != np.uint8:
    return BYTE
  # A number that is always 0 is divided by 1.
  bounds = np.maximum(np.broadcast_to(leaf.maximum, leaf.shape), 1).astype(np.float64).reshape(-1)
  if not bounds.size or (bounds == bounds[0]).all():
    return float(bounds[0]) if bounds.size else BYTE
  return bounds
