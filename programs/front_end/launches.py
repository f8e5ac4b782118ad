"""The ways to launch a run: a file of `programs/launches` each, and an entry of this table.

The command line takes the choices of `--launch` and what help says of them from here. Light to
import: a way is loaded when it is used.
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
  """One way.

  module: has its `Launch`. summary: for help; '' = it is no choice of a user. is_here: whether this
  machine works on the run, in a folder that is here.
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
  words: of it, with a `--config` in any case.
  """

  arguments: Any
  names_config: bool
  words: tuple[str, ...]


class Run(NamedTuple):
  """What is launched.

  folder: of the run, prepared; None where the run is not worked on here. command: that asks for it;
  None where a program does.
  """

  config: config_lib.ExperimentConfig
  folder: run_directory.RunDirectory | None
  command: Command | None = None


class Life(NamedTuple):
  """How a run is accompanied from here.

  max_meetings: times that it is started, beside `max_restarts`, because it has met another host
    that had yet to end.
  should_stop: asked again and again, and once more after the end; True ends the run in good order.
  """

  max_restarts: int = 0
  max_meetings: int = 0
  show: Callable[[str], None] = print
  progress: terminal.Progress | None = None
  should_stop: Callable[[], bool] = lambda: False


class Outcome(NamedTuple):
  """How a run ended.

  exit_code: 0, 1 (failure, or a stop after which something is lost), 2 (wrong input), 129 (SIGHUP),
  130 (Ctrl-C), 143 (SIGTERM) or 141 (nobody reads the output). summary: what stands in
  summary.json. failure: as failure.json, or None; a run that was stopped may have one, too.
  """

  exit_code: int
  summary: dict[str, Any]
  failure: dict[str, Any] | None


class Launch:
  """One way, as the class of this name in its module."""

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Raises `types.UserError`, naming value and fix, for what it cannot do though the layout is
    right."""

  def start(self, run: Run, layout: layout_lib.Layout, life: Life) -> Outcome:
    """Returns when the run has ended, or goes on without this machine."""
    raise NotImplementedError


def choices(is_here: bool | None = None) -> tuple[str, ...]:
  """The values of `--launch`. is_here: those of entries alone that say so."""
  return tuple(
    name for name, entry in TABLE.items() if entry.summary and is_here in (None, entry.is_here)
  )


def summaries() -> str:
  """Of all choices, in a line."""
  return ', '.join(f'{name} = {TABLE[name].summary}' for name in choices())


def is_here(name: str) -> bool:
  """Whether this machine works on a run of this launch; '' and unknown ones are refused later."""
  return name not in TABLE or TABLE[name].is_here


def load(name: str, *arguments: str) -> Any:
  """The `Launch` of this name. arguments: of those that take some."""
  return importlib.import_module(TABLE[name].module).Launch(*arguments)


def check(name: str) -> None:
  """Raises `types.UserError` for what a program cannot give as `launch`."""
  from seed_acme.programs.command_line import wrong_arguments  # a launcher's process checks nothing

  if name in wrong_arguments.GONE:
    raise types.UserError(wrong_arguments.GONE[name])
  known = choices(is_here=True)
  if name not in known:
    raise types.UserError(f'launch ({name!r}) must be one of {", ".join(known)}')


def refuse_shards_elsewhere(layout: layout_lib.Layout) -> None:
  """Raises `types.UserError` where replay nodes would be on other machines: there is one at most.
  Shards within the learner can be anywhere."""
  if layout.has_replay_nodes and layout.is_sharded:
    raise types.UserError(
      f'replay.num_shards ({len(layout.learners[0].shards)}) with replay.separate_process needs '
      '--launch=local_mp, where each shard is a process of this machine: set one of them back, to '
      '1 or to False'
    )
