"""Environments of the works in which nothing is trained."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import catch
from seed_acme.envs import lockstep

NUM_ACTIONS = 18
_FRAMES = (84, 84, 4)
_CHANNELS_FIRST = (4, 84, 84)
_EPISODE_STEPS = 100
_NUM_PICTURES = 8


class Frames(lockstep.EndTogether):
  """Stacks of random frames in the size of Atari's, uint8, that cost nothing to make.

  Every reward is 0, and an episode has 100 steps.
  """

  def __init__(self, num_environments: int, seed: int, shape: tuple[int, ...] = _FRAMES):
    """shape: of an observation; each library gets the one that its convolutions take."""
    spec = types.EnvironmentSpec(
      observation=dm_specs.BoundedArray(shape, np.uint8, 0, 255, name='observation'),
      action=dm_specs.DiscreteArray(NUM_ACTIONS, dtype=np.int32, name='action'),
    )
    super().__init__(num_environments, spec)
    size = (_NUM_PICTURES, num_environments, *shape)
    self._pictures = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    self._step = 0

  def reset(self) -> types.VectorTimeStep:
    """Begins an episode."""
    self._step = 0
    return self._timestep(types.FIRST, self._zeros, self._ones)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E]` integers, which change nothing."""
    if self._step == _EPISODE_STEPS:
      return self.reset()
    lockstep.check_actions(actions, self.num_environments, NUM_ACTIONS)
    self._step += 1
    if self._step < _EPISODE_STEPS:
      return self._timestep(types.MID, self._zeros, self._ones)
    return self._timestep(types.LAST, self._zeros, self._zeros)

  def _observation(self) -> np.ndarray:
    return self._pictures[self._step % _NUM_PICTURES]


def frames(seed: int, num_environments: int) -> Frames:
  """The factory that `environment.id` names."""
  return Frames(num_environments, seed)


def make(work: str, num_environments: int, seed: int) -> lockstep.EndTogether:
  """Makes the environments of one process of TorchRL."""
  if work == 'acting_frames_2':
    return Frames(num_environments, seed, _CHANNELS_FIRST)
  return catch.Catch(num_environments, seed)
