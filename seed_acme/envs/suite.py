"""What seed_acme knows of a suite of environments: one record, from which all else follows."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import importlib.util
from typing import Any, NamedTuple

import dm_env
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import vector


class UnknownId(types.UserError):
  """No environment of the suite has this id; the registry adds near names to the text."""


class Order(NamedTuple):
  """What is to be made.

  environment_id: as in `EnvironmentConfig`; level: what is behind the suite's prefix.
  seed: of the run. renders: environment 0 shows its screen.
  """

  environment_id: str
  level: str
  settings: dict[str, Any]
  num_environments: int
  seed: int
  renders: bool

  def seeds(self) -> list[int]:
    """One for each environment."""
    return environment_seeds(self.seed, self.num_environments)

  def one_by_one(self, make_one: Callable[[int], dm_env.Environment]) -> core.VectorEnvironment:
    """Environments that know nothing of each other, each from its seed."""
    return vector.VectorOfEnvironments(
      [make_one(seed) for seed in self.seeds()], self.environment_id
    )


class Example(NamedTuple):
  """An environment that shows whether a suite works.

  extra: of setup.py, which brings all that it needs; '' = there is none. packages: modules that it
  needs beside those of the suite.
  """

  id: str
  extra: str = ''
  packages: tuple[str, ...] = ()


class KnownEnvironments(NamedTuple):
  """A line of `seed-acme list`.

  id: as in `EnvironmentConfig`; ID stands for the name within a package.
  settings: names of the accepted settings; without those that depend on ID.
  is_available: whether what it needs is installed. install: the command that does it.
  examples: (id, command that installs all that it needs) of environments that can be made here if
    what is installed works.
  """

  id: str
  description: str
  settings: tuple[str, ...]
  is_available: bool
  install: str
  examples: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Suite:
  """A family of environments. Its functions import the packages, nothing else does.

  id: how its ids are written; a word in capitals stands for the name within the suite.
  description: in a few words. settings: names that all of its environments take.
  matches: whether an id belongs here; of several suites the first is taken.
  make: the environments, for an `Order` that `check` has let pass.
  check: `types.UserError` for a level or a setting that is wrong; builds nothing.
  names: ids that there are, where the packages are installed; may be long.
  packages: modules that must be importable. extra: of setup.py, which brings them; install: how
    else to get them, where no extra does.
  examples: environments to try it with.
  scales_actions: bounded float actions take the settings of `action_scaling` too.
  named_code: the module to import that an id names, `''` if it names none.
  spelled_elsewhere: words for a message about an id, where another suite has it under another id.
  normalized_score: of an id and the mean return of an episode: 0 is the random player, 1 the human
    one, without a cap; None where no scores of the two are known.
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
  named_code: Callable[[str], str] = lambda environment_id: ''
  spelled_elsewhere: Callable[[str], str] = lambda environment_id: ''
  normalized_score: Callable[[str, float], float | None] = lambda environment_id, score: None

  def missing_packages(self) -> list[str]:
    return [package for package in self.packages if not is_installed(package)]

  def possible_examples(self) -> tuple[tuple[str, str], ...]:
    """As in `KnownEnvironments`."""
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
    """Raises `types.MissingPackage`, which says how to install it, where one is missing."""
    for package in self.missing_packages():
      raise types.MissingPackage(
        f'environment {environment_id!r} needs {package}: {self.install_command()}'
        f'{self.spelled_elsewhere(environment_id)}'
      )


def prefix(suite_id: str) -> str:
  """`atari:` of `atari:GAME`."""
  head, colon, level = suite_id.partition(':')
  return head + colon if colon and level.isupper() else ''


def with_prefix(suite_id: str) -> Callable[[str], bool]:
  """The `matches` of a suite whose ids begin alike."""
  start = prefix(suite_id)
  return lambda environment_id: environment_id.startswith(start)


def level(environment_id: str) -> str:
  """What is behind the first colon."""
  return environment_id.partition(':')[2]


def is_installed(package: str) -> bool:
  return importlib.util.find_spec(package) is not None


def environment_seeds(seed: int, num_environments: int) -> list[int]:
  """A seed below 2**32 for each environment, a function of (seed, index) alone."""
  return [
    int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
    for index in range(num_environments)
  ]
