"""An actor's current activity, as another process reads it."""

import os
import subprocess
import sys

from seed_acme.acting import activity as activity_lib

_CHILD = """
import sys
from seed_acme.acting import activity as activity_lib
activity = activity_lib.at(int(sys.argv[1]))
activity.begin(activity_lib.Doing.MAKING)
activity.begin(activity_lib.Doing.STEPPING, 1)
"""


def test_another_process_sees_what_was_begun_last():
  descriptor = activity_lib.shared_memory()
  activity = activity_lib.at(descriptor)
  assert activity.read() == (0, activity_lib.Doing.STARTING, 0)
  subprocess.run(
    [sys.executable, '-c', _CHILD, str(descriptor)], check=True, pass_fds=(descriptor,), timeout=60
  )
  os.close(descriptor)
  assert activity.read() == (2, activity_lib.Doing.STEPPING, 1)
