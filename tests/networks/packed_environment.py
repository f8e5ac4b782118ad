"""A game whose observation is a packed mini map of random planes."""

import numpy as np

from seed_acme.envs import packed_planes
from tests import scripted_environments


def make(seed):
  return _Packed(seed)


class _Packed(scripted_environments.TruncatingEnvironment):
  def __init__(self, seed):
    super().__init__(seed)
    self._random = np.random.default_rng(seed)

  def observation_spec(self):
    return packed_planes.spec(72, 96, 16, 'mini_map')

  def _observation(self):
    return packed_planes.pack(self._random.integers(0, 2, (72, 96, 16)))
