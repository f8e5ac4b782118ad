"""Tells which distribution is installed: the whole project, or the one for hosts with actors only.

The code of both is the same, but `seed_acme_actor` installs neither TensorFlow nor Reverb
(setup.py).
"""

from __future__ import annotations

import functools
from importlib import metadata

from seed_acme import types

WHOLE, ACTORS = 'seed_acme', 'seed_acme_actor'


@functools.cache
def is_for_actors() -> bool:
  """Whether only the distribution for actors is installed.

  A copy that is not installed at all counts as the whole project. The answer is cached, because a
  working folder that joins the path later may be a checkout, whose metadata does not tell what is
  installed.
  """
  return not _is_installed(WHOLE) and _is_installed(ACTORS)


def _is_installed(name: str) -> bool:
  try:
    metadata.distribution(name)
  except metadata.PackageNotFoundError:
    return False
  return True


def require_whole(command: str) -> None:
  """Raises `types.UserError` if only the distribution for actors is installed, which lacks packages
  that `command` needs."""
  if is_for_actors():
    raise types.UserError(
      f'seed-acme {command} does not run here, because {ACTORS} is installed alone, without '
      f'TensorFlow, Reverb and matplotlib: run it where {WHOLE} is installed (Python 3.11 or 3.10)'
      '. seed-acme --help lists what runs here'
    )
