"""A process that tries user code: its results, and what is left of it."""

import importlib
import subprocess
import time

import psutil
import pytest

from seed_acme.programs.trial import process as trial_process

_MODULE = """
import subprocess, sys
told = sys.stdin.read()
child = subprocess.Popen(['sleep', '600'])
print(child.pid, flush=True)
with open('child', 'w') as file:
  file.write(str(child.pid))
if told == 'hang':
  child.wait()
print(told, file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
  (tmp_path / 'trial.py').write_text(_MODULE)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv('PYTHONPATH', str(tmp_path))
  importlib.invalidate_caches()
  return tmp_path


def _ends(pid):
  """Whether a process ends within ten seconds, reaped or not."""
  give_up = time.monotonic() + 10
  while time.monotonic() < give_up:
    try:
      if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
        return True
    except psutil.NoSuchProcess:
      return True
    time.sleep(0.02)
  return False


def test_it_says_how_it_ended_and_leaves_nothing_running():
  ended = trial_process.run('trial', 'given')
  assert (ended.code, ended.errors) == (3, 'given\n')
  assert _ends(int(ended.output))


def test_one_that_hangs_is_killed_with_what_it_has_started(folder):
  with pytest.raises(subprocess.TimeoutExpired):
    trial_process.run('trial', 'hang', timeout_s=5.0)
  assert _ends(int((folder / 'child').read_text()))
