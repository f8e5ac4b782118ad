"""How a node's failure gets into failure.json, even on a full disk."""

import errno
import os
import subprocess
import sys

import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory


@pytest.fixture
def run(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  processes.clear_failure(run)
  return run


def _fail(run, error):
  """Returns the exit code of a node in which `error` is raised."""
  with pytest.raises(SystemExit) as end:
    with processes.reported_failures(run, 'learner/0', 'learner/0'):
      raise error
  return end.value.code


@pytest.mark.parametrize(
  'error, code',
  [
    (types.UserError('no such level'), 2),
    (types.Failure('the reward is nan'), 1),
    (core.ServerLost('no server for 60 s'), 1),
  ],
)
def test_only_wrong_input_ends_with_2(run, capfd, error, code):
  assert _fail(run, error) == code
  failure = processes.read_failure(run)
  assert failure['is_user_error'] == (code == 2) and failure['message'] == str(error)
  assert 'Traceback' not in capfd.readouterr().err


def test_a_failure_of_another_node_is_marked(run):
  assert _fail(run, types.OtherNodeFailed('learner/1 has died')) == processes.FAILURE_EXIT
  assert processes.is_of_another(processes.read_failure(run))
  assert not processes.is_of_another_that_was_met(processes.read_failure(run))
  processes.clear_failure(run)
  met = types.OtherNodeFailed('learner/1 has died')
  met.has_begun = False
  _fail(run, met)
  assert processes.is_of_another_that_was_met(processes.read_failure(run))
  processes.clear_failure(run)
  _fail(run, types.Failure('the reward is nan'))
  assert not processes.is_of_another(processes.read_failure(run))


def test_a_cause_that_is_written_meanwhile_is_kept(run, monkeypatch):
  """A killed host, and the host that misses it, are reported by two processes at once."""
  sync = os.fsync

  def report_the_cause_first(file):
    monkeypatch.setattr(os, 'fsync', sync)
    processes.report_failure(run, 'learner/0', 'killed by SIGKILL', 'learner/0', is_cause=True)
    sync(file)

  monkeypatch.setattr(os, 'fsync', report_the_cause_first)
  assert _fail(run, types.OtherNodeFailed('learner/0 has died')) == processes.FAILURE_EXIT
  assert processes.read_failure(run)['message'] == 'killed by SIGKILL'
  assert os.listdir(run.path).count('failure.json') == 1
  assert not [name for name in os.listdir(run.path) if name.endswith('.failure.json')]


def _fill(monkeypatch, is_full):
  """Simulates a disk on which nothing can be written while `is_full()`."""
  sync = os.fsync

  def fsync(file):
    if is_full():
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    sync(file)

  monkeypatch.setattr(os, 'fsync', fsync)


def _is_held(run):
  return (run.path / '.reserve').exists()


def test_a_full_disk_is_named_with_what_is_kept_and_how_to_go_on(run, monkeypatch, capfd):
  saved = checkpoint_writer.save(run.checkpoints, 12, {}, {}, keep=1)
  _fill(monkeypatch, lambda: _is_held(run))  # only the reserve has room
  with pytest.raises(OSError, match='No space') as full:
    checkpoint_writer.save(run.checkpoints, 13, {}, {}, keep=1)
  assert _fail(run, full.value) == 1
  message = processes.read_failure(run)['message']
  assert f'the disk of {run.path} is full' in message and ' MB free' in message
  assert f'checkpoint {saved.name} is kept, what was learnt after it is lost' in message
  assert f'Make room there, then go on with: seed-acme train --run_dir={run.path}' in message
  assert 'Traceback' not in capfd.readouterr().err
  text = summary_lib.failure_text(processes.read_failure(run), run)
  assert text.startswith('error in learner/0: the disk of') and len(text.splitlines()) == 2


def test_a_status_that_cannot_be_written_is_the_same_full_disk(run, monkeypatch):
  _fill(monkeypatch, lambda: _is_held(run))
  with pytest.raises(types.Failure, match='make room') as full:
    local.write_json(run.status, {})
  assert _fail(run, full.value) == 1
  assert 'no checkpoint was saved' in processes.read_failure(run)['message']


def test_where_there_is_no_room_for_the_reason_the_front_end_finds_it(run, monkeypatch):
  _fill(monkeypatch, lambda: True)
  assert _fail(run, OSError(errno.EDQUOT, 'Disk quota exceeded')) == 1
  assert processes.read_failure(run) is None and not _is_held(run)
  assert summary_lib.cause(run, 1) is None  # no failure is made up for a disk with room
  monkeypatch.setattr(summary_lib.disk, 'has_no_room', lambda path: True)
  assert f'the disk of {run.path} is full' in summary_lib.cause(run, 1)['message']
  assert summary_lib.cause(run, 0) is None


def test_the_summary_has_the_last_room_and_its_lack_is_a_failure(run, monkeypatch):
  _fill(monkeypatch, lambda: _is_held(run))
  summary = {'status': summary_lib.FAILED}
  assert summary_lib.write_last(run, summary, pytest.fail) is None
  assert local.read_json(run.summary) == summary
  _fill(monkeypatch, lambda: True)
  assert 'is full' in summary_lib.write_last(run, summary, pytest.fail)['message']


def test_a_path_that_cannot_be_written_is_wrong_input_and_a_broken_disk_is_not(
  tmp_path, monkeypatch
):
  with pytest.raises(types.UserError, match='check the path'):
    local.write_text(tmp_path / 'absent' / 'file', '')

  def broken(file):
    raise OSError(errno.EIO, os.strerror(errno.EIO))

  monkeypatch.setattr(os, 'fsync', broken)
  with pytest.raises(types.Failure, match='Input/output error'):
    local.write_text(tmp_path / 'file', '')


_DISTUTILS = """
import distutils, sys
import launchpad
print('setuptools' in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize('node, with_setuptools', [('learner', False), ('actor', True)])
def test_nodes_load_setuptools_only_where_environments_may_need_it(node, with_setuptools):
  variables = {**os.environ, **processes.environment(node, 0)}
  printed = subprocess.run(
    [sys.executable, '-W', 'ignore', '-c', _DISTUTILS],
    env=variables,
    capture_output=True,
    text=True,
    check=True,
  ).stdout
  assert printed == f'{with_setuptools}\n'
