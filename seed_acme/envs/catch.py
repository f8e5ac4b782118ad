"""Catch: move a paddle under a falling ball. A dozen numpy calls step all E boards."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import lockstep

NUM_ACTIONS = 3  # left, stay, right
_BALL, _PADDLE = (255, 255, 255), (80, 160, 255)  # red, green, blue


class Catch(lockstep.EndTogether):
  """A `core.VectorEnvironment`; called from one thread.

  A board of `rows x columns` zeros, with ones at the ball and at the paddle. The ball
  starts in the top row, in a random column, and falls one row a step; the paddle starts
  in the middle of the bottom row and moves one column a step, as far as the walls. When
  the ball arrives at the bottom the episode terminates with reward 1 if the paddle is
  there, else -1 (every other reward is 0). An episode has `rows - 1` steps on all boards,
  so one counter of the ball's row serves all of them, and they end together.

  Observation `[rows * columns]` float32, row by row from the top; actions int32.
  Time steps are read-only for the caller and stay valid: each step allocates new
  observations, and constant arrays (a reward of zeros, say) are shared and write-protected.
  """

  def __init__(self, num_environments: int, seed: int, rows: int = 10, columns: int = 5):
    lockstep.check_integers('catch', 1, num_environments=num_environments, columns=columns)
    lockstep.check_integers('catch', 2, rows=rows)
    spec = types.EnvironmentSpec(
      observation=dm_specs.BoundedArray(
        (rows * columns,), np.float32, minimum=0, maximum=1, name='observation'
      ),
      action=dm_specs.DiscreteArray(NUM_ACTIONS, dtype=np.int32, name='action'),
    )
    super().__init__(num_environments, spec)
    self._rows, self._columns = rows, columns
    self._random = np.random.default_rng(seed)
    # Columns are counted from the left of each environment's own board.
    self._paddle = np.zeros(num_environments, np.int64)
    self._ball = np.zeros(num_environments, np.int64)
    # Where each board's top and bottom row start in the flattened `[E * rows * columns]`.
    self._top = np.arange(num_environments) * (rows * columns)
    self._bottom = self._top + (rows - 1) * columns
    self._row = rows - 1  # of the ball; at the bottom the next step starts an episode

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random stream continues."""
    self._row = 0
    self._ball = self._random.integers(self._columns, size=self.num_environments)
    self._paddle.fill(self._columns // 2)
    return self._timestep(types.FIRST, self._zeros, self._ones)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E]` integers, 0 left, 1 stay, 2 right; ignored after LAST.

    ValueError for other actions or another shape.
    """
    if self._row == self._rows - 1:
      return self.reset()
    actions = lockstep.check_actions(actions, self.num_environments, NUM_ACTIONS)
    self._row += 1
    self._paddle += actions
    self._paddle -= 1
    # np.clip is three times as slow on arrays of this size.
    np.maximum(self._paddle, 0, out=self._paddle)
    np.minimum(self._paddle, self._columns - 1, out=self._paddle)
    if self._row < self._rows - 1:
      return self._timestep(types.MID, self._zeros, self._ones)
    reward = np.where(self._paddle == self._ball, np.float32(1), np.float32(-1))
    return self._timestep(types.LAST, reward, self._zeros)

  def render(self) -> np.ndarray:
    """Draws board 0, `[16 * rows, 16 * columns, 3]` uint8; a caught ball covers the paddle."""
    cells = np.zeros((self._rows, self._columns, 3), np.uint8)
    cells[-1, self._paddle[0]] = _PADDLE
    cells[self._row, self._ball[0]] = _BALL
    return lockstep.picture(cells)

  def _observation(self) -> np.ndarray:
    observation = np.zeros((self.num_environments, self._rows * self._columns), np.float32)
    cells = observation.reshape(-1)
    cells[self._top + self._ball + self._row * self._columns] = 1
    cells[self._bottom + self._paddle] = 1
    return observation
