"""Makes an experiment's environments, in this process or under the Python of `actor.python`.

All code outside an actor's worker that makes or checks an environment does it through this module;
the worker itself runs under that Python and uses `registry`.
"""

from __future__ import annotations

import dataclasses

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import checked
from seed_acme.envs import registry
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote


@dataclasses.dataclass(frozen=True)
class Section:
  """Parts of a configuration that environments are made with. record_every: 0 = no rendering."""

  environment: config_lib.EnvironmentConfig
  actor: config_lib.ActorConfig
  record_every: int


Settings = config_lib.ExperimentConfig | Section  # either will do


def make(
  config: Settings, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """Makes environments as `registry.make` does, and checks everything that they return."""
  python = config.actor.python
  environment: core.VectorEnvironment
  if interpreter.is_this_one(python):
    environment = registry.make(config.environment, num_environments, seed, renders=renders)
  else:
    environment = remote.RemoteEnvironment(
      config.environment, python, num_environments, seed, renders, config.actor.reset_timeout_s
    )
  return checked.CheckedEnvironment(environment, config.environment.id)


def check(config: Settings) -> None:
  """Does the checks of `registry.check`, and checks that the interpreter can run environments."""
  python = config.actor.python
  if interpreter.is_this_one(python):
    registry.check(config.environment)
  else:
    remote.check(config.environment, python, config.actor.reset_timeout_s)
