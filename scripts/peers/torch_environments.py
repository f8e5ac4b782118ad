"""Environments for `torch_ppo.py`, all with one interface: `reset()` and `step(actions)`.

`step` returns observations, rewards `[E]` and is_done `[E]`. With `has_reset_steps`, the step after
the end of an episode is a no-op that resets, and is not counted.
"""

from __future__ import annotations

from typing import Any

import catch_boards
import envpool
import gymnasium
import numpy as np

Step = tuple[np.ndarray, np.ndarray, np.ndarray]


class OwnCatch:
  """The boards of seed_acme."""

  has_reset_steps = False

  def __init__(self, num_environments: int):
    self._boards = catch_boards.CatchBoards(num_environments, seed=1)

  def reset(self) -> np.ndarray:
    return self._boards.reset()

  def step(self, actions: np.ndarray) -> Step:
    observation, reward, is_done, _ = self._boards.step(actions)
    return observation, reward, is_done


class Envpool:
  """envpool's own Catch, Atari and MuJoCo."""

  has_reset_steps = True

  def __init__(self, level: str, num_environments: int, num_threads: int, **settings: Any):
    self._pool = envpool.make(
      level,
      env_type='gymnasium',
      num_envs=num_environments,
      num_threads=num_threads,
      seed=1,
      **settings,
    )
    self._num_environments = num_environments
    self._is_flat = level.startswith('Catch')

  def reset(self) -> np.ndarray:
    return self._observation(self._pool.reset()[0])

  def step(self, actions: np.ndarray) -> Step:
    observation, reward, terminated, truncated, _ = self._pool.step(actions)
    return self._observation(observation), reward, terminated | truncated

  def _observation(self, observation: np.ndarray) -> np.ndarray:
    if self._is_flat:
      observation = observation.reshape(self._num_environments, -1)
    if observation.dtype == np.float64:
      observation = observation.astype(np.float32)
    return observation


class GymnasiumCheetah:
  """Gymnasium's vector environment; it resets within the step that ends an episode."""

  has_reset_steps = False

  def __init__(self, num_environments: int):
    make = lambda: gymnasium.wrappers.ClipAction(gymnasium.make('HalfCheetah-v4'))
    self._environments = gymnasium.vector.SyncVectorEnv([make] * num_environments)

  def reset(self) -> np.ndarray:
    return self._environments.reset(seed=1)[0].astype(np.float32)

  def step(self, actions: np.ndarray) -> Step:
    observation, reward, terminated, truncated, _ = self._environments.step(actions)
    return observation.astype(np.float32), reward, terminated | truncated


class Normalized:
  """A wrapper that divides observations and rewards by running deviations and clips them to 10."""

  def __init__(self, environments: Any, discount: float):
    self._environments = environments
    self.has_reset_steps = environments.has_reset_steps
    self._discount = discount
    self._observations, self._returns = _Moments(), _Moments()

  def reset(self) -> np.ndarray:
    observation = self._environments.reset()
    self._return = np.zeros(len(observation))
    return self._normalize(observation)

  def step(self, actions: np.ndarray) -> Step:
    observation, reward, is_done = self._environments.step(actions)
    self._return = self._return * self._discount + reward
    self._returns.update(self._return)
    self._return[is_done] = 0.0
    scaled = np.clip(reward / np.sqrt(self._returns.variance + 1e-8), -10, 10)
    return self._normalize(observation), scaled, is_done

  def _normalize(self, observation: np.ndarray) -> np.ndarray:
    self._observations.update(observation)
    deviation = np.sqrt(self._observations.variance + 1e-8)
    scaled = (observation - self._observations.mean) / deviation
    return np.clip(scaled, -10, 10).astype(np.float32)


class _Moments:
  """Running mean and variance over batches (Chan et al. 1979)."""

  def __init__(self) -> None:
    self.mean: Any = 0.0
    self.variance: Any = 1.0
    self._count = 1e-4

  def update(self, batch: np.ndarray) -> None:
    """Adds a batch `[E, ...]`."""
    number, total = len(batch), self._count + len(batch)
    delta = batch.mean(axis=0) - self.mean
    squares = self.variance * self._count + batch.var(axis=0) * number
    self.variance = (squares + delta**2 * self._count * number / total) / total
    self.mean = self.mean + delta * number / total
    self._count = total


def make(work: str, environments: str, num_threads: int) -> Any:
  """Makes environments. environments: `own` (or Gymnasium's) or `envpool`."""
  if work in ('catch_mlp', 'catch_lstm'):
    return OwnCatch(512) if environments == 'own' else Envpool('Catch-v0', 512, num_threads)
  if work == 'pong_cnn':
    settings = {'repeat_action_probability': 0.0, 'full_action_space': True}
    return Envpool('Pong-v5', 64, num_threads, **settings)
  robots = (
    GymnasiumCheetah(8) if environments == 'own' else Envpool('HalfCheetah-v4', 8, num_threads)
  )
  return Normalized(robots, discount=0.99)
