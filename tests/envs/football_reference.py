"""A script for the Python with gfootball, which plays and compares our views with the engine's.

It prints one line of JSON.
"""

import json

from gfootball.env import observation_preprocessing
from gfootball.env import wrappers
import gym
import numpy as np

from seed_acme.envs import football


class _Game(gym.Env):
  """The part of an environment that `CheckpointRewardWrapper` uses."""

  def __init__(self, game):
    self._ours = game

  def observation(self):
    return [self._ours.record]

  def reset(self):
    return self.observation()


def compare(level, num_steps):
  ours = {
    name: football.Football(level, 5, football.Settings(**settings))
    for name, settings in {
      'maps': {'packed': False, 'stack': 1},
      'numbers': {'observation': 'simple115'},
      'checkpoints': {'observation': 'simple115', 'rewards': 'scoring,checkpoints'},
    }.items()
  }
  theirs = wrappers.CheckpointRewardWrapper(_Game(ours['checkpoints']))
  random = np.random.default_rng(1)
  counts = {
    'steps': 0,
    'episodes': 0,
    'maps': 0,
    'numbers': 0,
    'rewards': 0,
    'scores': 0,
    'paid': 0.0,
  }
  steps = {name: game.reset() for name, game in ours.items()}
  theirs.reset()
  for _ in range(num_steps):
    records = {name: [game.record] for name, game in ours.items()}
    expected = observation_preprocessing.generate_smm(records['maps'])[0]
    counts['maps'] += not np.array_equal(steps['maps'].observation, expected)
    numbers = wrappers.Simple115StateWrapper.convert_observation(records['numbers'], True)[0]
    counts['numbers'] += not np.array_equal(steps['numbers'].observation, numbers)
    # Mostly towards the goal, so that rings are reached.
    action = int(random.choice([5, 5, 5, 12, random.integers(0, 19)]))
    is_new = steps['checkpoints'].last()
    steps = {name: game.step(action) for name, game in ours.items()}
    if is_new:
      theirs.reset()
      counts['episodes'] += 1
      continue
    counts['steps'] += 1
    game = ours['checkpoints']
    reward = theirs.reward(np.array([game.last_score], np.float32))[0]
    counts['rewards'] += not np.isclose(reward, steps['checkpoints'].reward, atol=1e-6)
    counts['scores'] += steps['maps'].reward != ours['maps'].last_score
    counts['paid'] += float(steps['checkpoints'].reward)
  for game in ours.values():
    game.close()
  return counts


if __name__ == '__main__':
  print(json.dumps(compare('academy_empty_goal_close', 300)))
