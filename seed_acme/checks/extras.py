"""Commands that install what a part of the package needs beyond its core, for messages."""

from __future__ import annotations

import contextlib
import importlib
from importlib import metadata
import importlib.util
import pathlib
import shlex
import sys
from typing import Any

from seed_acme import types
from seed_acme.checks import actor_packages
from seed_acme.checks import distribution

_OF_LEARNERS = ((3, 10), (3, 11))  # the Pythons that TensorFlow and Reverb are pinned for
ACTOR_FOLDER = '.venv-actor'
_CONSTRAINTS = 'constraints.txt'
_REINSTALL_ACTORS = (
  'install the wheel of seed_acme_actor again, in a new virtual environment: pip install WHEEL'
)


def serves_learners() -> bool:
  """Whether learners can run under this Python, not only environments."""
  return sys.version_info[:2] in _OF_LEARNERS


def is_for_learners() -> bool:
  """Whether this virtual environment is a learner's; one for actors may have the same Python."""
  return serves_learners() and importlib.util.find_spec('tensorflow') is not None


def checkout() -> pathlib.Path | None:
  """Returns the project's folder, with its Makefile; None if the package came as a wheel."""
  folder = pathlib.Path(__file__).resolve().parents[2]
  is_there = (folder / _CONSTRAINTS).exists() and (folder / 'Makefile').exists()
  return folder if is_there else None


def in_checkout(command: str) -> str:
  """Returns a command of the checkout in a form that can be pasted into the current shell."""
  folder = checkout()
  if folder is None:
    return f'{command}, in a checkout of the project'
  with contextlib.suppress(FileNotFoundError):  # the working folder has been deleted
    if folder == pathlib.Path.cwd().resolve():
      return command
  return f'(cd {shlex.quote(str(folder))} && {command})'


def install_command(extra: str) -> str:
  """Returns the command that installs an extra of setup.py, or says why there is none.

  In a checkout it installs the versions of constraints.txt. Without one it names the packages
  themselves, because this package is on no index. In an environment for actors it is
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


def import_module(module: str, extra: str, user: str) -> Any:
  """Imports a module that an extra installs; `types.UserError` names the extra if it is missing.

  user: what needs it, the beginning of the message.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    raise types.UserError(
      f'{user} needs the package {module}: {install_command(extra)} ({error})'
    ) from error


def _of_learners(extra: str) -> str:
  needed = [] if checkout() else _requirements(extra)
  if needed:
    return f'pip install {shlex.join(needed)}'
  return in_checkout(f"PIP_CONSTRAINT={_CONSTRAINTS} pip install -e '.[{extra}]'")


def _requirements(extra: str) -> list[str]:
  """Returns what the installed distribution requires for an extra, without the markers."""
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
  """Says how this environment gets packages that are missing or have another version."""
  if distribution.is_for_actors():
    return _REINSTALL_ACTORS
  if checkout():
    return f'run `{in_checkout("make setup")}`'
  return 'install the wheel again with pip'


def reinstall() -> str:
  """Says how to make this environment again from scratch."""
  if distribution.is_for_actors():
    return _REINSTALL_ACTORS
  if checkout():
    return f'remove .venv and run `{in_checkout("make setup")}`; it finds a Python 3.11 or 3.10'
  return 'make a new environment of Python 3.11 and install the wheel into it'


def actor_folder() -> str:
  """Returns the folder of an environment for actors, to be named in advice.

  It is this environment if it is one for actors, because `seed-acme actor-env` adds packages to an
  existing one.
  """
  is_virtual = sys.prefix != sys.base_prefix
  return sys.prefix if is_virtual and not is_for_learners() else ACTOR_FOLDER
