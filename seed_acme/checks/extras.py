"""How to install what a part of the package needs beyond its core."""


def install_command(extra: str) -> str:
  """A command for the checkout; the package is on no index. extra: a name of `setup.py`."""
  return f"PIP_CONSTRAINT=constraints.txt pip install -e '.[{extra}]'"
