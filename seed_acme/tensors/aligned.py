"""Arrays whose memory can become that of tensors, so that nothing is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import ops

_ALIGNMENT = 64  # bytes; TensorFlow copies an array that is not aligned to it


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
  """Makes an array with any values."""
  num_bytes = int(np.prod(shape)) * dtype.itemsize
  memory = np.empty(num_bytes + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  return memory[start : start + num_bytes].view(dtype).reshape(shape)


def is_aligned(array: np.ndarray) -> bool:
  """Whether `to_tensor` need not copy the array."""
  return array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0


def to_tensor(array: Any) -> tf.Tensor:
  """Makes a tensor in host memory that may share the array's memory, so write to the array only
  when no tensor of it is in use.

  `tf.constant` would copy the array first, and look for a device, which costs five times as much as
  all the rest for a small array. TensorFlow itself never writes to memory that it shares.
  """
  context.context().ensure_initialized()
  return ops.EagerTensor(array, None, None)
