"""What the launches on this machine have in common: a front end watches a process, the launcher."""

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
  """command: by which the launcher's process loads it, its name and its arguments. node: whose
  failure it is that nobody else has reported."""

  command: tuple[str, ...]
  node = processes.LAUNCHER

  def start(
    self, run: launches.Run, layout: layout_lib.Layout, life: launches.Life
  ) -> launches.Outcome:
    """Until the run has ended."""
    assert run.folder is not None
    return lifecycle.run(run.config, run.folder, lambda show: self.chosen(run, show), life)

  def chosen(self, run: launches.Run, show: Callable[[str], None]) -> tuple[str, ...]:
    """Its command, or that of the launch which this one chooses; told by `show`."""
    return self.command

  def lead(self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> int:
    """In the launcher's process, until the run has ended; returns the exit code."""
    raise NotImplementedError

  def end(self, code: int) -> NoReturn:
    """Of the launcher's process."""
    sys.exit(code)
