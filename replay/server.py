"""A Reverb server with an agent's tables, and functions that talk to one."""

from __future__ import annotations

import pathlib
import shutil
import threading
import time

import portpicker
import reverb

from seed_acme import core
from seed_acme import types
from seed_acme.progress import waiting
from seed_acme.replay import connection
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib
from seed_acme.transport import fence as fence_lib

_ANSWER_S, _LONGEST_ANSWER_S = 1, 8  # a busy machine answers late, but a stop must be noticed soon
_RETRY_S = 0.2
_TELL_S = 60.0
_SETTLE_S = (
  0.3  # in which a request that waits at a table has taken an item, or an insertion went on
)
_ports_served_here: set[int] = set()


class CannotRestore(Exception):
  """Raised if Reverb does not accept a checkpoint; the text says why."""


class ReplayServer:
  """Serves tables until `stop`. Clients in the same process bypass gRPC automatically."""

  def __init__(
    self,
    spec: core.ReplaySpec,
    batch_size: int,
    queue_size: int,
    unrolls_per_item: int,
    unroll_example: types.Unroll,
    port: int,
    *,
    queue_of: tables.QueueOf = 'items',
    checkpoints: pathlib.Path | None = None,
    restore_from: pathlib.Path | None = None,
    fence: fence_lib.Fence = fence_lib.LOOPBACK,
  ):
    """port 0 picks a free one; raises `types.UserError` if the port is taken.

    queue_of: see `tables.make_tables`.
    checkpoints: folder for Reverb's checkpoints, emptied here; callers move each one away at once.
    restore_from: a checkpoint to start with; raises `CannotRestore` if it is not readable.
    fence: who may connect; Reverb itself listens on every interface and asks for no password.
    """
    if port and not portpicker.is_port_free(port):
      raise types.UserError(
        f'cannot listen on port {port}: it is in use; choose another '
        '--config.replay.port, or 0 for any free one'
      )
    made = tables.make_tables(
      spec, batch_size, queue_size, unrolls_per_item, unroll_example, queue_of
    )
    admitted = fence.look_up()
    try:
      self._server = reverb.Server(
        made, port=port or None, checkpointer=_checkpointer(checkpoints, restore_from)
      )
    except (RuntimeError, ValueError) as error:
      if restore_from is None:
        raise
      raise CannotRestore(f'{type(error).__name__}: {error}') from error
    fence.put_around(self._server.port, fence_lib.ENDS_RUN, admitted)
    _ports_served_here.add(self._server.port)
    self.address = f'localhost:{self._server.port}'

  def stop(self) -> None:
    """Ends the service. Threads of this process that wait at a table are not woken."""
    self._server.stop()


def is_in_this_process(address: str) -> bool:
  """Whether a server may be in this process, so that Reverb reaches its tables without gRPC.

  address: `host:port`. Only the port is compared, so a server elsewhere with the same port is taken
  for one of this process, too.
  """
  return int(address.rpartition(':')[2]) in _ports_served_here


def empty_queue(address: str, item: types.Unroll) -> None:
  """Drops the unrolls that wait in a queue, and the requests for unrolls that wait at it.

  A learner that has ended leaves its last request, which Reverb keeps: it would take the first
  items that the next learner inserts, and drop them. So copies of `item`, which the table admits,
  are inserted until one stays.
  """
  with waiting.on(f'the replay server at {address} to empty its queue'):
    client = connection.client(address)
    _reset_until_empty(client)
    writer = client.trajectory_writer(num_keep_alive_refs=1)
    while not _settled_size(client):
      writer.append(item)
      writer_lib.create_item(writer, tables.UNROLLS, 1.0)
      writer.flush()
    _reset_until_empty(client)


def _reset_until_empty(client: reverb.Client) -> None:
  """Empties a table, also of the items whose insertion had waited for room in it."""
  while True:
    client.reset(tables.UNROLLS)
    time.sleep(_SETTLE_S)
    if not _size(client):
      return


def _settled_size(client: reverb.Client) -> int:
  """Returns the number of items in the table that no waiting request takes."""
  if _size(client):
    time.sleep(_SETTLE_S)
  return _size(client)


def _size(client: reverb.Client) -> int:
  return client.server_info()[tables.UNROLLS].current_size


def empty_memory(address: str) -> int:
  """Drops the unrolls of a memory; returns their number."""
  with waiting.on(f'the replay server at {address} to empty its memory'):
    client = connection.client(address)
    size = _size(client)
    client.reset(tables.UNROLLS)
  return size


def wait_until_up(address: str, timeout_s: float, stop: threading.Event) -> bool:
  """Returns True when a server at `address` answers, False on `stop`; after `timeout_s` raises
  ConnectionError. timeout_s: `math.inf` if the launcher ends this process when the server dies."""
  client, started = connection.client(address), time.monotonic()
  answer_s, next_word_s = _ANSWER_S, _TELL_S
  while not stop.is_set():
    try:
      client.server_info(timeout=answer_s)
      return True
    except (reverb.DeadlineExceededError, RuntimeError) as error:
      waited_s = time.monotonic() - started
      if waited_s > timeout_s:
        text = f'no replay server at {address} for {timeout_s:g} s (actor.connect_timeout_s)'
        raise ConnectionError(text) from error
      if waited_s > next_word_s:
        next_word_s = waited_s + _TELL_S
        print(f'waiting for the replay server at {address}, {waited_s:.0f} s by now', flush=True)
      answer_s = min(2 * answer_s, _LONGEST_ANSWER_S)
      stop.wait(_RETRY_S)
  return False


def _checkpointer(
  folder: pathlib.Path | None, restore_from: pathlib.Path | None
) -> reverb.platform.checkpointers_lib.CheckpointerBase | None:
  """Returns Reverb's checkpointer. Raises `CannotRestore` for an incomplete checkpoint, because
  Reverb would take a missing folder for an empty one and silently start empty."""
  if folder is None:
    return None
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir(parents=True)
  if restore_from is not None and not (restore_from / 'DONE').is_file():
    raise CannotRestore(f'{restore_from} is no whole checkpoint of Reverb')
  return reverb.platform.checkpointers_lib.DefaultCheckpointer(
    str(folder), fallback_checkpoint_path=restore_from and str(restore_from)
  )
