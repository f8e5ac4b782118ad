"""The entry point of every node that Launchpad starts, on its main thread."""

from __future__ import annotations

from typing import Any

from seed_acme.programs.nodes import host
from seed_acme.programs.nodes import node as node_lib


def run(spec: node_lib.NodeSpec[Any]) -> None:
  """Runs a node from its beginning to its end."""
  node = spec.node(host.enter())
  node.life.live(node)
