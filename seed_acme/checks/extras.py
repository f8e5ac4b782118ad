"""How to install what a part of the package needs beyond its core."""

import sys

_OF_LEARNERS = ((3, 10), (3, 11))  # the Pythons that TensorFlow and Reverb are pinned for


def serves_learners() -> bool:
  """Whether learners run under this Python, and not environments alone."""
  return sys.version_info[:2] in _OF_LEARNERS


def install_command(extra: str) -> str:
  """A command for the checkout; the package is on no index. extra: a name of `setup.py`.

  Under another Python than the learner's: how environments for actors are made.
  """
  if not serves_learners():
    return f'seed-acme actor-env FOLDER --extras {extra}'
  return f"PIP_CONSTRAINT=constraints.txt pip install -e '.[{extra}]'"
