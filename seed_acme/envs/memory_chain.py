"""MemoryChain: a cue is shown once and must be repeated at the end of the episode."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import lockstep


class MemoryChain(lockstep.EndTogether):
  """A `core.VectorEnvironment`; called from one thread.

  Row 0 (FIRST) shows one of `num_cues` cues, drawn uniformly. Rows 1 ... `length` show
  no cue; row `length` raises the query flag, and the action chosen there is compared
  with the cue: row `length + 1` is LAST (terminated) with reward 1 if equal, else -1.
  All other actions have no effect (reward 0). An episode has `length + 1` steps in all
  environments, so they end together.

  Observation `[num_cues + 2]` float32: the cue one-hot (row 0 only), the time left
  `1 - row / length` (0 at LAST), the query flag. Actions int32, one for each cue.

  From row 1 on observations and rewards are equal for all cues, so the expected return of
  a policy without memory is `memoryless_return`, whatever it does. There is one exception: a
  memoryless network that is fed its *previous action* can carry the cue from row to row in
  its actions. Do not feed it to a baseline that is meant to have no memory.

  Time steps are read-only for the caller and stay valid: each step allocates new
  observations, and constant arrays are shared and write-protected.
  """

  def __init__(self, num_environments: int, seed: int, length: int = 10, num_cues: int = 2):
    lockstep.check_integers('memory_chain', 1, num_environments=num_environments, length=length)
    lockstep.check_integers('memory_chain', 2, num_cues=num_cues)
    spec = types.EnvironmentSpec(
      observation=dm_specs.BoundedArray(
        (num_cues + 2,), np.float32, minimum=0, maximum=1, name='observation'
      ),
      action=dm_specs.DiscreteArray(num_cues, dtype=np.int32, name='action'),
    )
    super().__init__(num_environments, spec)
    self._length, self._num_cues = length, num_cues
    self._random = np.random.default_rng(seed)
    self._cue = np.zeros(num_environments, np.int64)
    self._row = length + 1  # LAST: the next step starts an episode
    # Observation of each row without the cue: `[length + 2, num_cues + 2]`.
    self._blank = np.zeros((length + 2, num_cues + 2), np.float32)
    self._blank[:-1, num_cues] = 1 - np.arange(length + 1) / length
    self._blank[length, num_cues + 1] = 1

  @property
  def memoryless_return(self) -> float:
    """Mean return of every policy without memory: `2 / num_cues - 1`."""
    return 2 / self._num_cues - 1

  def memory_score(self, mean_return: float) -> float:
    """Returns 0 for a policy without memory, 1 for a perfect one (negative = worse than chance)."""
    return (mean_return - self.memoryless_return) / (1 - self.memoryless_return)

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random stream continues."""
    self._row = 0
    self._cue = self._random.integers(self._num_cues, size=self.num_environments)
    return self._timestep(types.FIRST, self._zeros, self._ones)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E]` integers, the number of a cue; ignored after LAST.

    ValueError for other actions or another shape.
    """
    if self._row == self._length + 1:
      return self.reset()
    actions = lockstep.check_actions(actions, self.num_environments, self._num_cues)
    self._row += 1
    if self._row <= self._length:
      return self._timestep(types.MID, self._zeros, self._ones)
    reward = np.where(actions == self._cue, np.float32(1), np.float32(-1))
    return self._timestep(types.LAST, reward, self._zeros)

  def render(self) -> np.ndarray:
    """Draws observation 0 as a row of cells, `[16, 16 * (num_cues + 2), 3]` uint8; 1 is white."""
    return lockstep.picture((255 * self._observation()[:1]).astype(np.uint8))

  def _observation(self) -> np.ndarray:
    observation = np.repeat(self._blank[self._row : self._row + 1], self.num_environments, axis=0)
    if self._row == 0:
      observation[np.arange(self.num_environments), self._cue] = 1
    return observation
