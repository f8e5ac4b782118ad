"""Compares the installed packages with the versions that this one requires, importing none."""

from __future__ import annotations

from importlib import metadata
from typing import NamedTuple

from packaging import requirements

from seed_acme.checks import distribution
from seed_acme.checks import extras
from seed_acme.checks import launchpad_wheel


class Version(NamedTuple):
  """The installed version of a package. fix: how to get the required one; '' = it is installed."""

  name: str
  detail: str
  fix: str = ''


def declared() -> list[Version]:
  """Returns a record for each package that a run needs, or an actor if only that is installed."""
  name = distribution.ACTORS if distribution.is_for_actors() else distribution.WHOLE
  try:
    lines = metadata.requires(name) or []
  except metadata.PackageNotFoundError:
    return [Version('versions', 'seed_acme is not installed', extras.repair())]
  return [find(line) for line in lines if applies(line)]


def applies(line: str) -> bool:
  """Whether a requirement applies to this Python without any extra."""
  marker = requirements.Requirement(line).marker
  return marker is None or marker.evaluate({'extra': ''})


def find(line: str) -> Version:
  """Compares the installed version with a requirement such as `numpy<1.24`."""
  requirement = requirements.Requirement(line)
  name, needed = requirement.name, requirement.specifier
  if name == launchpad_wheel.DISTRIBUTION:
    is_ours, detail = launchpad_wheel.describe()
    return Version(name, detail, '' if is_ours else launchpad_wheel.FIX)
  try:
    installed = metadata.version(name)
  except metadata.PackageNotFoundError:
    installed = ''
  if installed and needed.contains(installed, prereleases=True):
    return Version(name, installed)
  return Version(name, f'{installed or "not installed"}, needs {needed}', extras.repair())
