"""Whether an environment holds what constraints.txt fixes: `python check_installed.py FILE`.

Prints `name==version` for each package that is missing or has another version, and ends with 1
if there is any. With `--base` instead of a file: whether the environment can be made right by
installing into it at all; prints why not, and ends with 1. Reads the records of what is installed
and imports none of it, with the standard library alone: the environment may be broken.
"""

from __future__ import annotations

from importlib import metadata
import operator
import pathlib
import re
import sys

_OWN = 'seed-acme'
PYTHONS = ((3, 10), (3, 11))
# Below this line of the file a package may be absent.
_OPTIONAL = '# Only where they are wanted:'
# The one form of marker in the file.
_MARKER = re.compile(r'python_version (<|<=|==|>=|>) "(\d+)\.(\d+)"')
_COMPARE = {
  '<': operator.lt,
  '<=': operator.le,
  '==': operator.eq,
  '>=': operator.ge,
  '>': operator.gt,
}
# Distributions of earlier versions of this project that own the same files as one of today's, or
# want packages that today's exclude.
_OF_BEFORE = ('tensorflow-cpu', 'tf-agents')
_LAUNCHPAD, _OURS = 'dm-launchpad', '+seed'


def wrong(
  constraints: str, installed: dict[str, str], python: tuple[int, int] = sys.version_info[:2]
) -> list[str]:
  """constraints: text of the file. installed: versions by normal name. Returns the lines that
  are not met, without their markers; '' stands for this project where it is not installed.

  Raises `ValueError` for a marker that it cannot read.
  """
  unmet = []
  is_optional = False
  for line in constraints.splitlines():
    is_optional = is_optional or line == _OPTIONAL
    pin, _, marker = (part.strip() for part in line.partition('#')[0].partition(';'))
    name, _, version = pin.partition('==')
    is_wanted = pin and not (is_optional and normal(name) not in installed)
    if is_wanted and _applies(marker, python) and installed.get(normal(name)) != version:
      unmet.append(pin)
  return unmet if _OWN in installed else [*unmet, '']


def why_no_base(installed: dict[str, str], python: tuple[int, int] = sys.version_info[:2]) -> str:
  """Why installing into this environment cannot make it right; '' = it can."""
  if python not in PYTHONS:
    return f'it has Python {python[0]}.{python[1]}'
  for name in _OF_BEFORE:
    if name in installed:
      return f'it holds {name} {installed[name]}'
  launchpad = installed.get(_LAUNCHPAD, _OURS)
  return '' if launchpad.endswith(_OURS) else f"it holds DeepMind's {_LAUNCHPAD} {launchpad}"


def _applies(marker: str, python: tuple[int, int]) -> bool:
  if not marker:
    return True
  match = _MARKER.fullmatch(marker)
  if not match:
    raise ValueError(f'marker {marker!r}: only python_version is read, as in {_MARKER.pattern}')
  return _COMPARE[match[1]](python, (int(match[2]), int(match[3])))


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
  if sys.argv[1] == '--base':
    reason = why_no_base(installed_versions())
    found = [reason] if reason else []
  else:
    found = wrong(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8'), installed_versions())
  print('\n'.join(filter(None, found)))
  sys.exit(bool(found))
