"""The replay node of a cluster, in this process, until the run is over."""

from __future__ import annotations

from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.cluster import own_process
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes


def run(sections: sections_lib.ReplaySections, cluster: cluster_file.Cluster) -> int:
  """Serves replay until the run is over; returns the exit code."""
  processes.set_tensorflow_defaults()
  with membership.local_folder() as folder:
    member = membership.member(sections, cluster.token, cluster.learner)
    life = own_process.Life(cluster)

    def follow() -> None:
      membership.explained(member.join, cluster.learner)
      membership.say(sections.name, 'joined')
      membership.explained(member.wait_for_end, cluster.learner)

    life.end_after(follow)
    membership.say(sections.name, f'serving on port {sections.place.port}')
    links = node_lib.Links(cluster.token, f'localhost:{sections.place.port}')
    return life.lived(sections, links, folder)
