"""Toy environments for continuous actions: repeat a vector, immediately or some rows later."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import lockstep


class _CopyVectors(lockstep.EndTogether):
  """A `core.VectorEnvironment`; called from one thread. See the classes below.

  An episode has `num_vectors` vectors x_0, x_1 ... of `size` numbers, each drawn uniformly
  from [-1, 1]. Row t shows x_t, and zeros after the last vector. The action a chosen in row
  t is compared with x_(t - delay): it brings `1 - 3 mean((a - x)^2)`, or 0 in the rows
  before `delay`. Row `delay + num_vectors` is LAST (terminated) and shows zeros. Episodes
  are equally long in all environments, so they end together.

  Observation `[size + 2]` float32: the vector shown, the time left `1 - row / length` (1 at
  FIRST, 0 at LAST), and 1 in rows whose action counts, else 0. Actions `[size]` float32 in
  [-1, 1].

  Expected rewards of an action that counts, from E[x^2] = 1/3: 1 if a = x; 0 for a = 0,
  which is the best that can be done without knowing x (E[(a - x)^2] = a^2 + 1/3);
  -1 for uniformly random ones (E[(a - x)^2] = 2/3).

  Differences from seed_rl's toys: their reward is -sum((a - x)^2), so that the best return
  is 0; their vector is followed by one number that is always 0, instead of the two above; their
  `horizon` is `length`, or both `delay` and `num_vectors`; and an episode of their memory toy
  takes one more step, with reward 0, before it ends.

  Time steps are read-only for the caller and stay valid: each step allocates new
  observations, and constant arrays are shared and write-protected.
  """

  def __init__(self, num_environments: int, seed: int, *, size: int, delay: int, num_vectors: int):
    low, high = np.full(size + 2, -1), np.full(size + 2, 1)
    low[size:] = 0
    spec = types.EnvironmentSpec(
      observation=dm_specs.BoundedArray((size + 2,), np.float32, low, high, 'observation'),
      action=dm_specs.BoundedArray(
        (size,), np.float32, np.full(size, -1), np.full(size, 1), 'action'
      ),
    )
    super().__init__(num_environments, spec)
    self._size, self._delay, self._num_vectors = size, delay, num_vectors
    self._length = delay + num_vectors  # of an episode, in steps
    self._random = np.random.default_rng(seed)
    self._vectors = np.zeros((num_environments, num_vectors, size), np.float32)
    self._last_actions = np.zeros((num_environments, size), np.float32)
    self._row = self._length  # LAST: the next step starts an episode
    # Observation of each row without the vector: `[length + 1, size + 2]`.
    self._blank = np.zeros((self._length + 1, size + 2), np.float32)
    self._blank[:, size] = 1 - np.arange(self._length + 1) / self._length
    self._blank[delay:-1, size + 1] = 1

  @property
  def best_return(self) -> float:
    """Return of a perfect policy: 1 for each vector."""
    return float(self._num_vectors)

  @property
  def memoryless_return(self) -> float:
    """Best mean return of a policy that does not know the requested vector: 0, with a = 0."""
    return 0.0

  @property
  def random_return(self) -> float:
    """Mean return of uniformly random actions: -1 for each vector."""
    return -float(self._num_vectors)

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random stream continues."""
    self._row = 0
    self._vectors = self._random.uniform(-1, 1, self._vectors.shape).astype(np.float32)
    self._last_actions = np.zeros_like(self._last_actions)
    return self._timestep(types.FIRST, self._zeros, self._ones)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E, size]` floats in [-1, 1]; ignored after LAST.

    ValueError for other actions or another shape.
    """
    if self._row == self._length:
      return self.reset()
    actions = np.array(actions, np.float32)  # kept, for `render`
    if actions.shape != self._last_actions.shape:
      raise ValueError(f'actions of shape {actions.shape}: expected {self._last_actions.shape}')
    self._last_actions = action_scaling.unit_actions(actions)
    reward = self._zeros
    if self._row >= self._delay:
      errors = self._last_actions - self._vectors[:, self._row - self._delay]
      reward = (1 - 3 * np.square(errors).mean(axis=1)).astype(np.float32)
    self._row += 1
    if self._row < self._length:
      return self._timestep(types.MID, reward, self._ones)
    return self._timestep(types.LAST, reward, self._zeros)

  def render(self) -> np.ndarray:
    """Draws environment 0, `[48, 16 * size, 3]` uint8: three lines of cells, -1 black, 1 white.

    They are the vector shown, the requested vector (zeros if none is), and the last action.
    """
    lines = np.zeros((3, self._size))
    if self._row < self._num_vectors:
      lines[0] = self._vectors[0, self._row]
    if self._delay <= self._row < self._length:
      lines[1] = self._vectors[0, self._row - self._delay]
    lines[2] = self._last_actions[0]
    return lockstep.picture((127.5 * (lines + 1)).astype(np.uint8))

  def _observation(self) -> np.ndarray:
    observation = np.repeat(self._blank[self._row : self._row + 1], self.num_environments, axis=0)
    if self._row < self._num_vectors:
      observation[:, : self._size] = self._vectors[:, self._row]
    return observation


class Toy(_CopyVectors):
  """Repeat the vector that each row shows, after seed_rl's ToyEnv.

  Each of the `length` rows before LAST shows a new vector of `size` numbers, and the action
  chosen there is compared with it. A policy sees all it needs, so the task requires neither memory
  nor exploration.
  Returns: `best_return` = length, `memoryless_return` = 0 without looking at the observation,
  `random_return` = -length.
  """

  def __init__(self, num_environments: int, seed: int, size: int = 3, length: int = 3):
    lockstep.check_integers('toy', 1, num_environments=num_environments, size=size, length=length)
    super().__init__(num_environments, seed, size=size, delay=0, num_vectors=length)


class ToyMemory(_CopyVectors):
  """Repeat the vector that was shown `delay` rows ago, after seed_rl's ToyMemoryEnv.

  Rows 0 ... num_vectors - 1 show a vector each; row `delay + t` asks for vector t. So all
  are shown before the first is asked for (`num_vectors <= delay`), and nothing in the rows
  that ask depends on them. Returns: `best_return` = num_vectors; `memoryless_return` = 0, the
  best without memory; `random_return` = -num_vectors.

  There is one exception: a memoryless network that is fed its *previous action* can carry one
  vector from row to row in its actions. Do not feed it to a baseline without memory.
  """

  def __init__(
    self, num_environments: int, seed: int, size: int = 3, delay: int = 3, num_vectors: int = 3
  ):
    lockstep.check_integers('toy_memory', 1, num_environments=num_environments, size=size)
    lockstep.check_integers('toy_memory', 1, delay=delay, num_vectors=num_vectors)
    if num_vectors > delay:
      raise types.UserError(
        f'toy_memory: num_vectors ({num_vectors}) must be <= delay ({delay}): '
        'all vectors are shown before the first is asked for'
      )
    super().__init__(num_environments, seed, size=size, delay=delay, num_vectors=num_vectors)

  def memory_score(self, mean_return: float) -> float:
    """Returns 0 for the best policy without memory, 1 for a perfect one."""
    return (mean_return - self.memoryless_return) / (self.best_return - self.memoryless_return)
