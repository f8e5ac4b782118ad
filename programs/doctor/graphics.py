"""Why TensorFlow does not see a GPU that is there."""

from __future__ import annotations

from collections.abc import Sequence
import ctypes
import pathlib
import shutil
from typing import NamedTuple

# What TensorFlow 2.8 loads for a GPU: the driver, CUDA 11 and cuDNN 8.
LIBRARIES = (
  'libcuda.so.1',
  'libcudart.so.11.0',
  'libcublas.so.11',
  'libcufft.so.10',
  'libcurand.so.10',
  'libcusolver.so.11',
  'libcusparse.so.11',
  'libcudnn.so.8',
)
_OF_THE_DRIVER = pathlib.Path('/proc/driver/nvidia/gpus')


class Unseen(NamedTuple):
  """Why, and what to do about it."""

  reason: str
  fix: str


def is_there() -> bool:
  """Whether a driver of NVIDIA's has found a GPU, or its tools are installed."""
  found = _OF_THE_DRIVER.is_dir() and any(_OF_THE_DRIVER.iterdir())
  return found or shutil.which('nvidia-smi') is not None


def why_unseen(is_built_with_cuda: bool, libraries: Sequence[str] = LIBRARIES) -> Unseen:
  """is_built_with_cuda: of the TensorFlow that is installed, which sees no GPU."""
  if not is_built_with_cuda:
    return Unseen(
      'this TensorFlow is built without CUDA (tensorflow-cpu)',
      'build Dockerfile.gpu, which installs tensorflow instead, with CUDA 11.2 and cuDNN 8.1',
    )
  missing = [name for name in libraries if not _loads(name)]
  if missing:
    return Unseen(
      f'{", ".join(missing)} cannot be loaded',
      'install the driver, CUDA 11.2 and cuDNN 8.1, and name their folders in LD_LIBRARY_PATH',
    )
  return Unseen(
    'all its libraries can be loaded',
    'look at CUDA_VISIBLE_DEVICES, `nvidia-smi`, and what TensorFlow says while it is imported',
  )


def _loads(library: str) -> bool:
  try:
    ctypes.CDLL(library)
  except OSError:
    return False
  return True
