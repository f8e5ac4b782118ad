"""The launcher's reports about nodes that have ended."""

import os
import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.programs.launches import local
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

_MISSED = 'learner/0 has died'


def _ending_by(signal_name, after_s=0.0):
  code = (
    f'import os, signal, time; time.sleep({after_s}); os.kill(os.getpid(), signal.{signal_name})'
  )
  return subprocess.Popen([sys.executable, '-c', code])


def _ended_by(signal_name):
  process = _ending_by(signal_name)
  os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its exit code can still be read
  return process


@pytest.mark.parametrize('signal_name, is_cause', [('SIGKILL', True), ('SIGTERM', False)])
def test_a_killed_node_is_the_cause_though_another_has_missed_it_first(
  tmp_path, monkeypatch, signal_name, is_cause
):
  """After a failure Launchpad sends SIGTERM to all other nodes, even those that are starting."""
  monkeypatch.setattr(local, '_DYING_S', 0.2)
  run = _run_that_missed_a_node(tmp_path)
  node = _ended_by(signal_name)
  local._report_lost_processes(run, [('learner', node)])
  node.wait()
  expected = f'the process was lost: killed by {signal_name}' if is_cause else _MISSED
  assert processes.read_failure(run)['message'] == expected


def test_a_killed_node_that_is_still_dying_is_waited_for(tmp_path):
  """The kernel closes a process's connections before it frees its memory and tells its parent."""
  run = _run_that_missed_a_node(tmp_path)
  local._report_lost_processes(run, [('learner', _ending_by('SIGKILL', after_s=0.5))])
  assert processes.read_failure(run)['message'] == 'the process was lost: killed by SIGKILL'


def _run_that_missed_a_node(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  with pytest.raises(SystemExit), processes.reported_failures(run, 'learner/1', 'learner_1'):
    raise types.OtherNodeFailed(_MISSED)
  return run
