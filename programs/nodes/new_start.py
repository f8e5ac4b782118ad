"""A restart of a learner host within its container, because collectives cannot be rejoined."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import signal
import sys
import threading
import time

from seed_acme import types
from seed_acme.programs.system import signals

# CPU-seconds of this process before its command was started again. The kernel goes on counting.
_USED_BEFORE_VARIABLE = 'SEED_ACME_CPU_S_BEFORE'


def cpu_s() -> float:
  """Returns the CPU-seconds of this process since its command was last started."""
  return time.process_time() - float(os.environ.get(_USED_BEFORE_VARIABLE, 0.0))


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
  os.environ[_USED_BEFORE_VARIABLE] = str(time.process_time())
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
