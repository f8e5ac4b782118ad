"""Environments for a process of another interpreter to make."""

import os
import pathlib
import signal
import time

import numpy as np

from seed_acme import types
from seed_acme.testing import environments


def ending(seed, how='raises'):
  """Its second step does what it is told."""
  return _Ending(seed, how)


class _Ending(environments.TruncatingEnvironment):
  def __init__(self, seed, how):
    super().__init__(seed)
    self._how = how
    self._steps = 0
    if how == 'hangs when made':
      time.sleep(1000)

  def step(self, action):
    self._steps += 1
    if self._steps == 2:
      if self._how == 'raises':
        raise ZeroDivisionError('the floor is missing')
      if self._how == 'dies':
        os.kill(os.getpid(), signal.SIGKILL)
      if self._how == 'fails':
        raise types.Failure('a disk is full')
    return super().step(action)


def drawn(seed):
  """Shows a screen."""
  return _Drawn(seed)


class _Drawn(environments.TruncatingEnvironment):
  def render(self):
    return np.full((4, 5, 3), 7, np.uint8)


def talking(seed):
  """Prints, as environments like to."""
  print('welcome to the world')
  return environments.TruncatingEnvironment(seed)


def crashing(seed, folder, times):
  """Ends its process while it is made, so many times; a file in `folder` stands for each."""
  crashes = pathlib.Path(folder)
  if len(list(crashes.iterdir())) < times:
    (crashes / str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)
  return environments.TruncatingEnvironment(seed)
