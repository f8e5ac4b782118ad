"""Between transport and batcher: opens sessions for actors and carries their messages.

A transport moves bytes and knows none of this; there are two of them (gRPC, courier).
"""
from __future__ import annotations

import hmac
import threading

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import wire


class Session:
  """One environment group of one actor. `answer` blocks its calling thread."""

  def __init__(self, batcher: batching.Batcher, codec: wire.GroupCodec, env_ids: frozenset[int],
               num_training: int):
    self.env_ids = env_ids
    self._batcher = batcher
    self._codec = codec
    self._is_training = min(env_ids) < num_training
    self._pending: batching.PendingRequest | None = None
    self._closed = False
    self._lock = threading.Lock()
    batcher.add_caller()

  def answer(self, message: bytes) -> bytes:
    """An encoded request in, an encoded reply out; blocks until a batch has carried it."""
    try:
      request = self._codec.decode_request(message)
    except ValueError as error:
      return wire.encode_refusal(str(error))
    if not self.env_ids.issuperset(request.env_ids.tolist()):
      return wire.encode_refusal('the request names environments that this stream did not open')
    pending = batching.PendingRequest(request, self._is_training)
    with self._lock:
      if self._closed:
        return wire.encode_stopped()
      self._pending = pending
      self._batcher.submit(pending)  # under the lock: `close` finds it there, or comes first
    reply = pending.wait()
    if isinstance(reply, batching.Stopped):
      return wire.encode_stopped()
    if isinstance(reply, batching.Refusal):
      return wire.encode_refusal(reply.reason)
    return self._codec.encode_actions(reply)

  def close(self) -> None:
    """The actor went away, or another took over its environments. Safe to call twice."""
    with self._lock:
      if self._closed:
        return
      self._closed = True
      pending = self._pending
    self._batcher.remove_caller(pending)


class SessionDesk:
  """Opens sessions; one for each environment group, the newest wins."""

  def __init__(self, batcher: batching.Batcher, spec: types.EnvironmentSpec,
               num_environments: int, num_training: int, token: str):
    """token: shared secret of the run; an actor that cannot show it is turned away."""
    self._batcher = batcher
    self._spec = spec
    self._num_environments = num_environments
    self._num_training = num_training
    self._token = token
    self._lock = threading.Lock()
    self._sessions: list[Session] = []

  def is_admitted(self, token: str) -> bool:
    """Whether the caller belongs to this run; compares in constant time."""
    return hmac.compare_digest(token.encode(), self._token.encode())

  def open(self, hello: bytes) -> Session:
    """A session for the group that says hello; raises ValueError where it does not fit.

    An older session that holds any of the same environments is closed: its actor died, or
    was replaced after being cut off.
    """
    codec, env_ids = wire.GroupCodec.check_hello(hello, self._spec, self._num_environments)
    session = Session(self._batcher, codec, env_ids, self._num_training)
    with self._lock:
      replaced = [s for s in self._sessions if s.env_ids & env_ids]
      self._sessions = [s for s in self._sessions if not s.env_ids & env_ids] + [session]
    for old in replaced:
      old.close()
    return session
