"""Changes to the process while environments are made, or first reset, are undone."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme.acting import activity
from seed_acme.acting import actor
from seed_acme.envs import process_state
from seed_acme.envs import registry


def _meddle():
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
  sys.stdin = sys.stdout = sys.stderr = None
  os.umask(0o777)
  np.seterr(all='raise')
  warnings.simplefilter('ignore')


def _state():
  umask = os.umask(0)
  os.umask(umask)
  return (
    [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
    (sys.stdin, sys.stdout, sys.stderr),
    umask,
    np.geterr(),
    list(warnings.filters),
  )


@pytest.fixture(autouse=True)
def unchanged():
  before = _state()
  yield before
  assert _state() == before


def test_what_code_changes_is_put_back(unchanged):
  with process_state.kept():
    _meddle()
    assert _state() != unchanged
  assert _state() == unchanged


def test_it_is_put_back_after_an_error_too(unchanged):
  with pytest.raises(OSError), process_state.kept():
    _meddle()
    raise OSError
  assert _state() == unchanged


def test_a_thread_leaves_signal_handlers_alone():
  seen = []

  def run():
    with process_state.kept():
      np.seterr(all='raise')
    seen.append(np.geterr())

  before = np.geterr()
  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  assert seen == [before]


def test_a_simulator_that_redirects_the_output_of_the_process_does_not_keep_it(tmp_path):
  """The test needs a process of its own, because pytest redirects the descriptors of this one."""
  code = (
    'import os\n'
    'from seed_acme.envs import process_state\n'
    'with process_state.kept():\n'
    '  os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n'
    "  os.write(2, b'silenced\\n')\n"
    "os.write(2, b'heard\\n')\n"
  )
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stderr == 'heard\n'


def test_the_making_of_an_environment_changes_nothing(monkeypatch, tmp_path, unchanged):
  (tmp_path / 'meddling.py').write_text(
    'import signal\nimport numpy as np\n'
    'from seed_acme.envs import catch\n'
    'def make(seed, num_environments):\n'
    '  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
    "  np.seterr(all='raise')\n"
    '  return catch.Catch(num_environments, seed)\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  registry.make(config_lib.EnvironmentConfig('meddling:make'), 2, 0).close()
  assert _state() == unchanged


class _ResetMeddles:
  """A group whose first reset changes the process."""

  next_call = activity.Doing.STEPPING

  def reset(self):
    _meddle()

  def receive(self):
    return None

  def step(self, actions):
    del actions


def test_the_first_reset_of_an_actor_changes_nothing(unchanged):
  actor.Actor([_ResetMeddles()], activity.Activity()).step()
  assert _state() == unchanged
