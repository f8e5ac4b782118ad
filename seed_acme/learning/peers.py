"""The learner hosts that learn together: a single one, or several.

The training loop and the learner use `Peers`, so that neither has to know how many hosts there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import pathlib
import shutil
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.learning import batch_axes
from seed_acme.parallel import collectives
from seed_acme.progress import counting
from seed_acme.progress import timing
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.tensors import graph_function
from seed_acme.transport import fence as fence_lib

# Limit for the first exchange, because hosts may be ready minutes apart: one has to make an
# environment, to restore a memory or to compile kernels that another finds on its disk.
_FIRST_MEETING_S = 600.0
_SAVING_S = 1800.0  # time limit for a host that saves its memory, or for the chief's checkpoint
_WHOLE = 'replay_of_all_hosts'  # folder of all memories, before it is part of the checkpoint


class Proposal(NamedTuple):
  """A host's message to the others before an update.

  has_sample: whether it has its part of the batch. wants_stop: whether it was told to stop. logs,
  saves: whether a row of the log, and a checkpoint, are due here. counts: this host's own counts.
  """

  has_sample: bool
  wants_stop: bool
  logs: bool
  saves: bool
  counts: counting.Counts


class Decision(NamedTuple):
  """A decision on the next action of all hosts, which is the same on each of them.

  trains: whether they begin the update. stops: whether the run ends now. logs, saves: whether the
  chief first writes a row of the log, and a checkpoint. counts: the sum of all hosts' counts.
  lacking: hosts that the others wait for, because they have no sample.
  """

  trains: bool
  stops: bool
  logs: bool
  saves: bool
  counts: counting.Counts
  lacking: tuple[int, ...] = ()


class Start(NamedTuple):
  """The state from which a host begins to learn.

  settings: fields of the configuration that must be the same on all hosts. arrays: the result of
  `Learner.save`.
  """

  settings: dict[str, str]
  counts: counting.Counts
  resumptions: int
  arrays: dict[str, np.ndarray]


class Peers:
  """The learner hosts of a run, from the view of one of them. Used by the learner's thread only.

  This class is for a single host: its proposals are the decisions, and nothing is exchanged, so it
  adds no cost to an update. `LearnerHosts` is for several.

  All hosts call the same methods in the same order. With several hosts, a method returns when every
  host has called it, and raises `collectives.HostLost` if one has not within the time-out.

  index: number of this host. is_chief: whether it writes the files of the run. is_alone: whether
  there is no other. group: hosts over which `data_parallel` splits the rows of networks, or None.
  """

  index: int = 0
  is_chief: bool = True
  is_alone: bool = True
  group: collectives.Group | None = None

  def connect(self, patience_s: float, should_stop: Callable[[], bool]) -> bool:
    """Connects to the other hosts, before TensorFlow's first operation, see `collectives.Group`;
    returns False if it was told to stop."""
    return True

  def watched(self) -> contextlib.AbstractContextManager[None]:
    """Returns a context that turns TensorFlow's errors about failed operations into `HostLost`."""
    return contextlib.nullcontext()

  def wait_for_chief(self, stop: threading.Event, timeout_s: float) -> None:
    """Waits until the chief has ended, see `collectives.Group`."""

  def new_counters(self, clock: Callable[[], float] = time.monotonic) -> counting.Counters:
    """Returns counters whose `snapshot` is the same on all hosts between two decisions."""
    return counting.Counters(clock)

  def follow(self, own: Callable[[], Start]) -> Start | None:
    """Returns the chief's state, which this host must load; None on the chief itself.

    own: makes the state of this host; called only if there are several hosts. Raises
    `types.UserError` if settings differ.
    """
    return None

  def agree(self, proposal: Proposal, timer: timing.PhaseTimer) -> Decision:
    """Agrees with all hosts on what to do; called before each update. timer: the thread's, which
    measures the wait for the others as the phase `meeting`.

    On a single host, a row or checkpoint that is due waits for the update, if there is one, so that
    it includes the update.
    """
    has_sample, stops, logs, saves, counts = proposal
    trains = has_sample and not stops
    return Decision(trains, stops, logs and not trains, saves and not trains, counts)

  def to_chief(self, report: Callable[[], Any]) -> list[Any]:
    """Returns the other hosts' reports on the chief, and [] elsewhere.

    report: makes this host's report, which must be valid JSON; not called on the chief.
    """
    return []

  def whole_memory(
    self, save_own: Callable[[], pathlib.Path | None], run: run_directory.RunDirectory
  ) -> pathlib.Path | None:
    """Saves the replay memory of all hosts. Returns its folder on the chief; None elsewhere, or if
    it could not be saved.

    save_own: saves the memory of this host in a folder on the run's disk, or tells the user why
    it cannot.
    """
    return save_own()

  def wait_until_saved(self) -> None:
    """Waits until the chief has written a checkpoint. The chief calls it when that is done."""

  def gather(self, sample: types.Sample, keeps_observations: bool) -> types.Sample:
    """Returns the whole batch, of which each host has drawn an equal part.

    keeps_observations: the observations and initial states of the result are those of this host's
    part only, and are not sent.
    """
    return sample

  def own(self, values: np.ndarray) -> np.ndarray:
    """Returns those of `[B]` values of the whole batch that belong to this host's sample."""
    return values

  def mean(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """Averages float32 gradients over the hosts, in a graph; bit-identical on each."""
    return gradients

  def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function`, which fails if the other hosts do not call it in time."""
    return function


ALONE = Peers()  # it has no state


class LearnerHosts(Peers):
  """Several learner hosts. Host 0 is the chief.

  Before each update they exchange proposals and all reach the same decision, so that none begins an
  update that another could not take part in.
  """

  is_alone = False
  group: collectives.Group

  def __init__(self, group: collectives.Group):
    self.group = group
    self.index, self.is_chief = group.index, group.is_chief
    self._has_started = False
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
    own_state = [start.settings, start.counts, start.resumptions]
    reports = self.group.reports(own_state, _FIRST_MEETING_S)
    self._check_settings([settings for settings, _, _ in reports])
    arrays = dict(zip(start.arrays, self.group.of_chief(list(start.arrays.values()))))
    self._has_started = True
    if self.is_chief:
      return None
    _, counts, resumptions = reports[0]
    return Start(start.settings, counting.Counts(*counts), resumptions, arrays)

  def _check_settings(self, reports: list[dict[str, str]]) -> None:
    own = reports[self.index]
    for index, other in enumerate(reports):
      for field in sorted(own.keys() | other.keys()):
        if own.get(field) != other.get(field):
          raise types.UserError(
            f'{field} is {own.get(field)} here and {other.get(field)} at learner/{index}: start '
            'every node with the same --config'
          )

  def agree(self, proposal: Proposal, timer: timing.PhaseTimer) -> Decision:
    """See `Peers`. Rows and checkpoints are written when due on the chief, by its clock."""
    own = proposal.counts
    facts = (*proposal[:-1], own.wall_s * 1e3, own.agent_steps, own.frames, own.episodes)
    with timer.phase('meeting'):
      rows = self.group.facts([int(x) for x in facts])
    _, _, logs, saves, wall_ms, *_ = rows[0].tolist()
    agent_steps, frames, episodes = rows[:, 5:].sum(axis=0).tolist()
    counts = counting.Counts(agent_steps, frames, episodes=episodes, wall_s=wall_ms / 1e3)
    lacking = tuple(i for i, row in enumerate(rows) if not row[0])
    stops = bool(rows[:, 1].any())
    return Decision(not lacking and not stops, stops, bool(logs), bool(saves), counts, lacking)

  def to_chief(self, report: Callable[[], Any]) -> list[Any]:
    """See `Peers`."""
    reports = self.group.reports(None if self.is_chief else report())
    return reports[1:] if self.is_chief else []

  def whole_memory(
    self, save_own: Callable[[], pathlib.Path | None], run: run_directory.RunDirectory
  ) -> pathlib.Path | None:
    """See `Peers`. The result has a folder for each host; it is dropped if one is missing."""
    if not self._has_started:
      return None  # an empty memory has nothing to save
    own = save_own()
    reports = self.group.reports(str(own or ''), _SAVING_S)
    if not self.is_chief:
      return None
    parts = [pathlib.Path(part) for part in reports if part]
    whole = run.checkpoints / _WHOLE
    shutil.rmtree(whole, ignore_errors=True)
    if len(parts) < self.group.number:
      if own is not None:  # else this host has already said why there is none
        lacking = ', '.join(f'learner/{i}' for i, part in enumerate(reports) if not part)
        run.add_notice(
          f'the replay memory was not saved, because {lacking} could not save what it holds; the '
          'weights are'
        )
      for part in parts:
        shutil.rmtree(part, ignore_errors=True)
      return None
    try:
      whole.mkdir()
      for index, part in enumerate(parts):
        part.rename(whole / checkpoint.part_of_host(index))
    except OSError as error:
      run.add_notice(f'the replay memory was not saved ({error}); the weights are')
      for left in (whole, *parts):
        shutil.rmtree(left, ignore_errors=True)
      return None
    return whole

  def wait_until_saved(self) -> None:
    """See `Peers`."""
    self.group.facts([0], None if self.is_chief else _SAVING_S)

  def gather(self, sample: types.Sample, keeps_observations: bool) -> types.Sample:
    """See `Peers`."""
    sent = _with_observations(sample, (), ()) if keeps_observations else sample
    if self._join is None:
      specs = tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), sent)
      self._join = self.timed(graph_function.GraphFunction(self._joined, (specs,)))
    joined = self._join(sent)
    if not keeps_observations:
      return joined
    own = sample.unroll
    return _with_observations(joined, own.inputs.observation, own.initial_state)

  def _joined(self, sample: types.Sample) -> types.Sample:
    """Joins the samples of all hosts, in a graph."""
    axes = tree.flatten(batch_axes.of_sample(sample))
    return tree.unflatten_as(sample, self.group.joined(tree.flatten(sample), axes))

  def own(self, values: np.ndarray) -> np.ndarray:
    """See `Peers`."""
    number = len(values) // self.group.number
    return values[self.index * number :][:number]

  def mean(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """See `Peers`."""
    return self.group.mean(gradients)

  def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """See `Peers`."""
    return self.group.timed_function(function)


def _with_observations(
  sample: types.Sample, observation: types.Nest, initial_state: types.Nest
) -> types.Sample:
  """Returns the sample with other observations and initial states."""
  inputs = sample.unroll.inputs._replace(observation=observation)
  return sample._replace(unroll=sample.unroll._replace(initial_state=initial_state, inputs=inputs))


def make(index: int, addresses: Sequence[str], timeout_s: float, fence: fence_lib.Fence) -> Peers:
  """Makes the peers of a host, see `collectives.Group`; without addresses it is the only host."""
  if not addresses:
    return ALONE
  return LearnerHosts(collectives.Group(index, addresses, timeout_s, fence))
