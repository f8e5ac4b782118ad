"""BitFlip: flip one bit per step until all equal a goal's. The test of hindsight replay."""

from __future__ import annotations

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import lockstep


class BitFlip:
  """A `core.VectorEnvironment`; called from one thread.

  Andrychowicz et al. 2017 (arXiv 1707.01495), section 3.1. A state and a goal of `num_bits`
  bits are drawn uniformly and differ; an action flips one bit of the state. The episode
  terminates with reward 1 when the state is the goal, and every other reward is 0, so the mean
  return is the share of episodes that succeed. After `num_bits` steps, which always suffice, it is
  truncated. A random policy rarely finds the goal among 2^num_bits states: with 10 bits, in 0.9 %
  of its episodes.

  The paper's reward is 0 at the goal and -1 elsewhere; the best policy is the same.

  Observation: a dict like that of gymnasium's GoalEnv, `[num_bits]` float32 each, 0 or 1:
  `observation` and `achieved_goal`, both the state, and `desired_goal`. Actions int32, the bit
  to flip. `envs.goals.bits_equal` is the reward as a function of goals.

  Each environment has its own random stream, a function of (seed, index). Time steps are
  read-only for the caller and stay valid, because each step allocates new arrays.
  """

  def __init__(self, num_environments: int, seed: int, num_bits: int = 10):
    lockstep.check_integers('bit_flip', 1, num_environments=num_environments, num_bits=num_bits)
    self.num_environments = num_environments
    self.spec = types.EnvironmentSpec(
      observation={
        name: dm_specs.BoundedArray((num_bits,), np.float32, minimum=0, maximum=1, name=name)
        for name in ('observation', 'achieved_goal', 'desired_goal')
      },
      action=dm_specs.DiscreteArray(num_bits, dtype=np.int32, name='action'),
    )
    self._num_bits = num_bits
    self._randoms = [
      np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
      for index in range(num_environments)
    ]
    self._state = np.zeros((num_environments, num_bits), bool)
    self._goal = np.zeros((num_environments, num_bits), bool)
    self._row = np.zeros(num_environments, np.int64)  # steps taken in the episode
    self._has_ended = np.ones(num_environments, bool)

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random streams continue."""
    self._has_ended[:] = True
    return self.step(np.zeros(self.num_environments, np.int32))

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E]` integers in [0, num_bits); ignored after LAST.

    ValueError for other actions or another shape.
    """
    is_first = self._has_ended
    actions = lockstep.check_actions(
      actions, self.num_environments, self._num_bits, is_used=~is_first
    )
    playing = np.flatnonzero(~is_first)
    self._state[playing, actions[playing]] ^= True
    self._row[playing] += 1
    for index in np.flatnonzero(is_first):
      self._start(index)
    is_reached = (self._state == self._goal).all(axis=1)
    self._has_ended = is_reached | (self._row == self._num_bits)
    step_type = np.where(is_first, types.FIRST, np.where(self._has_ended, types.LAST, types.MID))
    return self._timestep(step_type.astype(np.uint8), is_reached)

  def render(self) -> np.ndarray:
    """Draws environment 0, `[32, 16 * num_bits, 3]` uint8: its bits, and below them the goal's."""
    return lockstep.picture(255 * np.stack([self._state[0], self._goal[0]]).astype(np.uint8))

  def close(self) -> None:
    """Nothing to free."""

  def _start(self, index: int) -> None:
    """Starts a new episode in one environment."""
    random = self._randoms[index]
    self._row[index] = 0
    self._state[index] = random.integers(2, size=self._num_bits)
    self._goal[index] = self._state[index]
    while (self._goal[index] == self._state[index]).all():
      self._goal[index] = random.integers(2, size=self._num_bits)

  def _timestep(self, step_type: np.ndarray, is_reached: np.ndarray) -> types.VectorTimeStep:
    state, reward = self._state.astype(np.float32), is_reached.astype(np.float32)
    observation = {
      'observation': state,
      'achieved_goal': state,
      'desired_goal': self._goal.astype(np.float32),
    }
    return types.VectorTimeStep(step_type, reward, 1 - reward, observation, score=reward)
