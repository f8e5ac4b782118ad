"""Communication between the learner hosts of a run, by TensorFlow's collective operations.

Each host is one process. All hosts must call the same operations in the same order: an operation
returns when every host has called it, and fails if one has not within the time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import json
import math
import socket
import threading
import time
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import tensorflow_server_pb2
from tensorflow.python.eager import context

from seed_acme import types
from seed_acme.libraries import grpc_variables
from seed_acme.transport import fence as fence_lib

TRACING_S = 300.0  # extra time for the first call of a function
_JOB = 'worker'
_GROUP_KEY = 1
# Operations of different shapes need different keys, so facts and texts add their length to it.
_FACTS_KEY, _TEXT_KEY, _FIRST_KEY = 0, 500, 1000  # the last is for operations in graphs
_WORD = 4  # bytes; TensorFlow gathers no smaller type than int32
_PROBE_S = 2.0  # limit for a host to accept a connection
# Until a dead host stops listening, which happens after its connections break; and until one does
# that has given up. That tells the others at once, and its process ends later.
_CLOSED_S, _ENDED_S = 1.0, 15.0
_POLL_S = 0.2
_LOSSES = (
  tf.errors.UnavailableError,
  tf.errors.DeadlineExceededError,
  tf.errors.AbortedError,
  tf.errors.CancelledError,
)


class HostLost(types.Failure):
  """Another learner host has died or has not answered in time."""


class HostGone(HostLost, types.OtherNodeFailed):
  """Another learner host has ended: it has said so, or no longer listens."""


class Group:
  """One learner host's view of all learner hosts. Used by the learner's thread only."""

  def __init__(
    self,
    index: int,
    addresses: Sequence[str],
    timeout_s: float,
    fence: fence_lib.Fence = fence_lib.LOOPBACK,
  ):
    """index: number of this host. addresses: `host:port` of each host's collective server.
    timeout_s: limit for the other hosts to call the same operation. fence: restricts who may
    connect to this host's port, because TensorFlow's server runs any operation that it is sent."""
    self.index = index
    self.number = len(addresses)
    self._addresses = tuple(addresses)
    self._timeout_s = timeout_s
    self._limit_s = timeout_s  # of the last operation
    self._fence = fence
    self._num_keys = 0
    self._alarm = _Alarm(self._give_up)

  @property
  def is_chief(self) -> bool:
    """Whether this host writes the files of the run."""
    return self.index == 0

  def connect(self, patience_s: float, should_stop: Callable[[], bool]) -> bool:
    """Opens this host's port and waits until the others listen; returns False if stopped before.

    Must be called before TensorFlow's first operation. Raises `HostLost` after `patience_s`.
    """
    grpc_variables.reach_addresses(self._addresses)
    admitted = self._fence.look_up()
    cluster = tf.train.ClusterSpec({_JOB: self._addresses}).as_cluster_def()
    eager = context.context()
    eager.configure_collective_ops(
      collective_leader=f'/job:{_JOB}/replica:0/task:0',
      device_filters=(f'/job:{_JOB}/task:{self.index}',),
    )
    eager.enable_collective_ops(
      tensorflow_server_pb2.ServerDef(
        cluster=cluster,
        default_session_config=eager.config,
        job_name=_JOB,
        task_index=self.index,
        protocol='grpc',
      )
    )
    eager.ensure_initialized()
    own_port = int(self._addresses[self.index].rpartition(':')[2])
    self._fence.put_around(own_port, fence_lib.RUNS_CODE, admitted)
    self._alarm.start()
    end_s = time.monotonic() + patience_s
    while absent := self.absent():
      if should_stop():
        return False
      if time.monotonic() > end_s:
        raise HostLost(f'{_named(absent)} did not start within {patience_s:g} s')
      time.sleep(_POLL_S)
    return True

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Turns TensorFlow's errors of failed operations inside the context into `HostLost`."""
    try:
      yield
    except _LOSSES as error:
      is_late = isinstance(error, tf.errors.DeadlineExceededError)
      raise self._explain(_CLOSED_S if is_late else _ENDED_S) from error

  def absent(self) -> list[int]:
    """Returns the hosts that accept no connection."""
    return [i for i, address in enumerate(self._addresses) if not _listens(address)]

  def wait_for_chief(self, stop: threading.Event, timeout_s: float) -> None:
    """Waits until the chief has ended, because it may still read this host's last message. Does
    nothing on the chief."""
    end_s = time.monotonic() + (0.0 if self.is_chief else timeout_s)
    while 0 not in self.absent() and time.monotonic() < end_s and not stop.wait(_POLL_S):
      pass

  def _explain(self, patience_s: float) -> HostLost:
    """Finds out which host is lost, after an operation has failed because of another host.

    patience_s: until one that ends counts as hanging.
    """
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
      if absent := self.absent():
        return HostGone(f'{_named(absent)} has died')
      time.sleep(_POLL_S)
    others = [i for i in range(self.number) if i != self.index]
    which = _named(others) if len(others) == 1 else f'one of {_named(others)}'
    setting = ' (learner.host_timeout_s)' if self._limit_s == self._timeout_s else ''
    return HostLost(f'{which} was lost, or did not answer within {self._limit_s:g} s{setting}')

  @contextlib.contextmanager
  def timed(self, timeout_s: float | None = None) -> Iterator[None]:
    """Makes operations inside the context fail if the other hosts do not call them in time.

    TensorFlow's own time-outs would occupy a thread for each operation until the time has passed.
    timeout_s: None, or less than the group's time-out = that.
    """
    self._limit_s = max(self._timeout_s, timeout_s or 0.0)
    self._alarm.set(self._limit_s)
    try:
      yield
    finally:
      self._alarm.clear()

  def timed_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function` with a time limit: it fails if the other hosts do not call it in time.

    The first call has `TRACING_S` more, because each host then traces and compiles the function.
    """
    more_s = [TRACING_S]

    def call(*arguments: Any) -> Any:
      with self.timed(self._timeout_s + (more_s.pop() if more_s else 0.0)):
        return function(*arguments)

    return call

  def _give_up(self) -> None:
    message = f'no answer within {self._limit_s:g} s'
    context.context().abort_collective_ops(tf.errors.DEADLINE_EXCEEDED, message)

  def facts(self, own: Sequence[int], timeout_s: float | None = None) -> np.ndarray:
    """Gathers K numbers of each host, `[hosts, K]` int64. timeout_s: None = that of the group."""
    key = _FACTS_KEY + len(own)
    with tf.device('cpu:0'), self.timed(timeout_s):
      return self._gather(tf.constant([list(own)], tf.int64), key).numpy()

  def reports(self, own: Any, timeout_s: float | None = None) -> list[Any]:
    """Gathers a JSON value of each host, in the hosts' order. timeout_s: as in `facts`."""
    text = np.frombuffer(json.dumps(own).encode(), np.uint8)
    sizes = self.facts([text.size], timeout_s)[:, 0]
    bits = int(sizes.max() - 1).bit_length()
    padded = np.zeros((1, 1 << bits), np.int32)
    padded[0, : text.size] = text
    with tf.device('cpu:0'), self.timed():
      rows = self._gather(tf.constant(padded), _TEXT_KEY + bits).numpy()
    return [json.loads(row[:size].astype(np.uint8).tobytes()) for row, size in zip(rows, sizes)]

  def of_chief(self, own: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the chief's arrays on every host. own: this host's, of the same shapes and types."""
    flat = [tf.constant(x.reshape(-1)) for x in own]
    with self.timed():
      joined = self.joined(flat, [0] * len(flat))
    return [y.numpy()[: x.size].reshape(x.shape) for x, y in zip(own, joined)]

  def joined(self, leaves: Sequence[tf.Tensor], axes: Sequence[int]) -> list[tf.Tensor]:
    """Concatenates the hosts' parts of each leaf along its axis, in the hosts' order.

    Shapes must be known and equal on all hosts. Has no gradient.
    """
    with tf.device('cpu:0'):
      packed = _packed(leaves)
      words = self._gather(packed, self._new_key())
      rows = tf.reshape(tf.bitcast(words, tf.uint8), [self.number, packed.shape[0] * _WORD])
      return _unpacked(rows, leaves, axes)

  def mean(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Averages float32 tensors over the hosts, in a graph. The result is bitwise equal on all."""
    with tf.device('cpu:0'):
      flat = tf.concat([tf.reshape(tf.convert_to_tensor(x), [-1]) for x in tensors], axis=0)
      total = tf.raw_ops.CollectiveReduceV2(
        input=flat,
        group_size=self.number,
        group_key=_GROUP_KEY,
        instance_key=self._new_key(),
        ordering_token=[],
        merge_op='Add',
        final_op='Id',
      )
      parts = tf.split(total / self.number, [x.shape.num_elements() for x in tensors])
      return [tf.reshape(part, x.shape) for part, x in zip(parts, tensors)]

  def _gather(self, tensor: tf.Tensor, key: int) -> tf.Tensor:
    """Concatenates the hosts' tensors along the first axis."""
    return tf.raw_ops.CollectiveGatherV2(
      input=tensor,
      group_size=self.number,
      group_key=_GROUP_KEY,
      instance_key=key,
      ordering_token=[],
    )

  def _new_key(self) -> int:
    """Returns the key of an operation in a graph. It is the same on all hosts, because they trace
    the same graphs in the same order."""
    self._num_keys += 1
    return _FIRST_KEY + self._num_keys


class _Alarm:
  """Calls `ring` from a separate thread when the time that was set has passed."""

  def __init__(self, ring: Callable[[], None]):
    self._ring = ring
    self._due_s = math.inf
    self._thread = threading.Thread(target=self._run, name='collectives', daemon=True)

  def start(self) -> None:
    self._thread.start()

  def set(self, after_s: float) -> None:
    self._due_s = time.monotonic() + after_s

  def clear(self) -> None:
    self._due_s = math.inf

  def _run(self) -> None:
    while time.monotonic() < self._due_s:
      time.sleep(_POLL_S)
    self._ring()


def _named(hosts: Sequence[int]) -> str:
  return ', '.join(f'learner/{i}' for i in hosts)


def _listens(address: str) -> bool:
  host, _, port = address.rpartition(':')
  with contextlib.suppress(OSError):
    socket.create_connection((host.strip('[]'), int(port)), _PROBE_S).close()
    return True
  return False


def _packed(leaves: Sequence[tf.Tensor]) -> tf.Tensor:
  """Packs the bytes of all leaves into one tensor `[words]` int32, for a single operation."""
  parts = [tf.reshape(_as_bytes(x), [-1]) for x in leaves]
  num_bytes = sum(part.shape[0] for part in parts)
  parts.append(tf.zeros([-num_bytes % _WORD], tf.uint8))
  return tf.bitcast(tf.reshape(tf.concat(parts, axis=0), [-1, _WORD]), tf.int32)


def _as_bytes(x: tf.Tensor) -> tf.Tensor:
  return tf.cast(x, tf.uint8) if x.dtype == tf.bool else tf.bitcast(x, tf.uint8)


def _unpacked(rows: tf.Tensor, leaves: Sequence[tf.Tensor], axes: Sequence[int]) -> list[tf.Tensor]:
  """Unpacks rows `[hosts, bytes]` into leaves, each concatenated over the hosts along its axis."""
  found, begin = [], 0
  for x, axis in zip(leaves, axes):
    size = x.shape.num_elements() * x.dtype.size
    of_hosts = _from_bytes(rows[:, begin : begin + size], x)
    begin += size
    found.append(tf.concat(tf.unstack(of_hosts), axis=axis))
  return found


def _from_bytes(rows: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
  """Converts rows of bytes to `[hosts, *like.shape]` of `like`'s type."""
  shape = [rows.shape[0], *like.shape]
  if like.dtype == tf.bool:
    return tf.cast(tf.reshape(rows, shape), tf.bool)
  if like.dtype.size == 1:
    return tf.bitcast(tf.reshape(rows, shape), like.dtype)
  return tf.bitcast(tf.reshape(rows, [*shape, like.dtype.size]), like.dtype)
