"""A count of an evaluation's episodes."""

from __future__ import annotations

import numpy as np

from seed_acme import types


class EpisodeTally:
  """The scores and lengths of the first episodes of every environment, in equal shares.

  Taking episodes in the order in which they end would favour short ones.
  """

  def __init__(self, num_episodes: int, size: int):
    shares = np.array_split(np.arange(num_episodes), size)
    self._quotas = np.array([len(share) for share in shares])
    self._score, self._length = np.zeros(size), np.zeros(size, np.int64)
    self._finished = np.zeros(size, np.int64)
    self.scores: list[float] = []
    self.lengths: list[int] = []

  def add(self, timestep: types.VectorTimeStep) -> None:
    """Adds one time step of all environments."""
    is_first = timestep.step_type == types.FIRST
    self._score = np.where(is_first, 0.0, self._score + timestep.score)
    self._length = np.where(is_first, 0, self._length + 1)
    is_counted = (timestep.step_type == types.LAST) & (self._finished < self._quotas)
    self.scores.extend(self._score[is_counted].tolist())
    self.lengths.extend(self._length[is_counted].tolist())
    self._finished += is_counted
