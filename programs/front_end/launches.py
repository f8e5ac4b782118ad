"""The launches of a run: each is a file of `programs/launches` and an entry of this table.

The command line takes the choices of `--launch` and their help from here. It is light to import,
because the module of a launch is loaded only on use.
"""

from __future__ import annotations

from collections.abc import Callable
import importlib
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.loggers import terminal
from seed_acme.storage import run_directory

LOCAL_MP, SINGLE_PROCESS, AUTO, HOSTS = 'local_mp', 'single_process', 'auto', 'hosts'


class Entry(NamedTuple):
  """One launch.

  module: module with its `Launch`. summary: for help; '' = users cannot choose it. is_here: whether
    this machine works on the run, in a local folder.
  """

  module: str
  summary: str
  is_here: bool = True


TABLE = {
  LOCAL_MP: Entry('seed_acme.programs.launches.local', 'Launchpad processes'),
  SINGLE_PROCESS: Entry('seed_acme.programs.launches.single_process', 'all in one thread'),
  AUTO: Entry(
    'seed_acme.programs.launches.auto', 'whichever should be faster here (docs/performance.md)'
  ),
  'vertex_ai': Entry(
    'seed_acme.programs.launches.vertex_ai',
    "a job on Google's Vertex AI (docs/scaling.md)",
    is_here=False,
  ),
  HOSTS: Entry('seed_acme.programs.launches.hosts', ''),
}


class Command(NamedTuple):
  """The command line that asks for a run.

  arguments: parsed, a `train.command.TrainArguments`. names_config: whether it has `--config`.
  words: of the command line, always with a `--config`.
  """

  arguments: Any
  names_config: bool
  words: tuple[str, ...]


class Run(NamedTuple):
  """A run to launch.

  folder: the prepared run folder; None if the run is not worked on here. command: the command line
    that asks for it; None for a Python program.
  """

  config: config_lib.ExperimentConfig
  folder: run_directory.RunDirectory | None
  command: Command | None = None


class Supervision(NamedTuple):
  """How the front end accompanies a run.

  max_meetings: further starts, besides `max_restarts`, after meeting another host that was still
    shutting down.
  should_stop: called repeatedly, and once more after the end; True ends the run in good order.
  """

  max_restarts: int = 0
  max_meetings: int = 0
  show: Callable[[str], None] = print
  progress: terminal.Progress | None = None
  should_stop: Callable[[], bool] = lambda: False


class Outcome(NamedTuple):
  """How a run ended.

  exit_code: 0, 1 (failure, or a stop after which something is lost), 2 (wrong input), 129 (SIGHUP),
    130 (Ctrl-C), 143 (SIGTERM) or 141 (nobody reads the output). summary: contents of summary.json;
    empty after wrong input at the start, and for a run that is not worked on here. failure:
    contents of failure.json, or None; a run that was stopped may have one, too.
  """

  exit_code: int
  summary: dict[str, Any]
  failure: dict[str, Any] | None


class Launch:
  """The base class of a launch, which its module defines under this name."""

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Raises `types.UserError` with value and fix for a layout that this launch cannot run."""

  def start(self, run: Run, layout: layout_lib.Layout, supervision: Supervision) -> Outcome:
    """Starts the run; returns when it has ended, or when it continues without this machine."""
    raise NotImplementedError


def choices(is_here: bool | None = None) -> tuple[str, ...]:
  """Returns the values of `--launch`. is_here: only entries with this value; None = all."""
  return tuple(
    name for name, entry in TABLE.items() if entry.summary and is_here in (None, entry.is_here)
  )


def summaries() -> str:
  """Returns all choices with their summaries, in a line."""
  return ', '.join(f'{name} = {TABLE[name].summary}' for name in choices())


def is_here(name: str) -> bool:
  """Whether this machine works on the run; True for '' and unknown names, refused later."""
  return name not in TABLE or TABLE[name].is_here


def load(name: str, *arguments: str) -> Any:
  """Returns the `Launch` of this name. arguments: for its constructor."""
  return importlib.import_module(TABLE[name].module).Launch(*arguments)


def check(name: str) -> None:
  """Raises `types.UserError` for a value of `launch` that Python programs cannot use."""
  from seed_acme.programs.command_line import wrong_arguments  # not for launcher processes

  if name in wrong_arguments.GONE:
    raise types.UserError(wrong_arguments.GONE[name])
  known = choices(is_here=True)
  if name not in known:
    raise types.UserError(f'launch ({name!r}) must be one of {", ".join(known)}')


def refuse_shards_elsewhere(layout: layout_lib.Layout) -> None:
  """Raises `types.UserError` for several replay nodes, which other machines cannot have.

  Replay shards within the learner's process are possible everywhere.
  """
  if layout.has_replay_nodes and layout.is_sharded:
    raise types.UserError(
      f'replay.num_shards ({len(layout.learners[0].shards)}) with replay.separate_process needs '
      '--launch=local_mp, where each shard is a process of this machine: set one of them back, to '
      '1 or to False'
    )
