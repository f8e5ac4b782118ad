"""A check of an environment against constraints.txt: `python check_installed.py FILE`.

It prints `name==version` for each package that is missing or has another version, and exits with 1
if there is any. With `--base` instead of a file, it checks whether installing into the environment
can repair it at all; if not, it prints why and exits with 1. It only reads the records of installed
packages, imports none of them, and needs the standard library alone, because the environment may be
broken.
"""

from __future__ import annotations

from importlib import metadata
import operator
import pathlib
import re
import sys

_OWN = 'seed-acme'
PYTHONS = ((3, 10), (3, 11))
# Packages below this line of the file may be missing.
_OPTIONAL = '# Only where they are wanted:'
# The only form of marker in the file.
_MARKER = re.compile(r'python_version (<|<=|==|>=|>) "(\d+)\.(\d+)"')
_COMPARE = {
  '<': operator.lt,
  '<=': operator.le,
  '==': operator.eq,
  '>=': operator.ge,
  '>': operator.gt,
}
# Distributions of earlier versions of this project that own files of a current package, or require
# packages that conflict with the current ones.
_OF_BEFORE = ('tensorflow-cpu', 'tf-agents')
_LAUNCHPAD, _OURS = 'dm-launchpad', '+seed'


def wrong(
  constraints: str, installed: dict[str, str], python: tuple[int, int] = sys.version_info[:2]
) -> list[str]:
  """Returns the lines of a constraints file that are not met, without their markers.

  constraints: text of the file. installed: versions by normalised name. '' in the result stands for
    this project if it is not installed. Raises `ValueError` for a marker that it cannot read.
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
  """Returns why installing into this environment cannot repair it; '' = it can."""
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
  """Normalises a package name as in PEP 503."""
  return re.sub(r'[-_.]+', '-', name).lower()


def installed_versions() -> dict[str, str]:
  """Returns the packages of this interpreter's environment; records without a name are skipped."""
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
