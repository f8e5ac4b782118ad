"""A new start of a learner host in its own container, since collectives cannot be joined again."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import signal
import sys
import threading

from seed_acme import types
from seed_acme.programs.system import signals


@contextlib.contextmanager
def after_loss_of_another(stop: threading.Event) -> Iterator[None]:
  """Around a node's work: replaces the process by one like it when another learner host is lost.

  Vertex AI starts the container of that one anew. If this one ended, the job could fail by it.
  """
  try:
    yield
  except SystemExit as exit_:
    # Not by the interpreter's own end, which threads of TensorFlow may hold up.
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(exit_.__cause__, types.OtherNodeFailed) and not stop.is_set():
      print('Starting again, to meet the other learner hosts', flush=True)
      _replace_process()
    os._exit(int(exit_.code or 0))


def _replace_process() -> None:
  """By the same command. It takes over neither alarms, ignored signals nor open ports."""
  signal.alarm(0)
  signals.forget(signal.SIGTERM, signal.SIGALRM)
  for name in os.listdir('/proc/self/fd'):
    if int(name) > 2:
      with contextlib.suppress(OSError):  # that of the listing itself
        os.set_inheritable(int(name), False)
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
