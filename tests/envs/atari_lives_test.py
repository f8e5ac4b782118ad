"""Lives of several games by hand: which ones are lost, and when FIRE is played."""

import numpy as np
import pytest

from seed_acme.envs import atari_lives

# Rows of three games: lives left, and whether the row is FIRST. The second game wins a life, is cut
# short by the time limit, and starts again with fewer lives, which is no loss.
_ROWS = [
  ([3, 3, 3], [True, True, True]),
  ([3, 4, 2], [False, False, False]),
  ([2, 3, 2], [False, True, False]),
  ([2, 3, 1], [False, False, False]),
]
_LOST = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
_FIRES = [[1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize('fire_at_start', [False, True])
@pytest.mark.parametrize('life_loss', ['ignore', 'cut'])
def test_a_life_is_lost_within_an_episode_alone(life_loss, fire_at_start):
  lives = atari_lives.Lives(3, life_loss, fire_at_start)
  buffer = np.zeros(3, np.int32)  # the emulators overwrite it
  for (left, is_first), lost, fires in zip(_ROWS, _LOST, _FIRES):
    buffer[:] = left
    discounts = lives.read(buffer, np.array(is_first))
    assert discounts.dtype == np.float32
    np.testing.assert_array_equal(discounts, 1 - np.array(lost) * (life_loss == 'cut'))
    np.testing.assert_array_equal(lives.fires, np.array(fires) * fire_at_start)
