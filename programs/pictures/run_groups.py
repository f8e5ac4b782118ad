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

# Fields in which runs of equal configuration may differ: the seed, and what may change on resume;
# `_LENGTH` only if no schedule of the run goes over it.
_NOT_COMPARED = saved_config.MAY_CHANGE_ON_RESUME | {'seed'}
_LENGTH = 'total_steps'
_MAX_NAMES = 3  # configurations or environments in a title
_MAX_FIELDS = 3  # fields in a label
_MOST_FIELDS = 5  # fields in a label where fewer do not tell the lines apart
_ABSENT = 'absent'

Settings = dict[str, Any]  # by dotted name


def settings(path: str | os.PathLike[str]) -> Settings:
  """Returns the saved configuration of a run folder; without `name` if it holds none."""
  flat: Settings = {}

  def add(value: Any, name: str) -> None:
    if isinstance(value, dict) and {**value, 'value': ''} == {'type': 'float', 'value': ''}:
      # an infinity, which JSON does not have
      flat[name] = value.get('value')
    elif isinstance(value, dict):
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
    compared = sorted(_compared(run, _NOT_COMPARED).items())
    groups.setdefault(repr(compared), []).append(place)
  return list(groups.values())


def _compared(run: Settings, not_compared: Collection[str]) -> Settings:
  """Returns the fields of a run that are compared."""
  has_length = bool(saved_config.uses_of_total_steps(run))
  return {
    name: value
    for name, value in run.items()
    if name not in not_compared or (name == _LENGTH and has_length)
  }


def labels(groups: Sequence[Settings], folders: Sequence[str]) -> list[str]:
  """Returns a label for each group, given the settings and the folder of one of its runs.

  It has the name of the configuration, and the differences from the groups of the same name: the
  few fields that tell them apart, and the folder where these do not.
  """
  compared = [_compared(group, _NOT_COMPARED) for group in groups]
  texts = []
  for group in compared:
    namesakes = [other for other in compared if other.get('name') == group.get('name')]
    differing = _differing(namesakes)
    told = _telling(differing, namesakes)
    shown = _shown(group, told, is_cut=len(differing) > len(told))
    texts.append(', '.join([str(group.get('name', _ABSENT)), *shown]))
  return [
    text if texts.count(text) == 1 else f'{text}, {folder}' for text, folder in zip(texts, folders)
  ]


def _telling(differing: Sequence[str], runs: Sequence[Settings]) -> list[str]:
  """Returns the few of the differing fields that tell the most runs apart, in their order."""
  first = list(differing[:_MAX_FIELDS])
  if _num_different(first, runs) == len(runs):
    return first
  chosen: list[str] = []

  def gain(name: str) -> tuple[bool, int]:
    # A length, which not every run has, says less than another field, such as the schedule itself.
    told = _num_different([*chosen, name], runs)
    return told > _num_different(chosen, runs) and name != _LENGTH, told

  while len(chosen) < len(differing):
    enough = _MAX_FIELDS if _num_different(chosen, runs) == len(runs) else _MOST_FIELDS
    if len(chosen) >= enough:
      break
    chosen.append(max((name for name in differing if name not in chosen), key=gain))
  return [name for name in differing if name in chosen]


def _num_different(names: Sequence[str], runs: Sequence[Settings]) -> int:
  """Returns how many groups of runs these fields tell apart."""
  return len(set(_values(names, runs)))


def differences_of_runs(runs: Sequence[Settings]) -> list[list[str]]:
  """Returns for each run the `field=value` that distinguish it, including its seed.

  Runs are compared with all others if few fields differ. Otherwise they are compared with those of
  the same name, since two configurations of different names may differ in everything.
  """
  compared = [_compared(run, _NOT_COMPARED - {'seed'}) for run in runs]
  nameless = [{name: value for name, value in run.items() if name != 'name'} for run in compared]
  if len(_differing(nameless)) <= _MAX_FIELDS:
    return [_differences(run, nameless) for run in nameless]
  return [
    _differences(run, [other for other in compared if other.get('name') == run.get('name')])
    for run in compared
  ]


def _differing(runs: Sequence[Settings]) -> list[str]:
  """Returns the names of the fields whose values differ."""
  names = dict.fromkeys(name for run in runs for name in run)
  differing = []
  for name in names:
    # A run without a length is compared with none, whatever the lengths of the others.
    values = [run.get(name, _ABSENT) for run in runs if name in run or name != _LENGTH]
    if any(value != values[0] for value in values):
      differing.append(name)
  return [name for name in differing if not _is_implied_type(name, differing, runs)]


def _is_implied_type(name: str, differing: Sequence[str], runs: Sequence[Settings]) -> bool:
  """Whether this is the type of a record, and fields of the record already tell its types apart."""
  record, dot, field = name.rpartition('.')
  if field != 'type':
    return False
  others = [other for other in differing if other.startswith(record + dot) and other != name]
  types = [run.get(name, _ABSENT) for run in runs]
  return len(set(zip(_values(others, runs), types))) == _num_different(others, runs)


def _values(names: Sequence[str], runs: Sequence[Settings]) -> list[str]:
  """Returns the values of these fields in each run, as text."""
  return [repr([run.get(name, _ABSENT) for name in names]) for run in runs]


def _differences(run: Settings, others: Sequence[Settings]) -> list[str]:
  """Returns the `field=value` that differ. run, others: compared fields; others include the run."""
  differing = _differing(others)
  return _shown(run, differing[:_MAX_FIELDS], is_cut=len(differing) > _MAX_FIELDS)


def _shown(run: Settings, names: Sequence[str], is_cut: bool) -> list[str]:
  fields = [f'{name}={run.get(name, _ABSENT)}' for name in names if name in run or name != _LENGTH]
  return fields + ['...'] * is_cut
