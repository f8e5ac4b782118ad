"""Checks that Launchpad is the wheel that scripts/launchpad_wheel.py makes."""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = 'dm-launchpad'
VERSION = '0.5.1+seed'
FIX = (
  'run `make setup`; or `python scripts/launchpad_wheel.py wheels`, then '
  '`pip install --no-deps --force-reinstall --no-index --find-links=wheels dm-launchpad`'
)


def describe() -> tuple[bool, str]:
  """Returns whether it is that wheel, and what is installed. Does not import Launchpad."""
  try:
    version = metadata.version(DISTRIBUTION)
  except metadata.PackageNotFoundError:
    return False, f'not installed, needs {VERSION}'
  if version != VERSION:
    return False, f"{version}, DeepMind's wheel with its compiled courier, needs {VERSION}"
  return True, version
