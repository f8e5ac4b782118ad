"""Rows of time and batch, `[T, B, ...]`, as one axis and back."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def merge(x: Any) -> tf.Tensor:
  """`[T, B, ...]` -> `[T*B, ...]`."""
  x = tf.convert_to_tensor(x)
  return tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0))


def split_like(x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """`[T*B, ...]` -> `[T, B, ...]`, T and B of `rows`."""
  split = tf.reshape(x, tf.concat([tf.shape(rows)[:2], tf.shape(x)[1:]], axis=0))
  return tf.ensure_shape(split, rows.shape[:2].concatenate(x.shape[1:]))
