"""Shape checks that name the argument and the shape it should have had."""
from __future__ import annotations

from typing import Any

import tensorflow as tf


def as_float(x: Any) -> tf.Tensor:
  """Any shape, as float32: the one precision of the ops."""
  return tf.cast(x, tf.float32)


def check_rank(name: str, x: tf.Tensor, rank: int) -> None:
  """Raises ValueError unless `x` has `rank` axes (an unknown rank passes)."""
  if x.shape.rank not in (None, rank):
    raise ValueError(f'{name} has shape {x.shape}, but {rank} axes are needed')


def check_transitions(values: tf.Tensor, **transitions: tf.Tensor) -> None:
  """Raises ValueError unless values are `[T+1, B]` and all others `[T, B]`.

  Without this a `[T, 1]` or `[T]` argument would broadcast into a plausible wrong number.
  """
  check_rank('values', values, 2)
  rows, batch_size = values.shape.as_list()
  wanted = tf.TensorShape([None if rows is None else rows - 1, batch_size])
  for name, x in transitions.items():
    check_rank(name, x, 2)
    if not wanted.is_compatible_with(x.shape):
      raise ValueError(
          f'{name} has shape {x.shape}, but {wanted} is needed: one row less than values '
          f'{values.shape}, whose last row only bootstraps')
