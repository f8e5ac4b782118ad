"""Between transport and batcher: opens sessions for actors and carries their messages.

A transport moves bytes and knows none of this; there are three of them (Unix sockets, gRPC,
courier).
"""

from __future__ import annotations

from collections.abc import Callable
import hmac
import logging
import queue
import secrets
import threading
import time

import numpy as np

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import array_codec
from seed_acme.transport import wire

_LOG = logging.getLogger(__name__)
_POLL_S = 0.02
_JOINING_BYTES = 1 << 20  # a node's greeting, with its settings: some kilobytes
_UNKNOWN_BYTES = 1 << 26  # a greeting and a request of environments that are not known yet


class Session:
  """One environment group of one actor."""

  def __init__(
    self,
    batcher: batching.Batcher,
    codec: wire.GroupCodec,
    env_ids: frozenset[int],
    num_training: int,
    run_is_over: Callable[[], bool],
  ):
    self.env_ids = env_ids
    self.num_answered = 0
    self.loop = batcher.loop  # of the thread that answers
    self._batcher = batcher
    self._codec = codec
    self._is_training = min(env_ids) < num_training
    self._run_is_over = run_is_over
    self._pending: batching.PendingRequest | None = None
    self._closed = False
    self._taken = False
    self._lock = threading.Lock()
    batcher.add_caller()

  def answer(self, message: bytes) -> bytes:
    """An encoded request in, an encoded reply out; blocks until a batch has carried it."""
    replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    self.ask(message, replies.put)
    return replies.get()

  def ask(self, message: array_codec.Buffer, on_reply: Callable[[bytes], None]) -> None:
    """As `answer`, without waiting. on_reply: takes the encoded reply, on whatever thread has it,
    once; it must neither block nor call this session. `message` must not change before.
    """
    try:
      request = self._decoded(message)
    except ValueError as error:
      on_reply(wire.encode_refusal(str(error)))
      return
    pending = batching.PendingRequest(
      request, self._is_training, lambda reply: on_reply(self._encoded(reply))
    )
    with self._lock:
      is_closed = self._closed
      if not is_closed:
        self._pending = pending
        self._batcher.submit(pending)  # under the lock: `close` finds it there, or comes first
    if is_closed:
      on_reply(self._ending())

  def _encoded(self, reply: batching.Reply) -> bytes:
    if isinstance(reply, batching.Stopped):
      return self._ending()
    if isinstance(reply, batching.Refusal):
      return wire.encode_refusal(reply.reason)
    self.num_answered += 1
    return self._codec.encode_actions(reply)

  def _decoded(self, message: array_codec.Buffer) -> types.ActorRequest:
    """ValueError for a message that is no request, or is of environments of another stream."""
    request = self._codec.decode_request(message)
    if not self.env_ids.issuperset(request.env_ids.tolist()):
      raise ValueError('the request names environments that this stream did not open')
    return request

  def _ending(self) -> bytes:
    if self._taken:
      return wire.encode_taken()
    return wire.encode_stopped() if self._run_is_over() else wire.encode_paused()

  def close(self, taken: bool = False) -> None:
    """The actor went away, or (taken) another opened its environments. Safe to call twice."""
    with self._lock:
      if self._closed:
        return
      self._closed, self._taken = True, taken
      pending = self._pending
    self._batcher.remove_caller(pending)

  @property
  def is_open(self) -> bool:
    return not self._closed


class SessionDesk:
  """Opens sessions; one for each environment group, the newest wins."""

  def __init__(
    self,
    batcher_of: Callable[[int], batching.Batcher],
    spec: types.EnvironmentSpec | None,
    num_environments: int,
    num_training: int,
    token: str,
    instance: str = '',
  ):
    """batcher_of: which batcher takes the requests of a group, by its first env_id.

    spec: of the environments; None = that of the first actor which says hello. token: shared secret
    of the run; an actor that cannot show it is turned away. instance: that of a desk which this one
    takes the place of, so that its actors need not begin anew; '' = none.
    """
    self._batcher_of = batcher_of
    self.spec = spec
    self._num_environments = num_environments
    self._num_training = num_training
    self.token = token
    self._lock = threading.Lock()
    self._sessions: list[Session] = []
    self._starts: dict[int, wire.Start] = {}  # by env_id, the latest that has come
    self._answered_before = np.zeros(num_environments, np.int64)  # in sessions that are gone
    self._run_is_over = False
    # Tells this process from one that takes its place.
    self.instance = instance or secrets.token_hex(8)

  def is_admitted(self, token: str) -> bool:
    """Whether the caller belongs to this run; compares in constant time."""
    return hmac.compare_digest(token.encode(), self.token.encode())

  def open(self, hello: bytes) -> Session:
    """A session for the group that says hello; raises ValueError where it does not fit.

    An older session that holds any of the same environments is closed: its actor died, or
    was replaced after being cut off. But an actor that was started before the one which holds
    them, or held them last, gets a session that is closed: it is the one that was replaced.
    """
    try:
      codec, env_ids, start = wire.GroupCodec.check_hello(hello, self.spec, self._num_environments)
    except ValueError as error:
      _LOG.warning('turned an actor away: %s', error)
      raise
    self.spec = self.spec or codec.spec
    batcher = self._batcher_of(min(env_ids))
    session = Session(batcher, codec, env_ids, self._num_training, lambda: self._run_is_over)
    with self._lock:
      is_stale = any(start < self._starts.get(env_id, start) for env_id in env_ids)
      replaced = [] if is_stale else [s for s in self._sessions if s.env_ids & env_ids]
      if not is_stale:
        self._starts.update(dict.fromkeys(env_ids, start))
        self._sessions = [s for s in self._sessions if not s.env_ids & env_ids] + [session]
      for old in replaced:
        self._answered_before[list(old.env_ids)] += old.num_answered
    for old in [session] if is_stale else replaced:
      old.close(taken=True)
    return session

  def max_message_bytes(self, largest_group: int) -> int:
    """Of what an actor with groups of up to so many environments sends, or a node that joins."""
    if self.spec is None:
      return _UNKNOWN_BYTES
    return max(_JOINING_BYTES, wire.GroupCodec(self.spec, largest_group).max_message_bytes())

  def end_run(self) -> None:
    """From now on actors are told that the run is over, and end. Without this, when the batcher
    closes they are told of a pause, and wait for the server that takes this one's place."""
    self._run_is_over = True

  def wait_until_all_left(self, timeout_s: float) -> None:
    """Returns when no stream is open any more, or after `timeout_s`."""
    give_up = time.monotonic() + timeout_s
    while self.is_connected().any() and time.monotonic() < give_up:
      time.sleep(_POLL_S)

  def is_connected(self) -> np.ndarray:
    """`[environments]` bool: whether a stream of its actor is open."""
    connected = np.zeros(self._num_environments, bool)
    with self._lock:
      for session in self._sessions:
        connected[list(session.env_ids)] = session.is_open
    return connected

  def num_answered(self) -> np.ndarray:
    """`[environments]` int64: rows answered so far."""
    with self._lock:
      number = self._answered_before.copy()
      for session in self._sessions:
        number[list(session.env_ids)] += session.num_answered
    return number
