"""A Reverb server with an agent's tables, and clients of it."""

from __future__ import annotations

import pathlib
import shutil
import threading
import time

import portpicker
import reverb

from seed_acme import types
from seed_acme.agents import base
from seed_acme.replay import tables

_ANSWER_S = 1
_RETRY_S = 0.2


class CannotRestore(Exception):
  """Reverb does not take a checkpoint; the text says why."""


class ReplayServer:
  """Serves tables until `stop`; within this process Reverb bypasses gRPC by itself."""

  def __init__(
    self,
    spec: base.ReplaySpec,
    queue_size: int,
    unrolls_per_item: int,
    unroll_example: types.Unroll,
    port: int,
    *,
    checkpoints: pathlib.Path | None = None,
    restore_from: pathlib.Path | None = None,
  ):
    """port 0 picks a free one; raises `types.UserError` if the port is taken.

    checkpoints: where Reverb writes; emptied here, whoever asks for one moves it away at once.
    restore_from: a checkpoint to start with; raises `CannotRestore` if it is not readable.
    """
    if port and not portpicker.is_port_free(port):
      raise types.UserError(
        f'cannot listen on port {port}: it is in use; choose another '
        '--config.replay.port, or 0 for any free one'
      )
    made = tables.make_tables(spec, queue_size, unrolls_per_item, unroll_example)
    try:
      self._server = reverb.Server(
        made, port=port or None, checkpointer=_checkpointer(checkpoints, restore_from)
      )
    except (RuntimeError, ValueError) as error:
      if restore_from is None:
        raise
      raise CannotRestore(f'{type(error).__name__}: {error}') from error
    self.address = f'localhost:{self._server.port}'

  def stop(self) -> None:
    """Ends the service. It wakes nobody within this process, who waits at the table itself."""
    self._server.stop()


def empty_queue(address: str) -> None:
  """Drops the unrolls that wait in a queue, for whoever else they were meant."""
  reverb.Client(address).reset(tables.UNROLLS)


def wait_until_up(address: str, timeout_s: float, stop: threading.Event) -> bool:
  """Returns True when a server at `address` answers, False on `stop`; after `timeout_s` raises
  ConnectionError."""
  client = reverb.Client(address)
  give_up = time.monotonic() + timeout_s
  while not stop.is_set():
    try:
      client.server_info(timeout=_ANSWER_S)
      return True
    except (reverb.DeadlineExceededError, RuntimeError) as error:
      if time.monotonic() > give_up:
        raise ConnectionError(
          f'no replay server at {address} for {timeout_s:g} s (actor.connect_timeout_s)'
        ) from error
      stop.wait(_RETRY_S)
  return False


def _checkpointer(
  folder: pathlib.Path | None, restore_from: pathlib.Path | None
) -> reverb.platform.checkpointers_lib.CheckpointerBase | None:
  """Reverb itself takes a missing folder for an empty one, and would start empty, silently."""
  if folder is None:
    return None
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir(parents=True)
  if restore_from is not None and not (restore_from / 'DONE').is_file():
    raise CannotRestore(f'{restore_from} is no whole checkpoint of Reverb')
  return reverb.platform.checkpointers_lib.DefaultCheckpointer(
    str(folder), fallback_checkpoint_path=restore_from and str(restore_from)
  )
