"""One node of the graph that `program_graph.make_program` builds, with the addresses of a cluster
file: the other nodes are other processes, on other hosts.
"""

from __future__ import annotations

import functools

import launchpad as lp

from seed_acme import config as config_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.graph import program_graph
from seed_acme.programs.nodes import lives
from seed_acme.storage import run_directory


def make_part(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  cluster: cluster_file.Cluster,
  role: str,
  index: int = 0,
) -> lp.Program:
  """A program of one learner or of replay, its handles bound to where the others are.

  Whoever launches it binds the node's own address, from the configuration.
  """
  life = functools.partial(lives.OnOwnHost, admitted=cluster.admitted())
  whole = program_graph.make_program(config, run_dir, cluster.token, life=life)
  _bind(whole, cluster)
  own = whole.groups[role][index]
  own.listen_on(config.replay.port if role == 'replay' else config.transport.port)
  part = lp.Program(whole.name)
  part.add_node(own, label=role)
  return part


def _bind(program: lp.Program, cluster: cluster_file.Cluster) -> None:
  """What Launchpad does with addresses that it has drawn."""
  known = {program_graph.replay(0): cluster.replay or ''}
  for i, address in enumerate(cluster.learners):
    known[program_graph.inference(i)] = address
  for i, address in enumerate(cluster.exchange):
    known[program_graph.exchange(i)] = address
  for node in program.get_all_nodes():
    for address in node.addresses:
      address.bind(program_graph.FixedAddress(known[address.name]))
