"""The common part of the launches on this machine: a front end that watches a launcher process."""

from __future__ import annotations

from collections.abc import Callable
import sys
from typing import NoReturn

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory


class Here(launches.Launch):
  """A launch on this machine.

  command: name and arguments by which the launcher's process loads it. node: the node that a
    failure is attributed to if no node has reported it.
  """

  command: tuple[str, ...]
  node = processes.LAUNCHER

  def start(
    self, run: launches.Run, layout: layout_lib.Layout, supervision: launches.Supervision
  ) -> launches.Outcome:
    """Runs the front end until the run has ended."""
    assert run.folder is not None
    return lifecycle.run(run.config, run.folder, lambda show: self.chosen(run, show), supervision)

  def chosen(self, run: launches.Run, show: Callable[[str], None]) -> tuple[str, ...]:
    """Returns the command of this launch, or of one that it chooses and reports with `show`."""
    return self.command

  def lead(self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> int:
    """Runs in the launcher's process until the run has ended; returns the exit code."""
    raise NotImplementedError

  def end(self, code: int) -> NoReturn:
    """Ends the launcher's process."""
    sys.exit(code)
