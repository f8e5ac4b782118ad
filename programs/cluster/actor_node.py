"""An actor of a cluster, in this process. Needs no Launchpad, so it runs where only actors do."""

from __future__ import annotations

import os
import threading

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.nodes import actor_supervisor
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory
from seed_acme.transport import wire


def run(config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster, index: int) -> int:
  """Acts until the run is over; returns the exit code."""
  actor = layout_lib.Layout.of(config).actors[index]
  name, learner = f'actor/{index}', cluster.learners[actor.learner]
  membership.say(
    name, f'environments {actor.env_ids[0]} ... {actor.env_ids[-1]} for the learner at {learner}'
  )
  with membership.local_folder() as folder:
    member = membership.member(config, cluster, name, learner)
    try:
      start = membership.explained(member.join, cluster)
    except core.ServerLost as error:
      membership.say('error', str(error))
      return processes.FAILURE_EXIT
    member.close()
    membership.say(name, 'joined')
    return _act(config, folder, cluster.token, learner, index, start)


def _act(
  config: config_lib.ExperimentConfig,
  folder: run_directory.RunDirectory,
  token: str,
  learner: str,
  index: int,
  start: wire.Start,
) -> int:
  name, stop = f'actor/{index}', _Stop()
  supervisor = actor_supervisor.Supervisor(
    config, folder, token, index, start, learner, is_beside_learner=False
  )
  try:
    with processes.reported_failures(folder, name, name):
      supervisor.run(stop.event)
  except SystemExit as exit_:
    failure = processes.read_failure(folder)
    membership.say('error', failure['message'] if failure else str(exit_))
    return int(exit_.code or 0)
  if stop.signal is not None:
    return 128 + stop.signal
  membership.say(name, 'the run is over')
  return 0


class _Stop:
  """Set by Ctrl-C, SIGTERM and SIGHUP; a second one ends this process at once, and its worker."""

  def __init__(self) -> None:
    self.event = threading.Event()
    self.signal: int | None = None
    signals.answer(self._set)

  def _set(self, number: int) -> None:
    if self.signal is not None:
      os._exit(128 + self.signal)
    self.signal = number
    self.event.set()
