"""Registration of nodes that are started one by one, each on its own host.

Such a node first calls `join` on the learner. The learner compares the node's settings with its
own and replies which start of this node it is. A node without environments (replay) stays
connected to learn when the run is over.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
import json
import threading
import time

from seed_acme import version
from seed_acme.transport import wire

PROTOCOL = 3
# Environment seeds depend on the number of a start, so no number may come twice. A node counts the
# starts of its workers up from the number with which it joined.
_STARTS_BETWEEN_JOINS = 1000
STARTS_BETWEEN_RESUMPTIONS = 1_000_000  # of the run; room for 1000 joins of one node


def hello(node: str, settings: Mapping[str, str]) -> bytes:
  """Encodes a node's first message. node: such as `actor/3`. settings: its settings by name, as
  text."""
  return json.dumps(
    {'protocol': PROTOCOL, 'version': version.__version__, 'node': node, 'settings': dict(settings)}
  ).encode()


def parse_welcome(message: bytes) -> wire.Start:
  """Returns which start of the node this is, from the learner's reply to `hello`."""
  return wire.Start(*map(int, json.loads(message)['start']))


class Members:
  """Learner's registry of the nodes that joined. Independent of the transport; thread-safe."""

  def __init__(self, settings: Mapping[str, Mapping[str, str]], resumptions: int):
    """settings: by kind of node, the settings in which it must agree with the learner. resumptions:
    of the run; may be set again, as long as no node can join."""
    self.resumptions = resumptions
    self._settings = settings
    self._lock = threading.Condition()
    self._num_starts: collections.Counter[str] = collections.Counter()
    self._last_joined_ms = 0
    self._num_staying = 0
    self._is_over = False

  def join(self, message: bytes, latest_joined: int = 0) -> bytes:
    """Returns the reply to a `hello`; raises ValueError if the node does not fit this run.

    latest_joined: the greatest `wire.Start.joined` of actors that have connected. An earlier
      learner, whose clock may have been ahead, has dated those starts, and this one is later.
    """
    try:
      said = json.loads(message)
      protocol, node, theirs = said['protocol'], said['node'], said['settings']
    except (ValueError, KeyError, TypeError, RecursionError) as error:
      raise ValueError('the first message is no greeting of a node') from error
    if not isinstance(node, str) or not isinstance(theirs, dict):
      raise ValueError('the first message is no greeting of a node')
    if protocol != PROTOCOL:
      raise ValueError(
        f'{node} speaks protocol {protocol}, the learner {PROTOCOL}: '
        'install the same version of seed_acme on all hosts'
      )
    if said.get('version') != version.__version__:
      raise ValueError(
        f'{node} has version {said.get("version")} of seed_acme, the learner '
        f'{version.__version__}: install the same version on all hosts'
      )
    ours = self._settings.get(node.partition('/')[0])
    if ours is None:
      raise ValueError(f'this run has no node {node}')
    if found := wire.differences(ours, theirs):
      raise ValueError(found)
    with self._lock:
      first = self.resumptions * STARTS_BETWEEN_RESUMPTIONS
      number = first + self._num_starts[node] * _STARTS_BETWEEN_JOINS
      self._num_starts[node] += 1
      latest = max(self._last_joined_ms, latest_joined)
      self._last_joined_ms = max(latest + 1, int(1e3 * time.time()))
      start = wire.Start(self._last_joined_ms, number)
    return json.dumps({'start': list(start)}).encode()

  def wait_for_end(self) -> WaitForEnd:
    """Returns a waiter for a node that stays connected until the run is over."""
    return WaitForEnd(self)

  def end_run(self, timeout_s: float) -> None:
    """Notifies the nodes that stayed connected, and waits until all have been notified."""
    with self._lock:
      self._is_over = True
      self._lock.notify_all()
      self._lock.wait_for(lambda: not self._num_staying, timeout_s)


class WaitForEnd:
  """Wait of one node for the end of the run. Its connection may break before."""

  def __init__(self, members: Members):
    self._members = members
    self._is_broken = False

  def leave(self) -> None:
    """Ends `wait_until_over`, because the connection has ended."""
    with self._members._lock:
      self._is_broken = True
      self._members._lock.notify_all()

  def wait_until_over(self) -> bool:
    """Blocks until the run is over (returns True) or this node's connection has ended (False)."""
    members = self._members
    with members._lock:
      members._num_staying += 1
      try:
        members._lock.wait_for(lambda: members._is_over or self._is_broken)
        return members._is_over
      finally:
        members._num_staying -= 1
        members._lock.notify_all()
