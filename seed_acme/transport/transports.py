"""The two transports by name. Imported by actors: each is loaded only when it is used."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import wire


class TransportServer(Protocol):
  """The learner's end: moves messages between actors and their sessions."""

  port: int

  def start(self) -> None:
    """Begins to serve."""

  def stop(self) -> None:
    """Ends all streams; close the batcher first."""


def serve(
  config: config_lib.TransportConfig,
  desk: sessions.SessionDesk,
  port: int,
  max_streams: int,
  max_message_bytes: int,
  members: joining.Members,
) -> TransportServer:
  """The server's end. Raises `types.UserError` if the port cannot be had.

  max_message_bytes: courier knows no such limit. members: for nodes that are started one by
  one, which courier does not serve.
  """
  if config.kind == 'courier':
    from seed_acme.transport import courier_transport

    return courier_transport.CourierServer(desk, config.host, port, max_streams)
  from seed_acme.transport import grpc_server

  return grpc_server.GrpcServer(desk, config.host, port, max_streams, max_message_bytes, members)


def connect(
  kind: str,
  address: str,
  token: str,
  codec: wire.GroupCodec,
  env_ids: np.ndarray,
  patience: patience_lib.Patience,
  start: wire.Start,
) -> core.InferenceChannel:
  """The actor's end; waits for the server as long as `patience` allows."""
  if kind == 'courier':
    from seed_acme.transport import courier_transport

    return courier_transport.CourierChannel(address, token, codec, env_ids, patience, start)
  from seed_acme.transport import grpc_client

  return grpc_client.GrpcChannel(address, token, codec, env_ids, patience, start)
