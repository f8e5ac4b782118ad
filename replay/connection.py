"""How this process reaches a replay server."""

from __future__ import annotations

import reverb

from seed_acme.libraries import grpc_variables


def client(address: str) -> reverb.Client:
  """Of the server at `address`, wherever it is: not through the machine's proxy for HTTP."""
  grpc_variables.reach_addresses([address])
  return reverb.Client(address)
