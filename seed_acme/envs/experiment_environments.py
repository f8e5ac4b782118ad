"""The environments of an experiment: in this process, or under the Python of `actor.python`.

Everything that builds or checks an environment outside an actor's worker does it through here;
the worker itself runs under that Python and uses `registry`.
"""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.envs import registry
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote


def make(
  config: config_lib.ExperimentConfig, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """As `registry.make`."""
  python = config.actor.python
  if interpreter.is_this_one(python):
    return registry.make(config.environment, num_environments, seed, renders=renders)
  return remote.RemoteEnvironment(
    config.environment, python, num_environments, seed, renders, config.actor.reset_timeout_s
  )


def environment_spec(config: config_lib.ExperimentConfig) -> types.EnvironmentSpec:
  """Builds one environment, reads its specification and closes it."""
  return registry.spec_of(make(config, num_environments=1, seed=0))


def check(config: config_lib.ExperimentConfig) -> None:
  """As `registry.check`; also holds the interpreter against what environments need."""
  python = config.actor.python
  if interpreter.is_this_one(python):
    registry.check(config.environment)
  else:
    remote.check(config.environment, python, config.actor.reset_timeout_s)
