"""Ctrl-C while a command is being imported."""

import signal
import subprocess
import sys

_SLOW_IMPORT = """
import sys, time
from seed_acme.programs import start

class Slow:
  def find_spec(self, name, path=None, target=None):
    if name == 'seed_acme.programs.cli':
      print('importing', flush=True)
      time.sleep(60)

sys.meta_path.insert(0, Slow())
sys.exit(start.main())
"""


def test_ctrl_c_during_the_imports_ends_without_a_traceback():
  process = subprocess.Popen(
    [sys.executable, '-c', _SLOW_IMPORT],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    # In the background of a script the signal is ignored, and programs inherit that.
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
  )
  assert process.stdout.readline() == 'importing\n'
  process.send_signal(signal.SIGINT)
  _, errors = process.communicate()
  assert (process.returncode, errors) == (130, '')
