"""The environments of an experiment: in this process, or under the Python of `actor.python`.

Everything that builds or checks an environment outside an actor's worker does it through here;
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
  """What environments are made with, of a configuration. record_every: 0 = they need not draw."""

  environment: config_lib.EnvironmentConfig
  actor: config_lib.ActorConfig
  record_every: int


Settings = config_lib.ExperimentConfig | Section  # whoever has both may give either


def make(
  config: Settings, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """As `registry.make`; what the environments return is checked."""
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
  """As `registry.check`; also holds the interpreter against what environments need."""
  python = config.actor.python
  if interpreter.is_this_one(python):
    registry.check(config.environment)
  else:
    remote.check(config.environment, python, config.actor.reset_timeout_s)
