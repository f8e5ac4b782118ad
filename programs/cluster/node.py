"""An actor or a replay node of a cluster: joins the learner, then runs its part of the program
in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import logging
import os
import pathlib
import signal
import sys
import tempfile
import threading
from typing import TypeVar

from absl import flags
import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import program as cluster_program
from seed_acme.programs.nodes import actors
from seed_acme.programs.nodes import host
from seed_acme.programs.nodes import shared_settings
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.transport import grpc_client
from seed_acme.transport import joining
from seed_acme.transport import wire

_T = TypeVar('_T')


def run_actor(
  config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster, index: int
) -> int:
  """Acts until the run is over; returns the exit code."""
  name = f'actor/{index}'
  first, number = actors.env_id_range(config, index)
  _say(name, f'environments {first} ... {first + number - 1} for the learner at {cluster.learner}')
  with _local_folder() as folder:
    member = _member(config, cluster, name)
    try:
      start = _explained(member.join, cluster)
    except core.ServerLost as error:
      _say('error', str(error))
      return processes.FAILURE_EXIT
    member.close()
    _say(name, 'joined')
    host.mark_several_hosts()
    part = cluster_program.make_part(config, folder, cluster, 'actor', index, start)
    return _Node(part, name, folder).run()


def run_replay(config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster) -> int:
  """Serves replay until the run is over; returns the exit code."""
  name = 'replay/0'
  processes.set_tensorflow_defaults()
  with _local_folder() as folder:
    part = cluster_program.make_part(config, folder, cluster, 'replay')
    node = _Node(part, name, folder)
    member = _member(config, cluster, name)

    def follow() -> None:
      _explained(member.join, cluster)
      _say(name, 'joined')
      _explained(member.wait_for_end, cluster)

    node.end_after(follow)
    _say(name, f'serving on port {config.replay.port}')
    return node.run()


def _member(
  config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster, name: str
) -> grpc_client.GrpcMember:
  logging.basicConfig(format=f'{name}: %(message)s', level=logging.WARNING)
  settings = shared_settings.of(name.partition('/')[0], config)
  return grpc_client.GrpcMember(
    cluster.learner, cluster.token, joining.hello(name, settings), config.actor.connect_timeout_s
  )


def _explained(call: Callable[[], _T], cluster: cluster_file.Cluster) -> _T:
  """What the learner refuses is wrong input here."""
  try:
    return call()
  except wire.Refused as error:
    reason = str(error)
    mend = (
      'use the same token on every host'
      if 'token' in reason
      else 'start every node with the same --config and cluster file'
    )
    raise types.UserError(
      f'the learner at {cluster.learner} refuses this node: {reason}: {mend}'
    ) from None


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
    for number in (signal.SIGINT, signal.SIGTERM):
      signal.signal(number, self._stop)

  def _stop(self, number: int, _: object) -> None:
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
      _say('error', failure['message'] if failure else str(exit_))
      return int(exit_.code or 0)
    if self._signal is not None:
      return 128 + self._signal
    _say(self._name, 'the run is over')
    return 0


@contextlib.contextmanager
def _local_folder() -> Iterator[run_directory.RunDirectory]:
  """A run folder that nobody else sees, for what nodes write into theirs."""
  with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as path:
    folder = run_directory.RunDirectory(pathlib.Path(path))
    folder.logs.mkdir()
    folder.checkpoints.mkdir()
    yield folder


def _say(name: str, text: str) -> None:
  print(f'{name}: {text}', file=sys.stderr, flush=True)
