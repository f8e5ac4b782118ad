"""Lost lives of Atari games that are stepped together, for `atari_vector.py` and envpool."""

from __future__ import annotations

from typing import Literal

import numpy as np

# A lost life has no effect, or it cuts the value (discount 0) while the game goes on.
LifeLoss = Literal['ignore', 'cut']


class Lives:
  """The lives of E games. `read` is called once with every row, from one thread.

  fires: `[E]` bool, the games whose next step plays FIRE whatever action is sent.
  """

  def __init__(self, num_environments: int, life_loss: LifeLoss, fire_at_start: bool):
    self._cuts = life_loss == 'cut'
    self._fire_at_start = fire_at_start
    self._lives = np.zeros(num_environments, np.int64)
    self.fires = np.zeros(num_environments, bool)

  def read(self, lives: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """Returns discounts `[E]` float32: 0 where the row has lost a life that cuts the value, else 1.

    lives: `[E]` integers, the lives left. is_first: `[E]`, rows that start an episode lose none.
    """
    is_lost = ~is_first & (lives < self._lives)
    self._lives = np.array(lives)
    self.fires = self._fire_at_start & (is_first | is_lost)
    return np.where(self._cuts & is_lost, 0, 1).astype(np.float32)
