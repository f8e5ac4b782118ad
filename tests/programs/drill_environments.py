"""A user's environments for the drills, copied into the working folder of a run."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import dm_env
from dm_env import specs
import numpy as np

from seed_acme.envs import catch

_WORKING_FOLDER = os.path.dirname(os.path.abspath(__file__))
PID_SCALE = 2.0**-22  # a process id times this is small and exact in float32


class _Wrapped:
  """Catch with a hook on its time steps."""

  def __init__(self, seed, num_environments):
    self._catch = catch.Catch(num_environments, seed)
    self.num_environments = num_environments
    self.spec = self._catch.spec
    self.num_steps = 0

  def reset(self):
    return self._changed(self._catch.reset())

  def step(self, actions):
    self.num_steps += 1
    return self._changed(self._catch.step(actions))

  def close(self):
    self._catch.close()

  def _changed(self, timestep):
    return timestep


class Marked(_Wrapped):
  """Catch whose last observation number identifies the process that made it.

  It starts a program that inherits all open files, and writes its process id into a file like
  `report` with the suffix `.programs`. When there is a
  file like `report` with the suffix `.nan`, its rewards become NaN.
  """

  def __init__(self, seed, num_environments, report=''):
    super().__init__(seed, num_environments)
    board = self.spec.observation
    self.spec = dataclasses.replace(
      self.spec,
      observation=specs.Array((board.shape[0] + 1,), np.float32, name='board_and_process'),
    )
    self._report = report
    self._spoils = os.path.splitext(report)[0] + '.nan'
    variables = {name: value for name, value in os.environ.items() if name != 'SEED_ACME_NODE'}
    self._program = subprocess.Popen(['sleep', '600'], close_fds=False, env=variables)
    if report:
      with open(os.path.splitext(report)[0] + '.programs', 'a') as file:
        file.write(f'{self._program.pid}\n')

  def _changed(self, timestep):
    if self._report and self.num_steps == 100:
      with open(self._report, 'w') as file:
        json.dump(sorted(sys.modules), file)
    mark = np.full((self.num_environments, 1), os.getpid() * PID_SCALE, np.float32)
    observation = np.concatenate([timestep.observation, mark], axis=1)
    reward = timestep.reward
    if os.path.exists(self._spoils):
      reward = np.full_like(reward, np.nan)
    return timestep._replace(observation=observation, reward=reward)


class Meddling(_Wrapped):
  """Catch that changes the state of its process: signals, working folder, random numbers."""

  def __init__(self, seed, num_environments, makings=''):
    """makings: a file that gets a line for each call: the kind of node and the environments."""
    super().__init__(seed, num_environments)
    with open(os.path.join(_WORKING_FOLDER, makings), 'a') as file:
      file.write(f'{os.environ["SEED_ACME_NODE"]} {num_environments}\n')
    if threading.current_thread() is threading.main_thread():
      for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o777)
    np.seterr(all='raise')

  def _changed(self, timestep):
    os.chdir('/' if self.num_steps % 2 else os.path.expanduser('~'))
    np.random.seed(0)
    random.seed(0)
    return timestep


class Raising(_Wrapped):
  """Catch that raises at a step, or only while there is a file `only_with`."""

  def __init__(self, seed, num_environments, at_step=30, only_with=''):
    super().__init__(seed, num_environments)
    self._at_step = at_step
    self._only_with = os.path.join(_WORKING_FOLDER, only_with)

  def _changed(self, timestep):
    if self.num_steps == self._at_step and os.path.exists(self._only_with):
      raise RuntimeError('the ball fell off the board')
    return timestep


class Leaving(_Wrapped):
  """Catch that leaves a program running."""

  def __init__(self, seed, num_environments):
    super().__init__(seed, num_environments)
    subprocess.Popen(['sleep', '600'])


class Unclosable(_Wrapped):
  """Catch that raises when it is closed."""

  def close(self):
    raise RuntimeError('the window is gone')


class Exploding(_Wrapped):
  """Catch whose observations become so large that the network overflows."""

  def __init__(self, seed, num_environments, when_there_is=''):
    """when_there_is: a file; '' = at step 60."""
    super().__init__(seed, num_environments)
    self._file = when_there_is

  def _changed(self, timestep):
    if not (os.path.exists(self._file) if self._file else self.num_steps >= 60):
      return timestep
    return timestep._replace(observation=np.full_like(timestep.observation, 3e38))


class Hanging(_Wrapped):
  """Catch that is slow at step 10, and once hangs at step 30, ignoring all signals.

  It starts a program, and is killed before it can end it.
  """

  def __init__(self, seed, num_environments, slow_s=1.5, mark=''):
    """mark: a file written when it hangs, with the number of its program."""
    super().__init__(seed, num_environments)
    self._slow_s = slow_s
    self._mark = mark

  def step(self, actions):
    if self.num_steps == 10:
      time.sleep(self._slow_s)
    if self.num_steps == 30 and self._mark and not os.path.exists(self._mark):
      with open(self._mark, 'w') as file:
        file.write(str(subprocess.Popen(['sleep', '600']).pid))
      self._hang()
    return super().step(actions)

  def _hang(self):
    while True:
      try:
        time.sleep(1000)
      except Exception:
        continue


def never_made(seed, num_environments):
  """Hangs in the workers of actors, and nowhere else."""
  if os.environ.get('SEED_ACME_NODE') == 'actor':
    time.sleep(1000)
  return _Wrapped(seed, num_environments)


class WrongReward:
  """A single environment, a corridor of one observation, whose reward becomes invalid."""

  def __init__(self, seed, reward='nan'):
    """reward: as JSON."""
    self._num_steps, self._reward = 0, json.loads(reward.replace('nan', 'NaN'))

  def observation_spec(self):
    return specs.Array((1,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)

  def reset(self):
    return dm_env.restart(np.zeros(1, np.float32))

  def step(self, action):
    self._num_steps += 1
    return dm_env.transition(self._reward if self._num_steps > 50 else 0.0, np.zeros(1, np.float32))

  def close(self):
    pass
