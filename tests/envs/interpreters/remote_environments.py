"""Environments to be made by another interpreter's process."""

import os
import pathlib
import signal
import time

import dm_env
import numpy as np

from seed_acme import types
from tests import scripted_environments


def ending(seed, how='raises'):
  """Makes an environment that fails in its second step. how: in which way."""
  return _Ending(seed, how)


class _Ending(scripted_environments.TruncatingEnvironment):
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
      if self._how == 'hangs':
        time.sleep(1000)
      if self._how == 'fails':
        raise types.Failure('a disk is full')
      if self._how == 'is not finite':
        return dm_env.transition(np.nan, self.observation_spec().generate_value())
    return super().step(action)


def leaving(seed, path):
  """Makes an environment that creates a file when it is closed."""
  return _Leaving(seed, path)


class _Leaving(scripted_environments.TruncatingEnvironment):
  def __init__(self, seed, path):
    super().__init__(seed)
    self._path = pathlib.Path(path)

  def close(self):
    self._path.touch()


def drawn(seed):
  """Makes an environment that shows a screen."""
  return _Drawn(seed)


class _Drawn(scripted_environments.TruncatingEnvironment):
  def render(self):
    return np.full((4, 5, 3), 7, np.uint8)


def talking(seed):
  """Prints while it makes an environment, as many do."""
  print('welcome to the world')
  return scripted_environments.TruncatingEnvironment(seed)


def crashing(seed, folder, times):
  """Kills its process while making an environment, `times` times, recorded in `folder`."""
  crashes = pathlib.Path(folder)
  if len(list(crashes.iterdir())) < times:
    (crashes / str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)
  return scripted_environments.TruncatingEnvironment(seed)
