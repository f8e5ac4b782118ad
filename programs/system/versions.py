"""Whether packages are installed in the versions that this one declares. Imports none of them."""

from __future__ import annotations

from importlib import metadata
from typing import NamedTuple

from packaging import requirements

from seed_acme.checks import distribution
from seed_acme.checks import extras
from seed_acme.checks import launchpad_wheel


class Version(NamedTuple):
  """What is installed of a package. fix: what to do where that is not what is needed, or ''."""

  name: str
  detail: str
  fix: str = ''


def declared() -> list[Version]:
  """Of each package that a run needs, or an actor where actors are installed alone."""
  name = distribution.ACTORS if distribution.is_for_actors() else distribution.WHOLE
  try:
    lines = metadata.requires(name) or []
  except metadata.PackageNotFoundError:
    return [Version('versions', 'seed_acme is not installed', extras.repair())]
  return [find(line) for line in lines if applies(line)]


def applies(line: str) -> bool:
  """Whether a requirement holds under this Python without any extra."""
  marker = requirements.Requirement(line).marker
  return marker is None or marker.evaluate({'extra': ''})


def find(line: str) -> Version:
  """Holds the installed version against a requirement such as `numpy<1.24`."""
  requirement = requirements.Requirement(line)
  name, needed = requirement.name, requirement.specifier
  if name == launchpad_wheel.DISTRIBUTION:
    is_ours, detail = launchpad_wheel.describe()
    return Version(name, detail, '' if is_ours else launchpad_wheel.FIX)
  try:
    installed = metadata.version(name)
  except metadata.PackageNotFoundError:
    return Version(name, f'not installed, needs {needed}', extras.repair())
  if needed.contains(installed, prereleases=True):
    return Version(name, installed)
  return Version(name, f'{installed}, needs {needed}', extras.repair())
