"""The replay node of a cluster: its part of the program in this process, until the run is over."""

from __future__ import annotations

from collections.abc import Callable
import os
import sys
import threading

from absl import flags
import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme import config as config_lib
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.cluster import program as cluster_program
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory


def run_replay(config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster) -> int:
  """Serves replay until the run is over; returns the exit code."""
  [sections] = sections_lib.split(config).replays
  name = sections.name
  processes.set_tensorflow_defaults()
  with membership.local_folder() as folder:
    part = cluster_program.make_part(config, folder, cluster, 'replay')
    node = _Node(part, name, folder)
    member = membership.member(sections, cluster.token, cluster.learner)

    def follow() -> None:
      membership.explained(member.join, cluster)
      membership.say(name, 'joined')
      membership.explained(member.wait_for_end, cluster)

    node.end_after(follow)
    membership.say(name, f'serving on port {config.replay.port}')
    return node.run()


class _Node:
  """Runs the one node of a program on the main thread of this process, as Launchpad's own
  entry of a process does it, but with our answer to signals."""

  def __init__(self, part: lp.Program, name: str, folder: run_directory.RunDirectory):
    [self._node] = part.get_all_nodes()
    self._name = name
    self._folder = folder
    flags.FLAGS(sys.argv[:1])
    self._manager = worker_manager.WorkerManager(register_in_thread=True)
    self._signal: int | None = None
    self._error: Exception | None = None
    signals.answer(self._stop)

  def _stop(self, number: int) -> None:
    if self._signal is not None:
      os._exit(128 + self._signal)  # a second one; the worker ends with this process
    self._signal = number
    self._manager.stop_event().set()

  def end_after(self, wait: Callable[[], None]) -> None:
    """Has `run` end when `wait`, on a thread of its own, returns or raises."""

    def wait_and_end() -> None:
      try:
        wait()
      except Exception as error:  # raised by `run`
        self._error = error
      self._manager.stop_event().set()

    threading.Thread(target=wait_and_end, name='members', daemon=True).start()

  def run(self) -> int:
    """The exit code; the reason of a failure is on standard error."""
    self._node._initialize_context(lp.LaunchType.LOCAL_MULTI_PROCESSING, None)
    self._node.bind_addresses()
    try:
      with processes.reported_failures(self._folder, self._name, self._name):
        self._node.function()
        if self._error is not None and self._signal is None:
          raise self._error
    except SystemExit as exit_:
      failure = processes.read_failure(self._folder)
      membership.say('error', failure['message'] if failure else str(exit_))
      return int(exit_.code or 0)
    if self._signal is not None:
      return 128 + self._signal
    membership.say(self._name, 'the run is over')
    return 0
