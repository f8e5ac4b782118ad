"""Checkpoints for tests, and saving that is killed half-way."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer

ARRAYS = {
  'network/core/w:0': np.arange(6, dtype=np.float32).reshape(2, 3),
  'optimizer/000/t:0': np.array(7, np.int64),
  'empty': np.zeros((0, 3), np.float32),
}
META = {'counts': {'agent_steps': 10, 'wall_s': 1.5}, 'resumptions': 2}


def save(folder, updates, arrays=None, meta=None, keep=3):
  return checkpoint_writer.save(
    folder, updates, ARRAYS if arrays is None else arrays, META if meta is None else meta, keep
  )


def names(folder):
  return sorted(path.name for path in folder.iterdir())


def error(path):
  with pytest.raises((checkpoint.Damaged, types.UserError)) as error:
    checkpoint.load(path)
  assert len(str(error.value).splitlines()) <= 4
  return str(error.value)


class Killed(BaseException):
  """Simulates the end of the process."""


def killing(module, name, wanted, calls):
  """Wraps a function so that the `wanted`-th of all calls listed in `calls` is killed."""
  real = getattr(module, name)

  def call(*args, **kwargs):
    calls.append(name)
    if len(calls) == wanted:
      raise Killed
    return real(*args, **kwargs)

  return call
