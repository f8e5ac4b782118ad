"""An inference server behind a transport, and requests to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import pathlib
import tempfile
import time
from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import transports
from seed_acme.transport import unix_server
from seed_acme.transport import wire

SPEC = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(2, dtype=np.int32)
)
NUM_ENVIRONMENTS = 64
GUARD_S = 60.0  # guard against a hang; nothing takes this long
ABSENT_S = 0.2  # `connect_timeout_s` if no server will answer
NEVER_S = 1000.0  # a time-out that no test waits for
NOTICED_S = 12.0  # keepalive takes 5 s; the rest is for a busy machine
Answer = Callable[[types.ActorRequest], batching.Reply]


def eventually(condition: Callable[[], bool]) -> None:
  give_up = time.monotonic() + GUARD_S
  while not condition():
    assert time.monotonic() < give_up, 'it never came true'
    time.sleep(0.005)


def request(
  env_ids: np.ndarray, number: int, spec: types.EnvironmentSpec = SPEC, step_type: int = types.FIRST
) -> types.ActorRequest:
  n = env_ids.size
  zeros = np.zeros(n, np.float32)
  observation = np.ones((n, *spec.observation.shape), spec.observation.dtype)
  return types.ActorRequest(
    number,
    env_ids,
    np.ones(n, np.int64),
    types.VectorTimeStep(np.full(n, step_type, np.uint8), zeros, zeros, observation, zeros),
  )


def own_number(one: types.ActorRequest) -> np.ndarray:
  """Returns actions that identify the request they answer."""
  return (1000 * one.env_ids + one.request_number).astype(np.int32)


class CountingMembers(joining.Members):
  """A counter of nodes that wait to hear of the end."""

  num_asked = 0

  def wait_for_end(self) -> joining.WaitForEnd:
    self.num_asked += 1
    return super().wait_for_end()


class Rig:
  """A server of one transport whose batches are answered by `answer`; it starts on request."""

  def __init__(
    self,
    kind: str,
    answer: Answer = own_number,
    port: int = 0,
    spec: types.EnvironmentSpec = SPEC,
    token: str = 'secret',
    max_streams: int = 32,
    batch_timeout_s: float = 0.001,
  ):
    """batch_timeout_s: how long a batch waits for open callers without a request."""
    self.max_streams = max_streams
    self.kind, self.spec, self.token = kind, spec, token
    self._folder = tempfile.TemporaryDirectory(prefix='rig')
    self.port: Any = port
    if kind == 'unix' and isinstance(port, int):
      self.port = f'{self._folder.name}/{port}.sock'
    self.answer = answer
    self._holds = False
    self._num_seen = self._num_waiting = 0
    self._batch_timeout_s = batch_timeout_s
    self.batcher = self._make_batcher()
    self.desk = sessions.SessionDesk(
      lambda env_id: self.batcher, spec, NUM_ENVIRONMENTS, NUM_ENVIRONMENTS, token
    )
    self.members = CountingMembers({'actor': {'seed': '1'}, 'replay': {}}, 2)
    self.transport: Any = None
    self._pool = futures.ThreadPoolExecutor(16)
    self._is_over = False
    self._pool.submit(self._serve)
    self._channels: list[core.InferenceChannel] = []

  def _make_batcher(self) -> batching.Batcher:
    return batching.Batcher(16, self._batch_timeout_s, self._accepts_training, self._hold_back)

  def _accepts_training(self) -> bool:
    """Called whenever the batcher looks at waiting requests."""
    self._num_seen, self._num_waiting = 0, self._num_seen
    return True

  def _hold_back(self, _: types.ActorRequest) -> bool:
    """Called for each waiting request."""
    self._num_seen += 1
    return self._holds

  def start(self) -> Rig:
    if self.kind == 'unix':  # it has no port
      self.transport = unix_server.UnixServer(
        self.desk, self.batcher.loop, pathlib.Path(self.port), self.desk.max_message_bytes(8)
      )
      self.transport.start()
      return self
    self.transport = transports.serve(
      config_lib.TransportConfig(kind=self.kind),
      self.desk,
      self.port,
      self.max_streams,
      self.desk.max_message_bytes(8),
      self.members,
    )
    self.port = self.transport.port
    self.transport.start()
    return self

  def _serve(self) -> None:
    while not self._is_over:
      for pending in self.batcher.next_batch(0.02):
        pending.answer(self.answer(pending.request))

  def connect(
    self,
    *env_ids: int,
    token: str | None = None,
    port: Any = None,
    spec: types.EnvironmentSpec | None = None,
    timeout_s: float = GUARD_S,
    patience: patience_lib.Patience | None = None,
    start: wire.Start = wire.FIRST_START,
  ) -> core.InferenceChannel:
    channel = transports.connect(
      self.kind,
      f'unix:{port or self.port}' if self.kind == 'unix' else f'127.0.0.1:{port or self.port}',
      self.token if token is None else token,
      wire.GroupCodec(spec or self.spec, len(env_ids)),
      np.array(env_ids, np.int32),
      patience or patience_lib.on_other_hosts(timeout_s),
      start,
    )
    self._channels.append(channel)
    return channel

  def background(self, function: Callable[..., Any], *arguments: Any) -> futures.Future:
    return self._pool.submit(function, *arguments)

  def hold(self) -> None:
    """Makes requests wait until `release`."""
    self._holds = True

  def release(self) -> None:
    self._holds = False
    self.batcher.wake()

  def num_waiting(self) -> int:
    """Returns the requests that waited when the batcher last looked, which is every 0.02 s."""
    return self._num_waiting

  def reopen(self) -> None:
    """Replaces a server that has ended by another one, as after a restart."""
    self._holds = False
    self.batcher = self._make_batcher()
    self.desk = sessions.SessionDesk(
      lambda env_id: self.batcher, self.spec, NUM_ENVIRONMENTS, NUM_ENVIRONMENTS, self.token
    )
    self.start()

  def stop_transport(self) -> None:
    if self.transport is not None:
      self.transport.stop()
      self.transport = None

  def stop(self) -> None:
    self.batcher.close()
    for channel in self._channels:
      channel.close()
    self.stop_transport()
    self._is_over = True
    self._pool.shutdown()
    self._folder.cleanup()


def ask(channel: core.InferenceChannel, one: types.ActorRequest) -> types.Nest:
  channel.send(one)
  return channel.receive()
