"""`python -m seed_acme.testing.first_steps ID`: makes one environment and takes a few steps in it.

Exits with 0 if that works, otherwise with 1 and the reason in the last line of stderr. It is a
separate process because a faulty environment may end its whole process. Runs under every Python
that actors run under.
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
  """Takes random actions and checks each time step against the specification; raises on errors."""
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
  except Exception as error:  # third-party environments may raise anything
    said = ' '.join(str(error).split())
    print(f'{type(error).__name__}: {said}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  code = main(sys.argv[1])
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)  # without waiting for threads that the environment may have left running
