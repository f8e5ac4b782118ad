"""Shapes and dtypes of a Reverb item: U unrolls of L rows, batch-major."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types


def item_signature(unroll_example: types.Unroll, unrolls_per_item: int) -> types.Unroll:
  """TensorSpecs `[U, ...]` for every leaf of the example, named by its path."""
  return tree.map_structure_with_path(
    lambda path, x: tf.TensorSpec(
      (unrolls_per_item, *np.shape(x)), np.asarray(x).dtype, name='/'.join(map(str, path))
    ),
    unroll_example,
  )
