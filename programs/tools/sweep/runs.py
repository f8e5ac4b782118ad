"""The order in which a sweep's runs are started, as the scheduler asks for them."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import pathlib
from typing import Protocol

from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import state as sweep_state


class Runs(Protocol):
  """The interface that the scheduler calls from its thread."""

  def next(self) -> sweep_plan.Run | None:
    """Returns the run to start now; None if none is left, or if another run has to end first."""

  def to_stop(self, running: Sequence[sweep_plan.Run]) -> list[sweep_plan.Run]:
    """Returns the running runs that are to be pruned. Called about once a second."""

  def ended(self, run: sweep_plan.Run, has_failed: bool) -> None:
    """Records that a run from `next` has ended: finished, pruned, stopped or failed."""

  def known(self) -> list[sweep_plan.Run]:
    """Returns all runs so far, including those that have ended."""

  def num_in_all(self) -> int:
    """Returns the expected total of runs, an estimate while a search may still prune some."""

  def num_over(self) -> int:
    """Returns the number of runs that need no more work."""


class Grid:
  """The unfinished runs of a plan, in its order."""

  def __init__(self, runs: Sequence[sweep_plan.Run]):
    self._runs = list(runs)
    self._finished: set[pathlib.Path] = {
      run.run_dir.path for run in runs if sweep_state.is_finished(run)
    }
    self._pending = collections.deque(run for run in runs if run.run_dir.path not in self._finished)

  def next(self) -> sweep_plan.Run | None:
    """See `Runs`, also for the following methods."""
    return self._pending.popleft() if self._pending else None

  def to_stop(self, running: Sequence[sweep_plan.Run]) -> list[sweep_plan.Run]:
    """Returns [], because a grid prunes nothing."""
    del running
    return []

  def ended(self, run: sweep_plan.Run, has_failed: bool) -> None:
    """Counts the run if it is finished; a failed run stays unfinished."""
    if not has_failed and sweep_state.is_finished(run):
      self._finished.add(run.run_dir.path)

  def known(self) -> list[sweep_plan.Run]:
    """Returns all runs of the plan."""
    return self._runs

  def num_in_all(self) -> int:
    """Returns the number of runs in the plan."""
    return len(self._runs)

  def num_over(self) -> int:
    """Returns the number of finished runs."""
    return len(self._finished)
