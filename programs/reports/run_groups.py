"""Runs by their configuration, as the figures name them and put them together.

Reads `config.json` as the plain JSON that it is: nothing that it names is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import Any

from seed_acme.storage import files
from seed_acme.storage import opening
from seed_acme.storage import saved_config

# What may differ between runs of equal configuration: chance, and what is not learnt from.
_NOT_COMPARED = saved_config.MAY_CHANGE_ON_RESUME | {'seed'}
_MAX_NAMES = 3  # of configurations or environments in a title
_MAX_FIELDS = 3  # in a label
_ABSENT = 'absent'

Settings = dict[str, Any]  # by dotted name


def settings(path: str | os.PathLike[str]) -> Settings:
  """The saved configuration of a run folder; without `name` if it holds none."""
  flat: Settings = {}

  def add(value: Any, name: str) -> None:
    if isinstance(value, dict):
      for key, item in value.items():
        add(item, f'{name}.{key}' if name else key)
    else:
      flat[name] = value

  add(files.read_json(opening.open_run(path).config), '')
  return flat


def heading(runs: Sequence[Settings]) -> str:
  """`catch_vtrace on catch`; '' where a run does not say what it is."""
  parts = []
  for field, many in (('name', 'configurations'), ('environment.id', 'environments')):
    names = list(dict.fromkeys(run.get(field) for run in runs))
    if None in names:
      return ''
    parts.append(', '.join(map(str, names)) if len(names) <= _MAX_NAMES else f'{len(names)} {many}')
  return ' on '.join(parts)


def equal(runs: Sequence[Settings]) -> list[list[int]]:
  """Places of the runs in groups of equal configuration, but for the seed, in order."""
  groups: dict[str, list[int]] = {}
  for place, run in enumerate(runs):
    compared = sorted((name, value) for name, value in run.items() if name not in _NOT_COMPARED)
    groups.setdefault(repr(compared), []).append(place)
  return list(groups.values())


def labels(groups: Sequence[Settings]) -> list[str]:
  """A label for each group, by the settings of one of its runs: the name of the configuration,
  and in what it differs from the groups of the same name."""
  texts = []
  for group in groups:
    namesakes = [other for other in groups if other.get('name') == group.get('name')]
    name = str(group.get('name', _ABSENT))
    texts.append(', '.join([name, *_differences(group, namesakes)]))
  return texts


def _differences(group: Settings, namesakes: Sequence[Settings]) -> list[str]:
  names = dict.fromkeys(name for other in namesakes for name in other)
  differing = [
    name
    for name in names
    if name not in _NOT_COMPARED
    and any(other.get(name, _ABSENT) != group.get(name, _ABSENT) for other in namesakes)
  ]
  # The type of a record says nothing to people where a field of it tells them apart.
  differing = [name for name in differing if not name.endswith('type')] or differing
  shown = [f'{name}={group.get(name, _ABSENT)}' for name in differing[:_MAX_FIELDS]]
  return shown + ['...'] * (len(differing) > _MAX_FIELDS)
