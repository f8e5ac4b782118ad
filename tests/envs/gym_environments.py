"""Scripted environments with the interfaces of Gym and Gymnasium."""

import numpy as np
import pytest

from seed_acme.envs import gym_adapter

SEED = 77


def import_package(package):
  if package == 'gym':
    # Suppresses gym's notice on stderr, as the adapter does before it imports gym.
    pytest.importorskip('gym_notices.notices').notices.clear()
  return pytest.importorskip(package)


class OldStyle:
  """The interface before gym 0.26: reset returns the observation, and step four values."""

  def __init__(self, spaces, episode_length=3, is_truncated=None):
    self.observation_space = spaces.Box(-1000, 1000, (2,), np.float32)
    self.action_space = spaces.Discrete(2)
    self._episode_length, self._is_truncated = episode_length, is_truncated
    self._random = np.random.default_rng(0)
    self._row = 0
    self.seeds = []

  def seed(self, seed):
    self.seeds.append(seed)
    self._random = np.random.default_rng(seed)

  def reset(self):
    self._row = 0
    self._noise = self._random.normal()
    return np.array([0, self._noise])  # float64, as many old environments

  def step(self, action):
    self._row += 1
    done = self._row == self._episode_length
    info = (
      {} if self._is_truncated is None or not done else {'TimeLimit.truncated': self._is_truncated}
    )
    return np.array([self._row, self._noise]), 1, done, info

  def close(self):
    pass


class Scripted:
  """The interface since gym 0.26, with given spaces, observations and endings."""

  def __init__(self, observation_space, action_space, observation, endings=((False, False),)):
    self.observation_space, self.action_space = observation_space, action_space
    self.observation, self._endings = observation, list(endings)
    self.actions, self.resets, self.is_closed = [], [], False

  def reset(self, *, seed=None, options=None):
    self.resets.append(seed)
    return self.observation, {}

  def step(self, action):
    self.actions.append(action)
    return (self.observation, 2.0, *self._endings[len(self.actions) - 1], {})

  def close(self):
    self.is_closed = True


def adapt(*args, **kwargs):
  inner = Scripted(*args, **kwargs)
  return gym_adapter.GymEnvironment(inner, SEED, 'scripted'), inner
