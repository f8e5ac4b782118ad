"""The transports by name. Each is imported only when used, because actors import this module."""

from __future__ import annotations

import pathlib
from typing import Protocol

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import launchpad_wheel
from seed_acme.inference import event_loop
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import wire

_UNIX = 'unix:'
_SOCKETS = ('inference.sock', 'inference_{}.sock')  # in the run folder: learner host 0, others


class TransportServer(Protocol):
  """Learner's side of a transport: moves messages between actors and their sessions."""

  def start(self) -> None:
    """Begins to serve."""

  def stop(self) -> None:
    """Ends all streams; close the batcher first."""


class NetworkServer(TransportServer, Protocol):
  """A transport server that listens on a port."""

  port: int


def is_local(config: config_lib.TransportConfig) -> bool:
  """Whether actors on the learner's host use its Unix socket."""
  return config.kind == 'auto'


def address_beside(
  config: config_lib.TransportConfig, run_dir: pathlib.Path, address: str, learner: int = 0
) -> str:
  """Returns the address of learner host `learner` for an actor on the same host. address:
  `host:port`, for actors on other hosts."""
  return f'{_UNIX}{_socket(run_dir, learner)}' if is_local(config) else address


def _socket(run_dir: pathlib.Path, learner: int) -> pathlib.Path:
  return run_dir.absolute() / _SOCKETS[min(learner, 1)].format(learner)


def serve_beside(
  config: config_lib.TransportConfig,
  desk: sessions.SessionDesk,
  loop: event_loop.EventLoop,
  run_dir: pathlib.Path,
  max_message_bytes: int,
  learner: int = 0,
) -> list[TransportServer]:
  """Returns the servers only for actors on the host of learner `learner`: none or one. Raises
  `types.UserError` if the socket cannot be opened."""
  if not is_local(config):
    return []
  from seed_acme.transport import unix_server

  return [unix_server.UnixServer(desk, loop, _socket(run_dir, learner), max_message_bytes)]


def serve(
  config: config_lib.TransportConfig,
  desk: sessions.SessionDesk,
  port: int,
  max_streams: int,
  max_message_bytes: int,
  members: joining.Members,
) -> NetworkServer:
  """Returns the server for actors that connect over the network.

  Raises `types.UserError` if it cannot listen on the port.

  max_message_bytes: ignored by courier. members: registry of nodes that are started one by one,
  which courier does not support.
  """
  if config.kind == 'courier':
    is_ours, installed = launchpad_wheel.describe()
    if not is_ours:
      raise types.UserError(
        f'transport.kind=courier, but {launchpad_wheel.DISTRIBUTION} is {installed}: '
        f'{launchpad_wheel.FIX}'
      )
    from seed_acme.transport import courier_transport

    return courier_transport.CourierServer(desk, port, max_streams)
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
  """Returns an actor's channel; waits for the server up to the limits of `patience`.

  address: `host:port`, or the result of `address_beside`.
  """
  if address.startswith(_UNIX):
    from seed_acme.transport import unix_client

    path = address.removeprefix(_UNIX)
    return unix_client.UnixChannel(path, token, codec, env_ids, patience, start)
  if kind == 'courier':
    from seed_acme.transport import courier_transport

    return courier_transport.CourierChannel(address, token, codec, env_ids, patience, start)
  from seed_acme.transport import grpc_client

  return grpc_client.GrpcChannel(address, token, codec, env_ids, patience, start)
