"""One learner host as a process of this machine; the other nodes are started separately on their
hosts (`seed-acme node`)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import local
from seed_acme.storage import run_directory

if TYPE_CHECKING:
  import launchpad as lp


class Launch(local.Launch):
  """The launch of learner host `index` of the cluster file at `path`."""

  def __init__(self, path: str, index: str):
    self.command = (launches.HOSTS, path, index)

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Refuses several replay nodes."""
    launches.refuse_shards_elsewhere(layout)

  def program(
    self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory
  ) -> lp.Program:
    """Returns a program with one node of the graph, which gets the addresses of the other nodes.

    The launch binds the node's own address, from the configuration.
    """
    import launchpad as lp

    from seed_acme.programs.graph import program_graph
    from seed_acme.programs.nodes import lives

    _, path, index = self.command
    cluster = cluster_file.load(path)
    life = functools.partial(lives.OnOwnHost, admitted=cluster.admitted())
    whole = program_graph.make_program(config, run, cluster.token, life=life)
    # Launchpad does the same with addresses that it has chosen.
    known = {program_graph.replay(0): cluster.replay or ''}
    known |= {program_graph.inference(i): one for i, one in enumerate(cluster.learners)}
    known |= {program_graph.exchange(i): one for i, one in enumerate(cluster.exchange)}
    for node in whole.get_all_nodes():
      for address in node.addresses:
        address.bind(program_graph.FixedAddress(known[address.name]))
    own = whole.groups['learner'][int(index)]
    own.listen_on(config.transport.port)
    part = lp.Program(whole.name)
    part.add_node(own, label='learner')
    return part
