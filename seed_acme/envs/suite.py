"""The record that describes a suite of environments; all other code works from it."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import importlib.util
from typing import Any, NamedTuple

import dm_env
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import closing
from seed_acme.envs import vector


class UnknownId(types.UserError):
  """Raised if no environment of the suite has this id; the registry adds similar names and `fix`,
  the end of the message."""

  def __init__(self, message: str, fix: str = ''):
    super().__init__(message)
    self.fix = fix


class Order(NamedTuple):
  """The environments to make.

  environment_id: as in `EnvironmentConfig`; level: the part after the suite's prefix.
  seed: seed of the run. renders: environment 0 must be able to render.
  """

  environment_id: str
  level: str
  settings: dict[str, Any]
  num_environments: int
  seed: int
  renders: bool

  def seeds(self) -> list[int]:
    """Returns one seed per environment."""
    return environment_seeds(self.seed, self.num_environments)

  def one_by_one(self, make_one: Callable[[int], dm_env.Environment]) -> core.VectorEnvironment:
    """Makes independent environments, each from its seed.

    If one cannot be made, or they do not go together, those made so far are closed.
    """
    with closing.on_failure(self.environment_id) as made:
      environments = [
        made.enter_context(contextlib.closing(make_one(seed))) for seed in self.seeds()
      ]
      return vector.VectorOfEnvironments(environments, self.environment_id)


class Example(NamedTuple):
  """An environment to test whether a suite works.

  extra: the one of setup.py that installs everything it needs; '' = there is none. packages:
  modules that it needs in addition to those of the suite.
  """

  id: str
  extra: str = ''
  packages: tuple[str, ...] = ()


class KnownEnvironments(NamedTuple):
  """A line of `seed-acme list`.

  id: as in `EnvironmentConfig`; ID stands for the name within a package.
  settings: names of the accepted settings, without those that depend on ID.
  is_available: whether its packages are installed. install: the command that installs them.
  examples: (id, command that installs all that it needs) of environments that can be made here if
    the installed packages work.
  """

  id: str
  description: str
  settings: tuple[str, ...]
  is_available: bool
  install: str
  examples: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Suite:
  """A family of environments. Only its functions import the packages.

  id: form of its ids; a word in capitals stands for the name within the suite.
  description: in a few words. settings: names of settings that all of its environments accept.
  matches: whether an id belongs to the suite; the first suite that matches is used.
  make: makes the environments of an `Order` that has passed `check`.
  check: raises `types.UserError` for a wrong level or setting; makes nothing.
  names: all ids, if the packages are installed; may be long.
  packages: modules that must be importable. extra: the one of setup.py that installs them; install:
    how to get them if no extra does.
  examples: environments to try the suite with.
  scales_actions: bounded float actions also accept the settings of `action_scaling`.
  named_module: the module to import that an id names, `''` if it names none.
  spelled_elsewhere: hint for a message about an id that another suite has under another name.
  normalized_score: from an id and the mean return of an episode: 0 is the random player, 1 the
    human one, without a cap; None if their scores are not known.
  """

  id: str
  description: str
  settings: tuple[str, ...]
  matches: Callable[[str], bool]
  make: Callable[[Order], core.VectorEnvironment]
  check: Callable[[config_lib.EnvironmentConfig], None]
  names: Callable[[], list[str]]
  packages: tuple[str, ...] = ()
  extra: str = ''
  install: str = ''
  examples: tuple[Example, ...] = ()
  scales_actions: bool = True
  named_module: Callable[[str], str] = lambda environment_id: ''
  spelled_elsewhere: Callable[[str], str] = lambda environment_id: ''
  normalized_score: Callable[[str, float], float | None] = lambda environment_id, score: None

  def missing_packages(self) -> list[str]:
    return [package for package in self.packages if not is_installed(package)]

  def possible_examples(self) -> tuple[tuple[str, str], ...]:
    """Returns the examples for `KnownEnvironments`."""
    if self.missing_packages():
      return ()
    return tuple(
      (example.id, self.install or extras.install_command(example.extra))
      for example in self.examples
      if all(map(is_installed, example.packages))
    )

  def install_command(self) -> str:
    return extras.install_command(self.extra) if self.extra else self.install

  def require_packages(self, environment_id: str) -> None:
    """Raises `types.MissingPackage`, which says how to install it, if a package is missing."""
    for package in self.missing_packages():
      raise types.MissingPackage(
        f'environment {environment_id!r} needs {package}: {self.install_command()}'
        f'{self.spelled_elsewhere(environment_id)}'
      )


def prefix(suite_id: str) -> str:
  """Returns the prefix of a suite's ids: `atari:` for `atari:GAME`."""
  head, colon, level = suite_id.partition(':')
  return head + colon if colon and level.isupper() else ''


def with_prefix(suite_id: str) -> Callable[[str], bool]:
  """Returns the `matches` of a suite whose ids share a prefix."""
  start = prefix(suite_id)
  return lambda environment_id: environment_id.startswith(start)


def level(environment_id: str) -> str:
  """Returns the part after the first colon."""
  return environment_id.partition(':')[2]


def is_installed(package: str) -> bool:
  return importlib.util.find_spec(package) is not None


def environment_seeds(seed: int, num_environments: int) -> list[int]:
  """Returns a seed below 2**32 for each environment, a function of (seed, index) alone."""
  return [
    int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
    for index in range(num_environments)
  ]
