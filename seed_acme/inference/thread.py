"""The thread on which a distributed program's inference server runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import threading

from seed_acme.inference import batching
from seed_acme.inference import server as server_lib
from seed_acme.tensors import graph_function

_LOOK_S = 0.5


class InferenceThread:
  """Answers and records the batches of a batcher until `stop`.

  From then until `join` it only moves messages, so that late actors are told of the end.
  """

  def __init__(
    self,
    server: server_lib.InferenceServer,
    batcher: batching.Batcher,
    on_failure: Callable[[BaseException], None],
  ):
    """on_failure: called once, from this thread, with the exception that ended it early."""
    self._server = server
    self._batcher = batcher
    self._on_failure = on_failure
    self._loop = batcher.loop
    self._stop = threading.Event()
    self._has_served = threading.Event()
    self._is_over = threading.Event()
    self._thread = threading.Thread(target=self._run, name='inference', daemon=True)

  def start(self) -> None:
    self._thread.start()

  def stop(self) -> None:
    """Answers all waiting and all later requests with STOPPED."""
    self._stop.set()
    self._batcher.close()
    self._has_served.wait()

  def join(self) -> None:
    """Stops and ends the thread; must be called when no transport uses the loop any more."""
    self.stop()
    self._is_over.set()
    self._loop.wake()
    self._thread.join()
    self._loop.close()

  def _reply(self, batch: list[batching.PendingRequest], replies: Sequence[batching.Reply]) -> None:
    with self._server.timer.phase('reply'):
      for pending, reply in zip(batch, replies):
        pending.answer(reply)
        self._server.statistics.latencies_s.add(pending.age_s())

  def _run(self) -> None:
    with graph_function.serial_execution():
      self._serve_until_stopped()
    self._has_served.set()
    while not self._is_over.is_set():
      self._loop.wait(_LOOK_S)

  def _serve_until_stopped(self) -> None:
    unanswered: list[batching.PendingRequest] = []  # taken from the batcher
    try:
      while not self._stop.is_set():
        with self._server.timer.phase('wait'):
          unanswered = self._batcher.next_batch(_LOOK_S)
        if unanswered:
          answered = self._server.answer([pending.request for pending in unanswered])
          self._reply(unanswered, answered.replies)
          unanswered = []
          self._server.record(answered)  # while the actors step their environments
    except BaseException as error:  # handed to the owner, who ends the node
      self._on_failure(error)
    finally:
      self._batcher.close()
      for pending in unanswered:
        pending.answer(batching.STOPPED)
