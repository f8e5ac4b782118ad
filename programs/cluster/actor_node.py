"""An actor of a cluster, in this process. Needs no Launchpad, so it runs where only actors do."""

from __future__ import annotations

import os
import threading

from seed_acme import core
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals


def run(sections: sections_lib.ActorSections, cluster: cluster_file.Cluster) -> int:
  """Acts until the run is over; returns the exit code."""
  place, learner = sections.place, cluster.learners[sections.place.learner]
  membership.say(
    sections.name,
    f'environments {place.env_ids[0]} ... {place.env_ids[-1]} for the learner at {learner}',
  )
  with membership.local_folder() as folder:
    member = membership.member(sections, cluster.token, learner)
    try:
      start = membership.explained(member.join, cluster)
    except core.ServerLost as error:
      membership.say('error', str(error))
      return processes.FAILURE_EXIT
    member.close()
    membership.say(sections.name, 'joined')
    links = node_lib.Links(cluster.token, learner, start=start)
    stop = _Stop()
    life = lives.OnOwnHost(stop.event, cluster.admitted())
    return _act(life, node_lib.Node(sections, links, folder, life), stop)


def _act(
  life: lives.OnOwnHost, node: node_lib.Node[sections_lib.ActorSections], stop: _Stop
) -> int:
  try:
    life.actor(node)
  except SystemExit as exit_:
    failure = processes.read_failure(node.folder)
    membership.say('error', failure['message'] if failure else str(exit_))
    return int(exit_.code or 0)
  if stop.signal is not None:
    return 128 + stop.signal
  membership.say(node.name, 'the run is over')
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
