"""Levels that are registered in gym and gymnasium, whichever are installed, by the import."""

import contextlib
import importlib


def _register(package):
  gym = importlib.import_module(package)

  class Anything(gym.Env):
    """An environment that takes any settings, and shows one of them."""

    observation_space = gym.spaces.Discrete(9)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, level=1, **kwargs):
      self.settings = {'level': level, **kwargs}

    def reset(self, *, seed=None, options=None):
      super().reset(seed=seed)
      return self.settings['level'], {}

    def step(self, action):
      return self.settings['level'], 0.0, False, False, {}

  gym.register('Any-v0', entry_point=Anything)
  if package == 'gymnasium':
    gym.register('Only-v0', entry_point=Anything)
  if package == 'gymnasium' and hasattr(gym.vector, 'AutoresetMode'):

    class OnlyVector(gym.vector.SyncVectorEnv):
      def __init__(self, num_envs):
        super().__init__([Anything] * num_envs)

    gym.register('OnlyVector-v0', vector_entry_point=OnlyVector)


for _package in ('gym', 'gymnasium'):
  with contextlib.suppress(ImportError):
    _register(_package)
