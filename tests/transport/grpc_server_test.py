"""Strangers, and callers that stay silent, cannot harm a run through the learner's port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import multiprocessing
import multiprocessing.connection
import queue
import resource
import socket
import time
from typing import Any

from dm_env import specs as dm_specs
import grpc
import numpy as np
import psutil
import pytest

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import grpc_client
from seed_acme.transport import grpc_protocol
from seed_acme.transport import grpc_server
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import wire

pytestmark = pytest.mark.timeout(120)

SPEC = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(2, dtype=np.int32)
)
CODEC = wire.GroupCodec(SPEC, 2)
TOKEN = 'secret'
METHODS = (grpc_protocol.STREAM, grpc_protocol.JOIN)
GUARD_S = 60.0  # guard against a hang; nothing takes this long
MEBIBYTE = 1 << 20
# The preface of HTTP/2, and an empty SETTINGS frame.
HTTP2_GREETING = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0\0\0\4\0\0\0\0\0'


def make_server(max_streams: int) -> grpc_server.GrpcServer:
  desk = sessions.SessionDesk(
    lambda env_id: batching.Batcher(1, 0.0, lambda: True, lambda _: False), SPEC, 4, 4, TOKEN
  )
  server = grpc_server.GrpcServer(
    desk, '127.0.0.1', 0, max_streams, desk.max_message_bytes(2), joining.Members({'actor': {}}, 0)
  )
  server.start()
  return server


@pytest.fixture
def serve() -> Iterator[Callable[[int], int]]:
  """`serve(max_streams)` returns the port of a server in this process."""
  with contextlib.ExitStack() as stack:

    def start(max_streams: int) -> int:
      server = make_server(max_streams)
      stack.callback(server.stop)
      return server.port

    yield start


@contextlib.contextmanager
def connected(port: int) -> Iterator[grpc_client.GrpcChannel]:
  """An actor that has connected and was welcomed."""
  channel = grpc_client.GrpcChannel(
    f'127.0.0.1:{port}',
    TOKEN,
    CODEC,
    np.array([0, 1], np.int32),
    patience_lib.on_other_hosts(GUARD_S),
  )
  try:
    yield channel
  finally:
    channel.close()


@contextlib.contextmanager
def calls(
  port: int, *messages: bytes, token: str | None = None, times: int = 1, timeout_s: float = GUARD_S
) -> Iterator[list[Any]]:
  """Makes `times` calls of every method that send `messages` and then stay open."""
  with contextlib.ExitStack() as stack:
    made = []
    for name in METHODS * times:
      channel = stack.enter_context(
        grpc.insecure_channel(
          f'127.0.0.1:{port}',
          options=[('grpc.use_local_subchannel_pool', 1), ('grpc.max_send_message_length', -1)],
        )
      )
      outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
      for message in messages:
        outbox.put(message)
      stack.callback(outbox.put, None)
      made.append(
        channel.stream_stream(grpc_protocol.method(name))(
          iter(outbox.get, None),
          timeout=timeout_s,
          metadata=((grpc_protocol.TOKEN_KEY, token),) if token else (),
        )
      )
    yield made


def test_silent_calls_without_token_are_ended_and_lock_nobody_out(serve):
  port = serve(18)  # as in a run with two actors
  with calls(port, times=20) as silent:
    assert {call.code() for call in silent} == {grpc.StatusCode.UNAUTHENTICATED}
    with connected(port):
      pass


def test_a_call_without_token_waits_for_no_thread_of_the_actors(serve):
  port = serve(1)
  with connected(port), calls(port, token='wrong') as strange:
    assert {call.code() for call in strange} == {grpc.StatusCode.UNAUTHENTICATED}


def test_a_silent_call_with_the_token_frees_its_thread(serve, monkeypatch):
  monkeypatch.setattr(grpc_server, '_GREETING_S', 0.3)
  port = serve(2)
  with calls(port, token=TOKEN) as silent:
    assert {call.code() for call in silent} == {grpc.StatusCode.CANCELLED}
    with connected(port):
      pass


def test_a_stream_that_has_greeted_may_be_silent(serve, monkeypatch):
  monkeypatch.setattr(grpc_server, '_GREETING_S', 0.3)
  port = serve(1)
  greeting = CODEC.hello(np.array([0, 1], np.int32))
  with calls(port, greeting, token=TOKEN, timeout_s=1.5) as quiet:
    assert quiet[0].code() is grpc.StatusCode.DEADLINE_EXCEEDED  # the caller's own deadline


def serve_in_child(
  pipe: multiprocessing.connection.Connection, num_descriptors: int, idle_s: float
) -> None:
  """Runs a server in this process, which reports through the pipe whether it can open files."""
  resource.setrlimit(resource.RLIMIT_NOFILE, (num_descriptors, num_descriptors))
  grpc_server._IDLE_S = idle_s
  server = make_server(max_streams=18)
  pipe.send(server.port)
  while pipe.recv():
    try:
      open('/dev/null').close()
    except OSError as error:
      pipe.send(str(error))
    else:
      pipe.send('')
  server.stop()


class Child:
  """The process of `serve_in_child`."""

  def __init__(self, num_descriptors: int = 1024, idle_s: float = 10.0):
    context = multiprocessing.get_context('spawn')
    self._pipe, theirs = context.Pipe()
    self._process = context.Process(target=serve_in_child, args=(theirs, num_descriptors, idle_s))
    self._process.start()
    assert self._pipe.poll(GUARD_S)
    self.port = self._pipe.recv()

  def why_no_file(self) -> str:
    self._pipe.send(True)
    assert self._pipe.poll(GUARD_S)
    return self._pipe.recv()

  def num_descriptors(self) -> int:
    return psutil.Process(self._process.pid).num_fds()

  def peak_bytes(self) -> int:
    with open(f'/proc/{self._process.pid}/status') as file:
      [line] = [line for line in file if line.startswith('VmHWM:')]
    return int(line.split()[1]) * 1024

  def stop(self) -> None:
    self._pipe.send(False)
    self._process.join(GUARD_S)
    assert self._process.exitcode == 0


@pytest.fixture
def make_child() -> Iterator[Callable[..., Child]]:
  with contextlib.ExitStack() as stack:

    def start(**settings: Any) -> Child:
      child = Child(**settings)
      stack.callback(child.stop)
      return child

    yield start


@pytest.mark.slow
@pytest.mark.parametrize(
  'token, code',
  [(None, grpc.StatusCode.UNAUTHENTICATED), (TOKEN, grpc.StatusCode.RESOURCE_EXHAUSTED)],
)
def test_a_big_message_is_refused_unread(make_child, token, code):
  child = make_child()
  with connected(child.port):
    before = child.peak_bytes()
    with calls(child.port, bytes(200 * MEBIBYTE), token=token) as big:
      assert {call.code() for call in big} == {code}
    assert child.peak_bytes() - before < 50 * MEBIBYTE


@pytest.mark.slow
@pytest.mark.parametrize('greeting', [b'', HTTP2_GREETING])
def test_idle_connections_use_up_no_descriptors_and_are_closed(make_child, greeting):
  child = make_child(num_descriptors=300, idle_s=1.0)
  with contextlib.ExitStack() as stack:
    stack.enter_context(connected(child.port))
    before = child.num_descriptors()
    idle = [
      stack.enter_context(socket.create_connection(('127.0.0.1', child.port))) for _ in range(400)
    ]
    for one in idle:
      with contextlib.suppress(ConnectionError):  # closed already, because of the limit
        one.sendall(greeting)
    most = child.num_descriptors()
    give_up = time.monotonic() + GUARD_S
    for one in idle:
      one.settimeout(GUARD_S)
      with contextlib.suppress(ConnectionError):
        while one.recv(4096):
          assert time.monotonic() < give_up
      most = max(most, child.num_descriptors())
      assert child.why_no_file() == ''
    assert most <= before + 150
    with connected(child.port):
      pass


def test_connections_beyond_those_of_the_run_depend_on_the_limit(monkeypatch):
  for descriptors, expected in ((resource.RLIM_INFINITY, 1060), (20_000, 1060), (1024, 512)):
    monkeypatch.setattr(resource, 'getrlimit', lambda _, n=descriptors: (n, n))
    assert grpc_server._max_connections(18) == expected
