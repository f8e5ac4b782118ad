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
    return lifecycle.run(run, self, life)

  def chosen(
    self,
    config: config_lib.ExperimentConfig,
    run: run_directory.RunDirectory,
    show: Callable[[str], None],
  ) -> Here:
    """Itself, or for one that only chooses, what it chooses; told by `show`."""
    return self

  def lead(self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> int:
    """In the launcher's process, until the run has ended; returns the exit code."""
    raise NotImplementedError

  def end(self, code: int) -> NoReturn:
    """Of the launcher's process."""
    sys.exit(code)
