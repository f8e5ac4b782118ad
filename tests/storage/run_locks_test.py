"""Who trains in a run folder, and who still writes it."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from seed_acme import types
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks

_HOLD = """
import sys
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
with run_locks.trains(run_directory.create(sys.argv[1])):
  print('held', flush=True)
  sys.stdin.read()
"""


@contextlib.contextmanager
def _until_killed(code, run):
  """Starts a process that runs `code`, which locks something of the run."""
  holder = subprocess.Popen(
    [sys.executable, '-c', code, str(run.path)],
    text=True,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  try:
    assert holder.stdout.readline() == 'held\n'
    yield holder
  finally:
    holder.kill()
    holder.communicate()


def test_a_second_program_is_refused_until_the_first_is_killed(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  with _until_killed(_HOLD, run) as holder:
    with pytest.raises(types.UserError, match=f'process {holder.pid}'):
      with run_locks.trains(run):
        pass
  with run_locks.trains(run):
    with pytest.raises(types.UserError, match=f'process {os.getpid()}'):
      with run_locks.trains(run):
        pass
  with run_locks.trains(run):
    pass


_LEARN = _HOLD.replace(
  'trains(run_directory.create(sys.argv[1]))', 'learns(run_directory.create(sys.argv[1]), True)'
)


def test_a_run_has_a_learner_until_the_last_one_has_let_go(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  assert not run_locks.has_learner(run)
  with run_locks.learns(run, is_chief=True):
    with run_locks.learns(run, is_chief=False):  # on another host
      assert run_locks.has_learner(run)
    assert run_locks.has_learner(run)
  assert not run_locks.has_learner(run)
  with _until_killed(_LEARN, run):
    assert run_locks.has_learner(run)
  assert not run_locks.has_learner(run)


def test_a_run_has_one_learner_that_writes_it(tmp_path, monkeypatch):
  monkeypatch.setattr(run_locks, '_CHIEF_ENDS_S', 0.2)
  run = run_directory.create(tmp_path / 'run')
  with _until_killed(_LEARN, run) as holder:
    with pytest.raises(types.UserError, match=rf'has a learner already, .*process {holder.pid}'):
      with run_locks.learns(run, is_chief=True):
        pass
    with pytest.raises(types.UserError, match='has a learner already'):
      with run_locks.trains(run):
        pass
  monkeypatch.setattr(run_locks, '_CHIEF_ENDS_S', 60.0)
  with _until_killed(_LEARN, run) as holder:  # as after a kill of the program above it
    threading.Timer(0.3, holder.kill).start()
    with run_locks.learns(run, is_chief=True):
      pass
  assert not run_locks.has_learner(run)
