"""A learner without the environments' packages, whose first actor sends their specification."""

from __future__ import annotations

import contextlib

from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import node as node_lib
from seed_acme.storage import checkpoint
from seed_acme.transport import joining

_POLL_S = 0.05


def wait_for(node: node_lib.Node[sections_lib.LearnerSections]) -> node_lib.Greeting | None:
  """Returns what the first actor says when it connects; None if the learner is stopped first.

  It serves on the learner's port meanwhile. Actors are told that the server pauses, so they keep
  their environments and reconnect to the learner that replaces this server.
  """
  sections = node.sections
  desk = end_notice.make_desk(sections, node.links.token, end_notice.closed_batcher(), None)
  members = joining.Members(sections.shared, checkpoint.num_resumptions(node.folder.checkpoints))
  transport = end_notice.make_transport(sections, desk, node.links.port, members)
  transport.start()
  with contextlib.ExitStack() as cleanup:
    cleanup.callback(transport.stop)
    while desk.spec is None and not node.life.stop.wait(_POLL_S):
      pass
  return None if desk.spec is None else node_lib.Greeting(desk.spec, desk.instance, members)
