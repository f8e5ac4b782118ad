"""The record of a command, and the search for all of them."""

from __future__ import annotations

import functools
import importlib
import pathlib
from typing import Any, Literal, NamedTuple, get_args

from seed_acme import types
from seed_acme.checks import near_names

_PROGRAMS = __name__.rsplit('.', 2)[0]
_FILE = 'commands'  # .py, in the folder below programs/ that holds the code
Group = Literal['Training', 'Results', 'Measuring', 'This installation']


class Command(NamedTuple):
  """One command of `seed-acme`. Its modules are imported only when it is called or completed.

  name, summary, group: as `seed-acme --help` lists them.
  arguments: `module:Class` in the record's folder: a dataclass whose fields are the options, and
    whose docstring is the help.
  run: `module:function` that takes these arguments, and a `given.Given` if there is a `config`. It
    returns the exit code or an `Answer`.
  config: default of `--config`; '' = the command takes no configuration.
  needs_config: when `--config` must be given; the default then serves for help alone. '' = never.
  runs_beside_actors: whether it also runs in an installation for actors only
    (checks/distribution.py).
  folder: the package that holds the record.
  """

  name: str
  summary: str
  group: Group
  arguments: str
  run: str
  config: str = ''
  needs_config: str = ''
  runs_beside_actors: bool = False
  folder: str = ''

  def load(self, path: str) -> Any:
    """Imports and returns what `path` names, which is `arguments` or `run`."""
    module, _, name = path.partition(':')
    return getattr(importlib.import_module(f'{self.folder}.{module}'), name)


class Answer(NamedTuple):
  """A command's result. The command line prints `record` as JSON with `--json`, else `text`."""

  record: Any
  text: str
  exit_code: int = 0


@functools.cache
def every() -> dict[str, Command]:
  """Returns all commands by name, ordered by group and name."""
  found = []
  for path in importlib.import_module(_PROGRAMS).__path__:
    for file in pathlib.Path(path).rglob(f'{_FILE}.py'):
      folder = '.'.join((_PROGRAMS, *file.parent.relative_to(path).parts))
      names = vars(importlib.import_module(f'{folder}.{_FILE}'))
      found += [x._replace(folder=folder) for x in names.values() if isinstance(x, Command)]
  found.sort(key=lambda record: (get_args(Group).index(record.group), record.name))
  return {record.name: record for record in found}


# What other programs call a command.
_HINTS = {
  'resume': ': a run is resumed by seed-acme train --run_dir=RUN',
  'test': ': a run is played by seed-acme evaluate RUN',
}


def find(name: str) -> Command:
  """Returns the command of this name; raises `types.UserError` if there is none."""
  if name not in every():
    hint = _HINTS.get(name) or near_names.hint(name, every()) or f'; known: {", ".join(every())}'
    raise types.UserError(f'unknown command {name!r}{hint}\nsee: seed-acme --help')
  return every()[name]
