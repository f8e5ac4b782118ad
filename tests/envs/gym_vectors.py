"""Scripted vectors of gymnasium, in a module so that factories can name them."""

import gymnasium
from gymnasium import spaces
from gymnasium import vector
import numpy as np


class Counting(gymnasium.Env):
  """An environment that shows the number of its episode, the row in it, and a random number.

  It has nested spaces, and choices that do not begin at 0. The action is shown in the next row.
  """

  observation_space = spaces.Dict(
    {
      'row': spaces.Box(-1000, 1000, (2,), np.float64),
      'choices': spaces.Tuple((spaces.Discrete(9, start=3), spaces.MultiDiscrete([4, 4]))),
    }
  )
  action_space = spaces.Dict(
    {'turn': spaces.Discrete(3, start=-1), 'push': spaces.Box(-1, 1, (2,))}
  )

  def __init__(self, episode_length=3, truncates=True, render_mode=None):
    self.render_mode = render_mode
    self._episode_length, self._truncates = episode_length, truncates
    self._episode = -1

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._episode += 1
    self._row, self._turn = 0, -1
    self._noise = self.np_random.random()
    return self._observation(), {}

  def step(self, action):
    assert self.action_space.contains(action), action
    self._row += 1
    self._turn = action['turn']
    is_over = self._row == self._episode_length
    reward = 0.5 + float(action['push'][0])
    return self._observation(), reward, is_over and not self._truncates, is_over, {}

  def render(self):
    return np.full((2, 3, 3), self._row, np.uint8)

  def _observation(self):
    turn = self._turn + 1
    return {
      'row': np.array([self._row, self._noise]),
      'choices': (3 + self._row % 9, np.array([turn, self._episode % 4])),
    }


class Deaf(vector.SyncVectorEnv):
  """A vector that resets all environments whatever the mask says."""

  def reset(self, *, seed=None, options=None):
    return super().reset(seed=seed)


def make(seed, num_environments, mode='NextStep', is_deaf=False, missing=0, copy=True, **settings):
  """Makes a vector, as a factory with a parameter `num_environments`."""
  kind = Deaf if is_deaf else vector.SyncVectorEnv
  return kind(
    [
      lambda index=i: Counting(episode_length=3 + index % 2, **settings)
      for i in range(num_environments - missing)
    ],
    copy=copy,
    autoreset_mode=mode,
  )


class Locked(gymnasium.Env):
  """An environment whose second joint cannot move, at a number that float32 has not."""

  observation_space = spaces.Box(-1, 1, (2,))
  action_space = spaces.Box(np.array([-1, 0.1]), np.array([1, 0.1]), dtype=np.float64)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return np.zeros(2, np.float32), {}

  def step(self, action):
    assert self.action_space.contains(action), action
    return np.asarray(action, np.float32), 0.0, False, False, {}


def make_locked(seed, num_environments):
  return vector.SyncVectorEnv([Locked] * num_environments)


def make_locked_alone(seed):
  return Locked()


def make_alone(seed, **settings):
  """Makes the same environments one by one."""
  return Counting(**settings)


def make_without_number(seed):
  return make(seed, 2)


class NoFinal(vector.SyncVectorEnv):
  """A vector that omits last observations."""

  def step(self, actions):
    *row, info = super().step(actions)
    info.pop('final_obs', None)
    return (*row, info)


class Columns(vector.SyncVectorEnv):
  """A vector that returns a column where numbers are due. field: which, 1 is the reward."""

  def __init__(self, makers, field):
    super().__init__(makers)
    self._field = field

  def step(self, actions):
    row = list(super().step(actions))
    row[self._field] = row[self._field][:, None]
    return tuple(row)


def make_columns(seed, num_environments, field):
  return Columns([Counting] * num_environments, field)


class ListsInfo(vector.SyncVectorEnv):
  """A vector whose info is a list."""

  def step(self, actions):
    *row, info = super().step(actions)
    return (*row, [info])


def make_lists_info(seed, num_environments):
  return ListsInfo([Counting] * num_environments, autoreset_mode='SameStep')


def make_no_final(seed, num_environments):
  return NoFinal([Counting] * num_environments, autoreset_mode='SameStep')


def make_silent(seed, num_environments):
  environment = make(seed, num_environments)
  del environment.metadata['autoreset_mode']
  return environment


class Faulty(vector.VectorEnv):
  """A vector that returns something wrong after its first step. how: what."""

  metadata = {'autoreset_mode': vector.AutoresetMode.NEXT_STEP}

  def __init__(self, num_envs, how):
    self.num_envs, self._how = num_envs, how
    self.single_observation_space = spaces.Dict(
      {'a': spaces.Box(0, 255, (1,), np.uint8), 'b': spaces.Discrete(3)}
    )
    self.single_action_space = spaces.MultiDiscrete([2, 3])

  def reset(self, *, seed=None, options=None):
    return self._observation(), {}

  def step(self, actions):
    observation = self._observation()
    if self._how == 'wraps uint8':
      observation['a'] = np.full((self.num_envs, 1), 300, np.uint16)
    if self._how == 'wraps a choice':
      observation['b'] = np.full(self.num_envs, 2**32 + 1)
    if self._how == 'lacks a key':
      del observation['a']
    if self._how == 'has one key too many':
      observation['c'] = np.zeros(self.num_envs)
    nothing = np.zeros(self.num_envs)
    result = (observation, nothing, nothing.astype(bool), nothing.astype(bool), {})
    return result[:4] if self._how == 'returns four' else result

  def _observation(self):
    return {'a': np.zeros((self.num_envs, 1), np.uint8), 'b': np.ones(self.num_envs, np.int64)}


def make_faulty(seed, num_environments, how=''):
  return Faulty(num_environments, how)
