"""Sessions of actors: they decode the messages of a transport and pass them to the batcher.

The three transports (Unix sockets, gRPC, courier) only move bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
_JOINING_BYTES = 1 << 20  # limit for a node's greeting; with its settings it has some kilobytes
# An actor's start may be dated so much later than this host's clock says, because an earlier
# learner has dated it. With a limit, the dates of later starts, which have to exceed it, stay far
# from the end of 64 bits whatever an actor claims.
_AHEAD_MS = 100 * 365 * 24 * 3600 * 1000  # 100 years; some hosts without a clock begin in 1970
_UNKNOWN_BYTES = 1 << 26  # limit for a message while the environments' specification is unknown


class Session:
  """Session of one environment group of one actor."""

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
    self.asks_after_end = False  # whether a request came after the end of the run
    self.loop = batcher.loop  # event loop of the thread that answers
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
    """Takes an encoded request and returns the encoded reply; blocks until a batch included it."""
    replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    self.ask(message, replies.put)
    return replies.get()

  def ask(self, message: array_codec.Buffer, on_reply: Callable[[bytes], None]) -> None:
    """Passes on an encoded request without waiting. on_reply: called once with the encoded reply,
    on any thread; it must neither block nor call this session. `message` must not change before.
    """
    try:
      request = self._decoded(message)
    except ValueError as error:
      on_reply(wire.encode_refusal(str(error)))
      return
    pending = batching.PendingRequest(
      request, self._is_training, lambda reply: on_reply(self._encoded(reply))
    )
    self.asks_after_end |= self._run_is_over()
    with self._lock:
      is_closed = self._closed
      if not is_closed:
        self._pending = pending
        self._batcher.submit(pending)  # under the lock, so that `close` finds it or comes first
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
    """Decodes a request; raises ValueError if it is invalid or names another session's
    environments."""
    request = self._codec.decode_request(message)
    if not self.env_ids.issuperset(request.env_ids.tolist()):
      raise ValueError('the request names environments that this stream did not open')
    return request

  def _ending(self) -> bytes:
    if self._taken:
      return wire.encode_taken()
    return wire.encode_stopped() if self._run_is_over() else wire.encode_paused()

  def close(self, taken: bool = False) -> None:
    """Closes the session, because the actor has left or (taken) another start of it has opened a
    session for the environments. Safe to call twice."""
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
  """Opens sessions, one for each environment group; the latest start of an actor wins."""

  def __init__(
    self,
    batcher_of: Callable[[int], batching.Batcher],
    spec: types.EnvironmentSpec | None,
    num_environments: int,
    num_training: int,
    token: str,
    instance: str = '',
    settings: Mapping[str, str] | None = None,
    groups: Collection[range] = (),
  ):
    """batcher_of: returns the batcher for a group's requests, given its smallest env_id.

    spec: specification of the environments; None = the one that the first actor sends. token:
    shared secret of the run; an actor without it is rejected. instance: instance name of the desk
    that this one replaces, so that its actors need not restart their episodes; '' = a new name.
    settings: those of the learner in which an actor must agree with it, by name; None = in none.
    groups: env_ids of each group that an actor may open; () = any groups.
    """
    self._batcher_of = batcher_of
    self.spec = spec
    self._num_environments = num_environments
    self._num_training = num_training
    self.token = token
    self._settings = settings
    self._group_of = {env_id: group for group in groups for env_id in group}
    self._lock = threading.Lock()
    self._sessions: list[Session] = []
    self._starts: dict[int, wire.Start] = {}  # the latest start so far, by env_id
    self._answered_before = np.zeros(num_environments, np.int64)  # in replaced sessions
    self._run_is_over = False
    # Lets actors tell this server from one that replaces it.
    self.instance = instance or secrets.token_hex(8)

  def is_admitted(self, token: str) -> bool:
    """Whether the caller belongs to this run; compares in constant time."""
    return hmac.compare_digest(token.encode(), self.token.encode())

  def open(self, hello: bytes) -> Session:
    """Returns a session for the group of `hello`; raises ValueError if it does not fit this run.

    Everything is compared here although most nodes have joined before, because an actor outlives
    its learner, and then another one may answer at the address, even that of another run.
    Closes earlier sessions with any of the same environments: their actor died, or was replaced
    after it was disconnected. But if the caller was started before the latest actor with any of
    these environments, the caller is the replaced one and gets a closed session.
    """
    try:
      codec, env_ids, start = wire.GroupCodec.check_hello(
        hello, self.spec, self._num_environments, self._settings
      )
      self._check_group(env_ids)
      _check_date(start)
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

  def _check_group(self, env_ids: frozenset[int]) -> None:
    """Raises ValueError if no actor of the run has such a group.

    What is decided for a group, such as its replay shard, is decided by one of its environments.
    """
    ours = self._group_of.get(min(env_ids))
    if ours is not None and env_ids != frozenset(ours):
      raise ValueError(
        f'the group has {_shown(env_ids)}, but that of environment {min(env_ids)} in this run has '
        f'{_shown(ours)}: start every node with the same num_actors, environments_per_actor, '
        'num_evaluation_environments and actor.environment_groups'
      )

  def latest_joined(self) -> int:
    """Returns the greatest `wire.Start.joined` of actors that have opened a session; 0 if none."""
    with self._lock:
      return max((start.joined for start in self._starts.values()), default=0)

  def max_message_bytes(self, largest_group: int) -> int:
    """Returns the size limit of messages from actors with groups of up to `largest_group`
    environments, and from nodes that join."""
    if self.spec is None:
      return _UNKNOWN_BYTES
    codec = wire.GroupCodec(self.spec, largest_group, self._settings)
    return max(_JOINING_BYTES, codec.max_message_bytes())

  def end_run(self) -> None:
    """Lets replies tell actors from now on that the run is over, so that they end. Without this
    call, a closed batcher tells them to wait for the server that replaces this one."""
    self._run_is_over = True

  def wait_until_all_left(self, timeout_s: float) -> None:
    """Returns when no stream is open any more, or after `timeout_s`."""
    give_up = time.monotonic() + timeout_s
    while self.is_connected().any() and time.monotonic() < give_up:
      time.sleep(_POLL_S)

  def is_connected(self) -> np.ndarray:
    """Returns `[environments]` bool: whether the session of the environment is open."""
    connected = np.zeros(self._num_environments, bool)
    with self._lock:
      for session in self._sessions:
        connected[list(session.env_ids)] = session.is_open
    return connected

  def num_answered(self) -> np.ndarray:
    """Returns `[environments]` int64: how many rows were answered so far."""
    with self._lock:
      number = self._answered_before.copy()
      for session in self._sessions:
        number[list(session.env_ids)] += session.num_answered
    return number


def _check_date(start: wire.Start) -> None:
  now_ms = int(1e3 * time.time())
  if start.joined > now_ms + _AHEAD_MS:
    raise ValueError(
      f'the actor joined at {start.joined} ms, over 100 years later than the clock of the '
      f"learner's host says ({now_ms} ms): set that clock, and start learner and actor again"
    )


def _shown(env_ids: Collection[int]) -> str:
  return f'{len(env_ids)} env_ids, {min(env_ids)} ... {max(env_ids)}'
