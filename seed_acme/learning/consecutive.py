"""Runs gradient steps one after the other within one graph."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


def for_each_row(step: Callable[..., tf.Tensor], *rows: tf.Tensor) -> tf.Tensor:
  """Calls `step` in a graph with the first row of each argument, then the second, and so on.

  Each step sees the variables as the previous one left them. Several steps run in one loop, whose
  body is traced and compiled once.

  Args:
    step: takes a row of each of `rows`; returns float32 of a fixed shape.
    rows: `[N, ...]`, N known when traced.

  Returns:
    `[N, ...]`, the results of the steps.
  """
  number = rows[0].shape[0]
  if number == 1:
    return step(*(one[0] for one in rows))[None]
  signature = [tf.TensorSpec((), tf.int32)]
  step_at = tf.function(
    lambda i: step(*(one[i] for one in rows)), input_signature=signature, autograph=False
  ).get_concrete_function()
  shape = (number, *step_at.output_shapes)
  index = tf.reshape(tf.range(number), (number, *(1 for _ in step_at.output_shapes)))
  _, returned = tf.while_loop(
    lambda i, _: i < number,
    lambda i, returned: (i + 1, tf.where(index == i, step_at(i), returned)),
    (0, tf.zeros(shape)),
    parallel_iterations=1,
  )
  return returned
