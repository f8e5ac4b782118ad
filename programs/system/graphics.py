"""The GPUs of this machine, and reasons why TensorFlow may not see one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import ctypes
import importlib.util
import os
import pathlib
import shutil
import subprocess
from typing import NamedTuple

# The libraries that TensorFlow 2.15 loads for a GPU: the driver, CUDA 12 and cuDNN 8.
LIBRARIES = (
  'libcuda.so.1',
  'libcudart.so.12',
  'libcublas.so.12',
  'libcufft.so.11',
  'libcurand.so.10',
  'libcusolver.so.11',
  'libcusparse.so.12',
  'libcudnn.so.8',
)
# Trains a convolution on each GPU, and prints a JSON list of them.
CODE = """
import json, tensorflow as tf
assert float(tf.reduce_sum(tf.ones([2, 2]) @ tf.ones([2, 2]))) == 8
found = [device.name for device in tf.config.list_physical_devices('GPU')]
error = ''
try:
  from seed_acme.parallel import devices
  devices.check_gpus(lambda text: None)
except Exception as failure:
  error = str(failure)
print(json.dumps([found, tf.test.is_built_with_cuda(), error]))
"""
_OF_THE_DRIVER = pathlib.Path('/proc/driver/nvidia/gpus')
_QUERY = ('nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader')
_QUERY_TIMEOUT_S = 30.0
_INSTALL = 'make setup CUDA=1'


class Unseen(NamedTuple):
  """The reason why TensorFlow does not see a GPU, and the fix."""

  reason: str
  fix: str


def is_there() -> bool:
  """Whether NVIDIA's driver has found a GPU, or its tools are installed."""
  found = _OF_THE_DRIVER.is_dir() and any(_OF_THE_DRIVER.iterdir())
  return found or shutil.which('nvidia-smi') is not None


def cards() -> list[str]:
  """Returns each GPU's name, driver version and memory from nvidia-smi; [] without it."""
  try:
    done = subprocess.run(
      _QUERY, capture_output=True, text=True, timeout=_QUERY_TIMEOUT_S, check=False
    )
  except (OSError, subprocess.TimeoutExpired):
    return []
  return [] if done.returncode else done.stdout.strip().splitlines()


def cache() -> str:
  """Describes the driver's cache of compiled kernels: its folder and size."""
  path = pathlib.Path(os.environ.get('CUDA_CACHE_PATH') or pathlib.Path.home() / '.nv/ComputeCache')
  held = sum(file.stat().st_size for file in path.rglob('*') if file.is_file())
  return f'kernels are kept in {path} ({held / 2**20:.0f} MiB)'


def why_unseen(is_built_with_cuda: bool, libraries: Sequence[str] = LIBRARIES) -> Unseen:
  """Returns why TensorFlow sees no GPU.

  is_built_with_cuda: whether the installed TensorFlow is.
  """
  if not is_built_with_cuda:
    return Unseen('this TensorFlow is built without CUDA (tensorflow-cpu)', _INSTALL)
  missing = [name for name in libraries if not _loads(name)]
  if missing == list(libraries[:1]):
    return Unseen(f'{missing[0]} cannot be loaded', 'install the driver, 525.60.13 or later')
  if missing:
    return Unseen(f'{", ".join(missing)} cannot be loaded', f'{_INSTALL}, and the driver')
  return Unseen(
    'all its libraries can be loaded',
    'look at CUDA_VISIBLE_DEVICES, `nvidia-smi`, and what TensorFlow says while it is imported',
  )


def _loads(library: str) -> bool:
  for name in (library, *_in_wheels(library)):
    try:
      ctypes.CDLL(name)
    except OSError:
      continue
    return True
  return False


def _in_wheels(library: str) -> Iterator[str]:
  """Yields the paths of a library in NVIDIA's wheels, which TensorFlow searches, too."""
  spec = importlib.util.find_spec('nvidia')
  for folder in (spec and spec.submodule_search_locations) or ():
    yield from map(str, pathlib.Path(folder).glob(f'*/lib/{library}'))
