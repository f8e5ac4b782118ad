"""Small dm_env environments with known behaviour, for tests.

Each takes the seed first and then plain settings, so a configuration can name it:
`tests.scripted_environments:TruncatingEnvironment`.
"""

from __future__ import annotations

from collections.abc import Sequence

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types


class ScriptedEnvironment(dm_env.Environment):
  """Episodes of given lengths whose observations identify the episode and the row.

  Observation `[2]` float32: number of the episode and number of the row in it, both from 0.
  The reward of a row is its number. There are two actions; `actions` records all received ones.
  """

  def __init__(
    self, seed: int = 0, episode_lengths: Sequence[int] = (3,), last_discount: float = 0.0
  ):
    """episode_lengths: steps (rows minus one) of each episode, repeated in a cycle.

    last_discount: 0 = episodes terminate, more = they are truncated. seed: unused.
    """
    del seed
    self._episode_lengths = tuple(episode_lengths)
    self._last_discount = last_discount
    self._episode = -1
    self._row = 0
    self._has_ended = True
    self.actions: list[int] = []
    self.is_closed = False

  def reset(self) -> dm_env.TimeStep:
    self._episode += 1
    self._row = 0
    self._has_ended = False
    return dm_env.restart(self._observation())

  def step(self, action: np.ndarray) -> dm_env.TimeStep:
    if self._has_ended:
      return self.reset()
    self.actions.append(int(action))
    self._row += 1
    if self._row < self._episode_lengths[self._episode % len(self._episode_lengths)]:
      return dm_env.transition(self._reward(), self._observation())
    self._has_ended = True
    return dm_env.TimeStep(
      dm_env.StepType.LAST, self._reward(), self._last_discount, self._observation()
    )

  def observation_spec(self) -> types.Nest:
    return dm_specs.Array((2,), np.float32, name='episode_and_row')

  def action_spec(self) -> types.Nest:
    return dm_specs.DiscreteArray(2, dtype=np.int32, name='action')

  def close(self) -> None:
    self.is_closed = True

  def _reward(self) -> float:
    return float(self._row)

  def _observation(self) -> types.Nest:
    return np.array([self._episode, self._row], np.float32)


class TruncatingEnvironment(ScriptedEnvironment):
  """Gives the same reward at every step; its episodes are truncated and never terminate.

  So with the agent's discount the value of every row, LAST included, is
  `reward / (1 - discount)`; an agent that treats truncation as termination learns less. The
  observation is constant, `[1]` float32.
  """

  def __init__(self, seed: int = 0, episode_length: int = 5, reward: float = 1.0):
    super().__init__(seed, (episode_length,), last_discount=1.0)
    self._constant_reward = reward

  def observation_spec(self) -> types.Nest:
    return dm_specs.Array((1,), np.float32, name='constant')

  def _reward(self) -> float:
    return self._constant_reward

  def _observation(self) -> types.Nest:
    return np.ones(1, np.float32)


class ImageEnvironment(TruncatingEnvironment):
  """Shows a small grey image and takes two numbers."""

  def step(self, action: np.ndarray) -> dm_env.TimeStep:
    del action
    return super().step(np.array(0))

  def observation_spec(self) -> types.Nest:
    return dm_specs.BoundedArray((6, 6), np.uint8, 0, 255)

  def action_spec(self) -> types.Nest:
    return dm_specs.BoundedArray((2,), np.float32, -1.0, 1.0)

  def _observation(self) -> np.ndarray:
    return np.full((6, 6), self._row, np.uint8)


class RaisingEnvironment(ScriptedEnvironment):
  """Raises RuntimeError at its `raise_at_step`-th step, counted from 1 over all episodes."""

  def __init__(self, seed: int = 0, raise_at_step: int = 10, episode_length: int = 3):
    super().__init__(seed, (episode_length,))
    self._raise_at_step = raise_at_step

  def step(self, action: np.ndarray) -> dm_env.TimeStep:
    timestep = super().step(action)
    if len(self.actions) == self._raise_at_step:
      raise RuntimeError(f'scripted failure at step {self._raise_at_step}')
    return timestep


class NanEnvironment(ScriptedEnvironment):
  """Returns NaN in `field`, `reward` or `observation`, from its `nan_at_step`-th step on.

  Steps are counted from 1 over all episodes.
  """

  def __init__(
    self, seed: int = 0, nan_at_step: int = 10, field: str = 'reward', episode_length: int = 3
  ):
    super().__init__(seed, (episode_length,))
    self._nan_at_step = nan_at_step
    self._field = field

  def _reward(self) -> float:
    return np.nan if self._is_nan('reward') else super()._reward()

  def _observation(self) -> types.Nest:
    observation = super()._observation()
    return np.full_like(observation, np.nan) if self._is_nan('observation') else observation

  def _is_nan(self, field: str) -> bool:
    return field == self._field and len(self.actions) >= self._nan_at_step


class NestedEnvironment(dm_env.Environment):
  """Environment with nested observations and actions, a score besides the reward, and randomness.

  Observation: `camera` `[4, 4, 3]` uint8 and `joints` (`position` `[2]`, float64). Action:
  `button`, one of 3, and `force` `[2]` float64 in [-1, 1], which moves the position. The
  reward is half the score, which is minus the distance from the origin. Each step ends the
  episode with probability 0.2, by termination or truncation with equal chances.
  """

  def __init__(self, seed: int = 0):
    self._random = np.random.default_rng(seed)
    self._position = np.zeros(2)
    self._has_ended = True
    self.last_score = 0.0
    self.frames_per_step = 4

  def reset(self) -> dm_env.TimeStep:
    self._position = self._random.normal(size=2)
    self._has_ended = False
    self.last_score = 0.0
    return dm_env.restart(self._observation())

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    if self._has_ended:
      return self.reset()
    self._position = self._position + action['force'] + 0.1 * self._random.normal(size=2)
    self.last_score = -float(np.linalg.norm(self._position))
    reward, observation = self.last_score / 2, self._observation()
    ending = self._random.random()
    self._has_ended = ending < 0.2
    if ending < 0.1:
      return dm_env.termination(reward, observation)
    if ending < 0.2:
      return dm_env.truncation(reward, observation)
    return dm_env.transition(reward, observation)

  def observation_spec(self) -> types.Nest:
    return {
      'camera': dm_specs.BoundedArray((4, 4, 3), np.uint8, 0, 255, name='camera'),
      'joints': {'position': dm_specs.Array((2,), np.float64, name='position')},
    }

  def action_spec(self) -> types.Nest:
    return {
      'button': dm_specs.DiscreteArray(3, dtype=np.int32, name='button'),
      'force': dm_specs.BoundedArray((2,), np.float64, -1, 1, name='force'),
    }

  def _observation(self) -> types.Nest:
    camera = self._random.integers(256, size=(4, 4, 3), dtype=np.uint8)
    return {'camera': camera, 'joints': {'position': self._position}}
