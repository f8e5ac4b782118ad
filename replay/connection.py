"""Clients of a replay server."""

from __future__ import annotations

import reverb

from seed_acme.libraries import grpc_variables


def client(address: str) -> reverb.Client:
  """Returns a client of the server at `address`, which bypasses the machine's HTTP proxy."""
  grpc_variables.reach_addresses([address])
  return reverb.Client(address)
