"""How to install what a part of the package needs beyond its core."""

import sys

_OF_LEARNERS = (3, 10)  # the only Python that TensorFlow and Launchpad are pinned for


def install_command(extra: str) -> str:
  """A command for the checkout; the package is on no index. extra: a name of `setup.py`.

  Under another Python than the learner's: how environments for actors are made.
  """
  if sys.version_info[:2] != _OF_LEARNERS:
    return f'seed-acme actor-env FOLDER --extras {extra}'
  return f"PIP_CONSTRAINT=constraints.txt pip install -e '.[{extra}]'"
