"""Which run of a sweep comes next: what the scheduler asks."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import pathlib
from typing import Protocol

from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import state as sweep_state


class Runs(Protocol):
  """Asked by the scheduler, from its thread."""

  def next(self) -> sweep_plan.Run | None:
    """The run to start now; None where nothing is left, or nothing before another run ends."""

  def to_stop(self, running: Sequence[sweep_plan.Run]) -> list[sweep_plan.Run]:
    """Those under way that are not worth the rest of their budget. Asked about once a second."""

  def ended(self, run: sweep_plan.Run, has_failed: bool) -> None:
    """A run of `next` has ended: it is finished, was given up, was stopped, or has failed."""

  def known(self) -> list[sweep_plan.Run]:
    """All runs so far, those that are over too."""

  def num_in_all(self) -> int:
    """Runs that there will have been; an estimate while a search may still give up some."""

  def num_over(self) -> int:
    """Runs of which nothing is left to do."""


class Grid:
  """The runs of a plan, in its order, but for those that are finished."""

  def __init__(self, runs: Sequence[sweep_plan.Run]):
    self._runs = list(runs)
    finished = [run for run in runs if sweep_state.read(run).status == sweep_state.FINISHED]
    self._finished: set[pathlib.Path] = {run.run_dir.path for run in finished}
    self._pending = collections.deque(run for run in runs if run.run_dir.path not in self._finished)

  def next(self) -> sweep_plan.Run | None:
    """See `Runs`, as for all that follow."""
    return self._pending.popleft() if self._pending else None

  def to_stop(self, running: Sequence[sweep_plan.Run]) -> list[sweep_plan.Run]:
    """None."""
    del running
    return []

  def ended(self, run: sweep_plan.Run, has_failed: bool) -> None:
    """A run that has failed stays unfinished."""
    if not has_failed and sweep_state.read(run).status == sweep_state.FINISHED:
      self._finished.add(run.run_dir.path)

  def known(self) -> list[sweep_plan.Run]:
    """All of the plan."""
    return self._runs

  def num_in_all(self) -> int:
    """Of the plan."""
    return len(self._runs)

  def num_over(self) -> int:
    """The finished ones."""
    return len(self._finished)
