"""`python -m seed_acme.testing.first_steps ID`: makes one environment and steps it a little.

Ends with 0 where that works. Otherwise with 1, and the last line of stderr says why, unless the
environment ends the whole process, which is why this is a process of its own. Runs under any
Python that actors run under.
"""

from __future__ import annotations

import contextlib
import os
import sys

import numpy as np

from seed_acme import config as config_lib
from seed_acme.envs import checked
from seed_acme.envs import registry
from seed_acme.testing import environment_contract

_NUM_STEPS = 10


def run(environment_id: str) -> None:
  """Random actions; each time step is held against the specification. Raises what is wrong."""
  config = config_lib.EnvironmentConfig(environment_id)
  random = np.random.default_rng(0)
  made = checked.CheckedEnvironment(registry.make(config, 1, seed=0), environment_id)
  with contextlib.closing(made) as environment:
    environment.reset()
    for _ in range(_NUM_STEPS):
      environment.step(environment_contract.random_actions(environment, random))


def main(environment_id: str) -> int:
  """Returns the exit code."""
  try:
    run(environment_id)
  except Exception as error:  # of code that is not ours
    said = ' '.join(str(error).split())
    print(f'{type(error).__name__}: {said}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  code = main(sys.argv[1])
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)  # without waiting for what the environment may have left running
