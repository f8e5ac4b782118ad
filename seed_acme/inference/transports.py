"""The two transports by name. Imported by actors: each is loaded only when it is used."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.inference import membership as membership_lib
from seed_acme.inference import sessions
from seed_acme.inference import wire


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
  membership: membership_lib.Membership,
) -> TransportServer:
  """The server's end. Raises `types.UserError` if the port cannot be had.

  membership: for nodes that are started one by one, which courier does not serve.
  """
  if config.kind == 'courier':
    from seed_acme.inference import courier_transport

    return courier_transport.CourierServer(desk, config.host, port, max_streams)
  from seed_acme.inference import grpc_transport

  return grpc_transport.GrpcServer(desk, config.host, port, max_streams, membership)


def connect(
  kind: str,
  address: str,
  token: str,
  codec: wire.GroupCodec,
  env_ids: np.ndarray,
  connect_timeout_s: float,
) -> core.InferenceChannel:
  """The actor's end; waits for the server, at most `connect_timeout_s`."""
  if kind == 'courier':
    from seed_acme.inference import courier_transport

    return courier_transport.CourierChannel(address, token, codec, env_ids, connect_timeout_s)
  from seed_acme.inference import grpc_transport

  return grpc_transport.GrpcChannel(address, token, codec, env_ids, connect_timeout_s)
