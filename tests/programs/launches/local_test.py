"""The launcher's reports about nodes that have ended."""

import os
import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.programs.launches import local
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory


def _ended_by(signal_name):
  code = f'import os, signal; os.kill(os.getpid(), signal.{signal_name})'
  process = subprocess.Popen([sys.executable, '-c', code])
  os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its exit code can still be read
  return process


@pytest.mark.parametrize('signal_name, is_cause', [('SIGKILL', True), ('SIGTERM', False)])
def test_a_killed_node_is_the_cause_though_another_has_missed_it_first(
  tmp_path, signal_name, is_cause
):
  """After a failure Launchpad sends SIGTERM to all other nodes, even those that are starting."""
  run = run_directory.create(tmp_path / 'run')
  missed = types.OtherNodeFailed('learner/0 has died')
  with pytest.raises(SystemExit), processes.reported_failures(run, 'learner/1', 'learner_1'):
    raise missed
  node = _ended_by(signal_name)
  local._report_lost_processes(run, [('learner', node)])
  node.wait()
  expected = f'the process was lost: killed by {signal_name}' if is_cause else str(missed)
  assert processes.read_failure(run)['message'] == expected
