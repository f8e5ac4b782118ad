"""The replay server in a process of its own."""

from __future__ import annotations

import time

from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.programs.trial import specification
from seed_acme.storage import run_locks
from seed_acme.transport import fence as fence_lib

_POLL_S = 0.1


def serve(node: node_lib.Node[sections_lib.ReplaySections]) -> None:
  """Runs on the main thread of a replay node.

  All nodes are told to stop at the same time. A learner on this machine then saves what this node
  holds, so the node serves until that learner has ended.
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
  while run_locks.has_learner(folder):
    time.sleep(_POLL_S)
  server.stop()
