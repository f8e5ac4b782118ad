"""Whether an environment holds what constraints.txt fixes: `python check_installed.py FILE`.

Prints `name==version` for each package that is missing or has another version, and ends with 1
if there is any. Reads the records of what is installed and imports none of it, with the standard
library alone: the environment may be broken.
"""

from __future__ import annotations

from importlib import metadata
import pathlib
import re
import sys

_OWN = 'seed-acme'


def wrong(constraints: str, installed: dict[str, str]) -> list[str]:
  """constraints: text of the file. installed: versions by normal name. Returns the lines that
  are not met; '' stands for this project where it is not installed."""
  lines = [line.split('#')[0].strip() for line in constraints.splitlines()]
  unmet = []
  for line in filter(None, lines):
    name, _, version = line.partition('==')
    if installed.get(normal(name)) != version:
      unmet.append(line)
  return unmet if _OWN in installed else [*unmet, '']


def normal(name: str) -> str:
  """As PEP 503 has it."""
  return re.sub(r'[-_.]+', '-', name).lower()


def installed_versions() -> dict[str, str]:
  """Of this interpreter's environment. A record without a name is no package's."""
  return {
    normal(distribution.metadata['Name']): distribution.version
    for distribution in metadata.distributions()
    if distribution.metadata['Name']
  }


if __name__ == '__main__':
  unmet_lines = wrong(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8'), installed_versions())
  print('\n'.join(filter(None, unmet_lines)))
  sys.exit(bool(unmet_lines))
