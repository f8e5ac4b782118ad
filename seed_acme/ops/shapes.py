"""Shape checks that name the argument and its expected shape; merging of time and batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def as_float(x: Any) -> tf.Tensor:
  """Casts any shape to float32, the only precision of the ops."""
  return tf.cast(x, tf.float32)


def check_rank(name: str, x: tf.Tensor, rank: int) -> None:
  """Raises ValueError unless `x` has `rank` axes (an unknown rank passes)."""
  if x.shape.rank not in (None, rank):
    raise ValueError(f'{name} has shape {x.shape}, but {rank} axes are needed')


def check_transitions(values: tf.Tensor, **transitions: tf.Tensor) -> None:
  """Raises ValueError unless values are `[T+1, B]` and all others `[T, B]`.

  Without this, a `[T, 1]` or `[T]` argument would broadcast to a plausible but wrong number.
  """
  check_rank('values', values, 2)
  rows, batch_size = values.shape.as_list()
  wanted = tf.TensorShape([None if rows is None else rows - 1, batch_size])
  for name, x in transitions.items():
    check_rank(name, x, 2)
    if not wanted.is_compatible_with(x.shape):
      raise ValueError(
        f'{name} has shape {x.shape}, but {wanted} is needed: one row less than values '
        f'{values.shape}, whose last row only bootstraps'
      )


def check_params(params: tf.Tensor, num_params: int, other_params: tf.Tensor | None = None) -> None:
  """Raises ValueError unless params are `[..., num_params]`, and other_params of the same shape."""
  if params.shape.rank == 0 or not params.shape[-1:].is_compatible_with([num_params]):
    raise ValueError(f'params have shape {params.shape}, but [..., {num_params}] is needed')
  if other_params is not None and not params.shape.is_compatible_with(other_params.shape):
    raise ValueError(
      f'params have shape {params.shape}, but other_params have {other_params.shape}'
    )


def check_event(name: str, x: tf.Tensor, params: tf.Tensor, event_shape: Sequence[int]) -> None:
  """Raises ValueError unless `x` is `[..., *event_shape]` where params are `[..., P]`."""
  wanted = params.shape[:-1].concatenate(list(event_shape))
  if not wanted.is_compatible_with(x.shape):
    raise ValueError(f'{name} have shape {x.shape}, but params {params.shape} need {wanted}')


def merge_rows(x: Any) -> tf.Tensor:
  """`[T, B, ...]` -> `[T*B, ...]`."""
  x = tf.convert_to_tensor(x)
  return tf.reshape(x, _joined([-1], _lengths(x, slice(2, None))))


def split_rows_like(x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """`[T*B, ...]` -> `[T, B, ...]`, T and B of `rows`."""
  split = tf.reshape(x, _joined(_lengths(rows, slice(2)), _lengths(x, slice(1, None))))
  return tf.ensure_shape(split, rows.shape[:2].concatenate(x.shape[1:]))


def _lengths(x: tf.Tensor, axes: slice) -> list[int] | tf.Tensor:
  """Returns lengths of axes, as numbers where all are known when traced: operations on shapes would
  take time in every update."""
  known = x.shape[axes]
  return known.as_list() if known.is_fully_defined() else tf.shape(x)[axes]


def _joined(first: list[int] | tf.Tensor, rest: list[int] | tf.Tensor) -> list[int] | tf.Tensor:
  if isinstance(first, list) and isinstance(rest, list):
    return first + rest
  return tf.concat([first, rest], axis=0)
