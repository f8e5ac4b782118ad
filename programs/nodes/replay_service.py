"""Replay in a process of its own."""

from __future__ import annotations

import time

from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.programs.trial import specification
from seed_acme.transport import fence as fence_lib

_POLL_S = 0.1


def serve(node: node_lib.Node[sections_lib.ReplaySections]) -> None:
  """Main thread of a replay node of its own, called by `lives.py`.

  All nodes hear of a stop at the same moment. A learner on this machine saves then what this node
  holds, so this node goes on until that learner has ended.
  """
  descriptors.prepare()
  processes.configure_tensorflow(num_threads=1)
  sections, folder = node.sections, node.folder
  spec = specification.of_run(sections, folder)
  server = build_replay.make_replay_server(
    folder,
    sections.layout,
    build.make_acting(sections.agent, sections.network, spec),
    sections.is_saved,
    node.links.port,
    fence_lib.Fence(node.life.admitted, node.tell),
    shard=sections.place.index,
  )
  node.life.stop.wait()
  while folder.has_learner():
    time.sleep(_POLL_S)
  server.stop()
