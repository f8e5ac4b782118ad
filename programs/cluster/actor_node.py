"""An actor node of a cluster, run in this process."""

from __future__ import annotations

from seed_acme import core
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.cluster import own_process
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
      with signals.signals_to(lambda number: signals.leave(128 + number)):
        start = membership.explained(member.join, learner)
    except core.ServerLost as error:
      membership.say('error', str(error))
      return processes.FAILURE_EXIT
    member.close()
    membership.say(sections.name, 'joined')
    links = node_lib.Links(cluster.token, learner, start=start)
    return own_process.Life(cluster).lived(sections, links, folder)
