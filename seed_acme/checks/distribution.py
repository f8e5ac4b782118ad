"""Which distribution is installed: all of the project, or what hosts need that run actors only.

The code of both is the same; `seed_acme_actor` brings neither TensorFlow nor Reverb (setup.py).
"""

from __future__ import annotations

import functools
from importlib import metadata

from seed_acme import types

WHOLE, ACTORS = 'seed_acme', 'seed_acme_actor'
# What runs without those two.
COMMANDS_OF_ACTORS = ('node actor', 'plan', 'list', 'doctor', 'actor-env', 'completion')


@functools.cache
def is_for_actors() -> bool:
  """Whether that of actors is installed, alone.

  A copy that is not installed at all counts as the whole. Asked once: a working folder that joins
  the path later may be a checkout, whose own records say nothing of what is installed.
  """
  return not _is_installed(WHOLE) and _is_installed(ACTORS)


def _is_installed(name: str) -> bool:
  try:
    metadata.distribution(name)
  except metadata.PackageNotFoundError:
    return False
  return True


def check_command(command: str) -> None:
  """Raises `types.UserError` for one that the distribution of actors, installed alone, cannot run.

  command: `train`; `node` may or may not have its role behind it.
  """
  if is_for_actors() and not any(
    f'{known} '.startswith(f'{command} ') for known in COMMANDS_OF_ACTORS
  ):
    raise types.UserError(
      f'seed-acme {command} does not run here, because {ACTORS} is installed alone, without '
      f'TensorFlow, Reverb and matplotlib: run it where {WHOLE} is installed (Python 3.11 or 3.10)'
      f'. What runs here: {", ".join(COMMANDS_OF_ACTORS)}'
    )
