"""A restart of a learner host within its container, because collectives cannot be rejoined."""

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
  """Runs a node's work, and restarts this process when another learner host is lost.

  Vertex AI restarts the container of the lost host. If this process ended, the job could fail.
  """
  try:
    yield
  except SystemExit as exit_:
    # Exits at once, because TensorFlow's threads may delay the interpreter's own exit.
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(exit_.__cause__, types.OtherNodeFailed) and not stop.is_set():
      print('Starting again, to meet the other learner hosts', flush=True)
      _replace_process()
    os._exit(int(exit_.code or 0))


def _replace_process() -> None:
  """Restarts this process's command, without its alarms, ignored signals and open ports."""
  signal.alarm(0)
  signals.forget(signal.SIGTERM, signal.SIGALRM)
  for name in os.listdir('/proc/self/fd'):
    if int(name) > 2:
      with contextlib.suppress(OSError):  # the descriptor of the listing itself
        os.set_inheritable(int(name), False)
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
