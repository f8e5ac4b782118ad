"""With whom a learner learns: alone, or as one of several learner hosts.

The training loop and the learner ask their `Peers` and are written for any number of hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import pathlib
import shutil
import threading
import time
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.utils import batch_axes
from seed_acme.utils import collectives
from seed_acme.utils import counting
from seed_acme.utils import fence as fence_lib
from seed_acme.utils import graph_function
from seed_acme.utils import timing

_SAVING_S = 1800.0  # for a host that saves its memory
_WHOLE = (
  'replay_of_all_hosts'  # the folder of all memories, before it becomes a part of the checkpoint
)


class Proposal(NamedTuple):
  """What one host has to say before an update.

  has_sample: whether it could begin. wants_stop: whether it was told to stop. logs, saves: whether
  a row of the log, and a checkpoint, are due. counts: of its own environments.
  """

  has_sample: bool
  wants_stop: bool
  logs: bool
  saves: bool
  counts: counting.Counts


class Decision(NamedTuple):
  """What all hosts do next, the same on each.

  trains: whether they begin the update. stops: whether the run ends here. logs, saves: whether the
  chief writes a row of the log, and a checkpoint, before anything else. counts: of all hosts.
  lacking: the hosts without a sample, where there are several.
  """

  trains: bool
  stops: bool
  logs: bool
  saves: bool
  counts: counting.Counts
  lacking: tuple[int, ...] = ()


class Start(NamedTuple):
  """What a host starts from.

  settings: what all hosts must have in common, by field. arrays: of `Learner.save`.
  """

  settings: dict[str, str]
  counts: counting.Counts
  resumptions: int
  arrays: dict[str, np.ndarray]


class Peers(Protocol):
  """The learner hosts of a run, as one of them sees them. Used by the learner's thread only.

  All hosts call the same methods in the same order. Where there are several, a method returns when
  every host has called it, and raises `collectives.HostLost` where one has not within the time-out.
  """

  @property
  def index(self) -> int:
    """Of this host."""

  @property
  def is_chief(self) -> bool:
    """Whether this host writes the files of the run."""

  @property
  def is_alone(self) -> bool:
    """Whether there is no other host."""

  @property
  def group(self) -> collectives.Group | None:
    """Those over which `data_parallel` deals out the rows of networks; None = this one alone."""

  def connect(self, patience_s: float, should_stop: Callable[[], bool]) -> bool:
    """Before TensorFlow's first operation, see `collectives.Group`; False if it is to stop."""

  def watched(self) -> contextlib.AbstractContextManager[None]:
    """Within it, `HostLost` is raised where TensorFlow speaks of failed operations."""

  def wait_for_chief(self, stop: threading.Event, timeout_s: float) -> None:
    """Until it has ended, see `collectives.Group`."""

  def new_counters(self, clock: Callable[[], float] = time.monotonic) -> counting.Counters:
    """Counters whose `snapshot` is the same on all hosts."""

  def follow(self, own: Callable[[], Start]) -> Start | None:
    """What the chief starts from, for this host to take over; None on the chief, which has it.

    Raises `types.UserError` where settings differ.
    """

  def agree(self, proposal: Proposal, timer: timing.PhaseTimer) -> Decision:
    """Before each update. timer: of this thread; waiting for the others is its phase `meeting`."""

  def to_chief(self, report: Callable[[], Any]) -> list[Any]:
    """On the chief what each of the others reports, anything that JSON knows; elsewhere []."""

  def whole_memory(
    self, save_own: Callable[[], pathlib.Path | None], run: run_directory.RunDirectory
  ) -> pathlib.Path | None:
    """On the chief the folder of the replay memory that all have saved; None if there is none.

    save_own: saves that of this host, in a folder on the run's disk, or says why it cannot.
    """

  def gather(self, sample: types.Sample) -> types.Sample:
    """The whole batch, of which each host has drawn an equal part; in the order of hosts."""

  def own(self, rows: np.ndarray) -> np.ndarray:
    """Those of this host's sample, from `[B]` of the whole batch."""

  def mean(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """In a graph: float32 gradients, averaged over the hosts; the same bits on each."""

  def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which fails where the others do not call it in time."""


class Alone:
  """A host without others: what it proposes is decided, and nothing is exchanged."""

  index, is_chief, is_alone, group = 0, True, True, None

  def connect(self, patience_s: float, should_stop: Callable[[], bool]) -> bool:
    """See `Peers`."""
    del patience_s, should_stop
    return True

  def watched(self) -> contextlib.AbstractContextManager[None]:
    """See `Peers`."""
    return contextlib.nullcontext()

  def wait_for_chief(self, stop: threading.Event, timeout_s: float) -> None:
    """See `Peers`."""

  def new_counters(self, clock: Callable[[], float] = time.monotonic) -> counting.Counters:
    """See `Peers`."""
    return counting.Counters(clock)

  def follow(self, own: Callable[[], Start]) -> Start | None:
    """See `Peers`."""

  def agree(self, proposal: Proposal, timer: timing.PhaseTimer) -> Decision:
    """See `Peers`. With a sample, what is due waits for the update: the row then counts it."""
    del timer
    has_sample, stops, logs, saves, counts = proposal
    trains = has_sample and not stops
    return Decision(trains, stops, logs and not trains, saves and not trains, counts)

  def to_chief(self, report: Callable[[], Any]) -> list[Any]:
    """See `Peers`."""
    del report
    return []

  def whole_memory(
    self, save_own: Callable[[], pathlib.Path | None], run: run_directory.RunDirectory
  ) -> pathlib.Path | None:
    """See `Peers`."""
    del run
    return save_own()

  def gather(self, sample: types.Sample) -> types.Sample:
    """See `Peers`."""
    return sample

  def own(self, rows: np.ndarray) -> np.ndarray:
    """See `Peers`."""
    return rows

  def mean(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """See `Peers`."""
    return gradients

  def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """See `Peers`."""
    return function


ALONE = Alone()  # it has no state


class LearnerHosts:
  """Several learner hosts. Host 0 is the chief.

  Before each update they meet and tell each other what all must decide alike, so that none begins
  an update that another could not take part in.
  """

  is_alone = False

  def __init__(self, group: collectives.Group):
    self.group = group
    self.index, self.is_chief = group.index, group.is_chief
    self._has_started = False
    self._timeout_s: float | None = None  # of the next meeting
    self._join: Callable[[types.Sample], types.Sample] | None = None  # traced for the first sample

  def connect(self, patience_s: float, should_stop: Callable[[], bool]) -> bool:
    """See `Peers`."""
    return self.group.connect(patience_s, should_stop)

  def watched(self) -> contextlib.AbstractContextManager[None]:
    """See `Peers`."""
    return self.group.watched()

  def wait_for_chief(self, stop: threading.Event, timeout_s: float) -> None:
    """See `Peers`."""
    self.group.wait_for_chief(stop, timeout_s)

  def new_counters(self, clock: Callable[[], float] = time.monotonic) -> counting.Counters:
    """See `Peers`."""
    return counting.AgreedCounters(clock)

  def follow(self, own: Callable[[], Start]) -> Start | None:
    """See `Peers`."""
    start = own()
    told = self.group.reports([start.settings, start.counts, start.resumptions])
    self._check_settings([settings for settings, _, _ in told])
    arrays = dict(zip(start.arrays, self.group.of_chief(list(start.arrays.values()))))
    self._has_started = True
    if self.is_chief:
      return None
    _, counts, resumptions = told[0]
    return Start(start.settings, counting.Counts(*counts), resumptions, arrays)

  def _check_settings(self, told: list[dict[str, str]]) -> None:
    own = told[self.index]
    for index, other in enumerate(told):
      for field in sorted(own.keys() | other.keys()):
        if own.get(field) != other.get(field):
          raise types.UserError(
            f'{field} is {own.get(field)} here and {other.get(field)} at learner/{index}: start '
            'every node with the same --config'
          )

  def agree(self, proposal: Proposal, timer: timing.PhaseTimer) -> Decision:
    """See `Peers`. They log and save when it is due on the chief, and go by its clock."""
    own = proposal.counts
    told = (*proposal[:-1], own.wall_s * 1e3, own.agent_steps, own.frames, own.episodes)
    with timer.phase('meeting'):
      rows = self.group.facts([int(x) for x in told], self._timeout_s)
    _, _, logs, saves, wall_ms, *_ = rows[0].tolist()
    agent_steps, frames, episodes = rows[:, 5:].sum(axis=0).tolist()
    counts = counting.Counts(agent_steps, frames, episodes=episodes, wall_s=wall_ms / 1e3)
    lacking = tuple(i for i, row in enumerate(rows) if not row[0])
    stops = bool(rows[:, 1].any())
    # Before the next meeting the chief has a checkpoint to write.
    self._timeout_s = _SAVING_S if saves and not self.is_chief else None
    return Decision(not lacking and not stops, stops, bool(logs), bool(saves), counts, lacking)

  def to_chief(self, report: Callable[[], Any]) -> list[Any]:
    """See `Peers`."""
    told = self.group.reports(None if self.is_chief else report())
    return told[1:] if self.is_chief else []

  def whole_memory(
    self, save_own: Callable[[], pathlib.Path | None], run: run_directory.RunDirectory
  ) -> pathlib.Path | None:
    """See `Peers`. It has a folder for each host, and is dropped where one is missing."""
    if not self._has_started:
      return None  # of an empty memory there is nothing to save
    own = save_own()
    told = self.group.reports(str(own or ''), _SAVING_S)
    if not self.is_chief:
      return None
    parts = [pathlib.Path(part) for part in told if part]
    whole = run.checkpoints / _WHOLE
    shutil.rmtree(whole, ignore_errors=True)
    if len(parts) < self.group.number:
      if own is not None:  # else this host has told why there is none
        lacking = ', '.join(f'learner/{i}' for i, part in enumerate(told) if not part)
        run.add_notice(
          f'the replay memory was not saved, because {lacking} could not save what it holds; the '
          'weights are'
        )
      for part in parts:
        shutil.rmtree(part, ignore_errors=True)
      return None
    whole.mkdir()
    for index, part in enumerate(parts):
      part.rename(whole / checkpoint.part_of_host(index))
    return whole

  def gather(self, sample: types.Sample) -> types.Sample:
    """See `Peers`."""
    if self._join is None:
      specs = tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), sample)
      self._join = self.timed(graph_function.GraphFunction(self._joined, (specs,)))
    return self._join(sample)

  def _joined(self, sample: types.Sample) -> types.Sample:
    """In a graph."""
    axes = tree.flatten(batch_axes.of_sample(sample))
    return tree.unflatten_as(sample, self.group.joined(tree.flatten(sample), axes))

  def own(self, rows: np.ndarray) -> np.ndarray:
    """See `Peers`."""
    number = len(rows) // self.group.number
    return rows[self.index * number :][:number]

  def mean(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """See `Peers`."""
    return self.group.mean(gradients)

  def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """See `Peers`."""
    return self.group.timed_function(function)


def make(index: int, addresses: Sequence[str], timeout_s: float, fence: fence_lib.Fence) -> Peers:
  """As `collectives.Group`; without addresses the host is alone."""
  if not addresses:
    return ALONE
  return LearnerHosts(collectives.Group(index, addresses, timeout_s, fence))
