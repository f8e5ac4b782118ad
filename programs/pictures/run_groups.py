"""Names and groups of runs in figures, by their configuration.

Reads `config.json` as plain JSON and imports no code that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
import os
from typing import Any

from seed_acme.files import local
from seed_acme.storage import opening
from seed_acme.storage import saved_config

# Fields in which runs of equal configuration may differ: the seed, and what does not affect
# learning.
_NOT_COMPARED = saved_config.MAY_CHANGE_ON_RESUME | {'seed'}
_MAX_NAMES = 3  # configurations or environments in a title
_MAX_FIELDS = 3  # fields in a label
_ABSENT = 'absent'

Settings = dict[str, Any]  # by dotted name


def settings(path: str | os.PathLike[str]) -> Settings:
  """Returns the saved configuration of a run folder; without `name` if it holds none."""
  flat: Settings = {}

  def add(value: Any, name: str) -> None:
    if isinstance(value, dict):
      for key, item in value.items():
        add(item, f'{name}.{key}' if name else key)
    else:
      flat[name] = value

  add(local.read_json(opening.open_run(path).config), '')
  return flat


def heading(runs: Sequence[Settings]) -> str:
  """Returns a heading such as `catch_vtrace on catch`; '' if a run's configuration is unknown."""
  parts = []
  for field, many in (('name', 'configurations'), ('environment.id', 'environments')):
    names = list(dict.fromkeys(run.get(field) for run in runs))
    if None in names:
      return ''
    parts.append(', '.join(map(str, names)) if len(names) <= _MAX_NAMES else f'{len(names)} {many}')
  return ' on '.join(parts)


def equal(runs: Sequence[Settings]) -> list[list[int]]:
  """Returns the indices of runs in groups of equal configuration, except for the seed, in order."""
  groups: dict[str, list[int]] = {}
  for place, run in enumerate(runs):
    compared = sorted((name, value) for name, value in run.items() if name not in _NOT_COMPARED)
    groups.setdefault(repr(compared), []).append(place)
  return list(groups.values())


def labels(groups: Sequence[Settings]) -> list[str]:
  """Returns a label for each group, given the settings of one of its runs.

  It has the name of the configuration, and the differences from the groups of the same name.
  """
  texts = []
  for group in groups:
    namesakes = [other for other in groups if other.get('name') == group.get('name')]
    name = str(group.get('name', _ABSENT))
    texts.append(', '.join([name, *_differences(group, namesakes)]))
  return texts


def differences_of_runs(runs: Sequence[Settings]) -> list[list[str]]:
  """Returns for each run the `field=value` that distinguish it, including its seed.

  Runs are compared with all others if few fields differ. Otherwise they are compared with those of
  the same name, since two configurations of different names may differ in everything.
  """
  compared = [{name: value for name, value in run.items() if name != 'name'} for run in runs]
  not_compared = _NOT_COMPARED - {'seed'}
  if len(_differing(compared, not_compared)) <= _MAX_FIELDS:
    return [_differences(run, compared, not_compared) for run in compared]
  return [
    _differences(
      run, [other for other in runs if other.get('name') == run.get('name')], not_compared
    )
    for run in runs
  ]


def _differing(runs: Sequence[Settings], not_compared: Collection[str]) -> list[str]:
  """Returns the names of the fields whose values differ."""
  names = dict.fromkeys(name for run in runs for name in run)
  differing = [
    name
    for name in names
    if name not in not_compared
    and any(run.get(name, _ABSENT) != runs[0].get(name, _ABSENT) for run in runs)
  ]
  return [name for name in differing if not _is_implied_type(name, differing, runs)]


def _is_implied_type(name: str, differing: Sequence[str], runs: Sequence[Settings]) -> bool:
  """Whether this is the type of a record, and fields of the record already tell its types apart."""
  record, dot, field = name.rpartition('.')
  if field != 'type':
    return False
  others = [other for other in differing if other.startswith(record + dot) and other != name]
  values = [repr([run.get(other, _ABSENT) for other in others]) for run in runs]
  types = [run.get(name, _ABSENT) for run in runs]
  return len(set(zip(values, types))) == len(set(values))


def _differences(
  run: Settings, others: Sequence[Settings], not_compared: Collection[str] = _NOT_COMPARED
) -> list[str]:
  """Returns the `field=value` that differ. others: include the run itself."""
  differing = _differing(others, not_compared)
  shown = [f'{name}={run.get(name, _ABSENT)}' for name in differing[:_MAX_FIELDS]]
  return shown + ['...'] * (len(differing) > _MAX_FIELDS)
