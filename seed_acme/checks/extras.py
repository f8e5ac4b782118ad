"""How to install what a part of the package needs beyond its core."""

from __future__ import annotations

from importlib import metadata
import importlib.util
import pathlib
import shlex
import sys

from seed_acme.checks import actor_packages
from seed_acme.checks import distribution

_OF_LEARNERS = ((3, 10), (3, 11))  # the Pythons that TensorFlow and Reverb are pinned for
ACTOR_FOLDER = '.venv-actor'
_CONSTRAINTS = 'constraints.txt'
_REINSTALL_ACTORS = (
  'install the wheel of seed_acme_actor again, in a new virtual environment: pip install WHEEL'
)


def serves_learners() -> bool:
  """Whether learners run under this Python, and not environments alone."""
  return sys.version_info[:2] in _OF_LEARNERS


def is_for_learners() -> bool:
  """Whether this environment is a learner's. One for actors may have the same Python."""
  return serves_learners() and importlib.util.find_spec('tensorflow') is not None


def checkout() -> pathlib.Path | None:
  """The project's folder, with its Makefile; None where the package came as a wheel."""
  folder = pathlib.Path(__file__).resolve().parents[2]
  is_there = (folder / _CONSTRAINTS).exists() and (folder / 'Makefile').exists()
  return folder if is_there else None


def in_checkout(command: str) -> str:
  """A shell command that has to run in the checkout, as it can be pasted where this runs."""
  folder = checkout()
  if folder is None:
    return f'{command}, in a checkout of the project'
  if folder == pathlib.Path.cwd().resolve():
    return command
  return f'(cd {shlex.quote(str(folder))} && {command})'


def install_command(extra: str) -> str:
  """The command, or in words why there is none. extra: a name of setup.py.

  In a checkout it installs with the versions of constraints.txt. Without one it names the
  packages themselves, because this package is on no index. In an environment for actors it is
  `seed-acme actor-env`, for the extras that this command takes.
  """
  if is_for_learners():
    return _of_learners(extra)
  if extra in actor_packages.EXTRAS:
    return f'seed-acme actor-env {shlex.quote(actor_folder())} --extras {extra}'
  return (
    f'it comes with the extra {extra} of learners (Python 3.10 and 3.11), and `actor-env` has no '
    'such extra'
  )


def _of_learners(extra: str) -> str:
  needed = [] if checkout() else _requirements(extra)
  if needed:
    return f'pip install {shlex.join(needed)}'
  return in_checkout(f"PIP_CONSTRAINT={_CONSTRAINTS} pip install -e '.[{extra}]'")


def _requirements(extra: str) -> list[str]:
  """What the installed distribution declares for it, without the markers."""
  from packaging import requirements  # actors' Pythons may lack it

  try:
    lines = metadata.requires('seed_acme') or []
  except metadata.PackageNotFoundError:
    return []
  found = [requirements.Requirement(line) for line in lines]
  wanted = [
    needed
    for needed in found
    if needed.marker
    and needed.marker.evaluate({'extra': extra})
    and not needed.marker.evaluate({'extra': ''})
  ]
  for needed in wanted:
    needed.marker = None
  return [str(needed) for needed in wanted]


def repair() -> str:
  """How this environment gets packages that are missing or have another version."""
  if distribution.is_for_actors():
    return _REINSTALL_ACTORS
  if checkout():
    return f'run `{in_checkout("make setup")}`'
  return 'install the wheel again with pip'


def reinstall() -> str:
  """How this environment is made anew."""
  if distribution.is_for_actors():
    return _REINSTALL_ACTORS
  if checkout():
    return f'remove .venv and run `{in_checkout("make setup")}`; it finds a Python 3.11 or 3.10'
  return 'make a new environment of Python 3.11 and install the wheel into it'


def actor_folder() -> str:
  """The folder of an environment for actors, to be named in advice.

  It is this environment where this is one, because `seed-acme actor-env` adds to what is there.
  """
  is_virtual = sys.prefix != sys.base_prefix
  return sys.prefix if is_virtual and not is_for_learners() else ACTOR_FOLDER
