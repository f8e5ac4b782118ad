"""A user's environment for runs that have to last while a test does something else.

A run at full speed would take the processor from what the test waits for, or be over too soon.
"""

import os
import time

from seed_acme.envs import catch


class Slow(catch.Catch):
  """Catch whose steps take at least `step_s`, until there is a file `hurry`."""

  def __init__(self, seed, num_environments, step_s=0.05, hurry=''):
    super().__init__(num_environments, seed)
    self._step_s = step_s
    self._hurry = hurry

  def step(self, actions):
    if not self._hurry or not os.path.exists(self._hurry):
      time.sleep(self._step_s)
    return super().step(actions)
