"""Our Catch, many boards per call, for libraries that reset an ended episode by themselves."""

from __future__ import annotations

import numpy as np

from seed_acme.envs import catch

OBSERVATION_SIZE = 50
NUM_ACTIONS = catch.NUM_ACTIONS


class CatchBoards:
  """A batch of Catch boards that all end at the same time.

  `step` returns the first observation of the next episode when one ends, so no step is a no-op.
  `is_done` is therefore all true or all false.
  """

  def __init__(self, num_environments: int, seed: int):
    self.num_environments = num_environments
    self._boards = catch.Catch(num_environments, seed)

  def reset(self) -> np.ndarray:
    """Returns observations `[E, 50]` float32."""
    return np.asarray(self._boards.reset().observation)

  def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns observations, rewards `[E]`, is_done `[E]` bool, episodes' last observations."""
    timestep = self._boards.step(actions)
    last = np.asarray(timestep.observation)
    is_done = timestep.discount == 0.0
    observation = self.reset() if is_done[0] else last
    return observation, timestep.reward, is_done, last
