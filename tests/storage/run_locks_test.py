"""Who trains in a run folder, and who still writes it."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.parallel import devices
from seed_acme.programs import single_process as programs_single_process
from seed_acme.programs.building import sections
from seed_acme.programs.launches import single_process as launch
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
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


def test_who_prepares_a_run_is_refused_as_who_trains_it(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  before = sorted(tmp_path.rglob('*'))
  run_locks.refuse_if_held(run)
  run_locks.refuse_if_held(run_directory.RunDirectory(tmp_path / 'new'))
  assert sorted(tmp_path.rglob('*')) == before
  with _until_killed(_HOLD, run) as holder:
    with pytest.raises(types.UserError, match=f'process {holder.pid}'):
      run_locks.refuse_if_held(run)
  run_locks.refuse_if_held(run)


def test_a_lock_of_somebody_else_s_folder_empties_no_file_of_ours(tmp_path):
  run, ours = run_directory.create(tmp_path / 'run'), tmp_path / 'thesis.txt'
  ours.write_text('all my work')
  (run.path / run_directory.LOCK_FILE).symlink_to(ours)
  with pytest.raises(types.UserError, match='out of the run folder'):
    run_locks.refuse_if_held(run)
  assert ours.read_text() == 'all my work'


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
  for name in ('_CHIEF_ENDS_S', '_CHIEF_IS_FREED_S'):
    monkeypatch.setattr(run_locks, name, 0.2)
  run = run_directory.create(tmp_path / 'run')
  with _until_killed(_LEARN, run) as holder:
    with pytest.raises(types.UserError, match=rf'has a learner already, .*process {holder.pid}'):
      with run_locks.learns(run, is_chief=True):
        pass
    with pytest.raises(types.UserError, match='has a learner already'):
      with run_locks.trains(run):
        pass
    with pytest.raises(types.UserError, match='has a learner already'):
      run_locks.refuse_if_held(run)
  for name in ('_CHIEF_ENDS_S', '_CHIEF_IS_FREED_S'):
    monkeypatch.setattr(run_locks, name, 60.0)
  with _until_killed(_LEARN, run) as holder:  # as after a kill of the program above it
    threading.Timer(0.3, holder.kill).start()
    with run_locks.learns(run, is_chief=True):
      pass
  with _until_killed(_LEARN, run) as holder:
    threading.Timer(0.3, holder.kill).start()
    run_locks.refuse_if_held(run)
  assert not run_locks.has_learner(run)


def test_the_learner_of_a_second_program_writes_nothing_into_the_folder(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(run_locks, '_CHIEF_IS_FREED_S', 0.1)
  run = run_directory.create(tmp_path / 'run')
  config = registry.load('catch_vtrace')
  links = node_lib.Links('token', 'host:1')
  life = lives.OnThisMachine(threading.Event())
  node = node_lib.Node(sections.split(config).learners[0], links, run, life)
  with _until_killed(_LEARN, run):
    before = sorted(path.name for path in run.path.iterdir())
    with pytest.raises(SystemExit) as end:
      life.learner(node)
  assert end.value.code == processes.USER_ERROR_EXIT
  assert 'learner/0: run_dir' in capsys.readouterr().out
  assert sorted(path.name for path in run.path.iterdir()) == before


@pytest.mark.slow
def test_a_run_in_one_process_has_the_locks_of_a_learner(tmp_path, monkeypatch):
  run, held = run_directory.create(tmp_path / 'run'), []
  monkeypatch.setattr(
    programs_single_process, 'run', lambda *_, **__: held.append(run_locks.has_learner(run))
  )
  # What would change this process.
  monkeypatch.setattr(devices, 'configure', lambda *_: None)
  monkeypatch.setattr(launch.processes, 'configure_tensorflow', lambda *_: None)
  monkeypatch.setattr(launch.descriptors, 'prepare', lambda: None)
  monkeypatch.setattr(launch.signals, 'terminate', lambda stop: None)
  assert launch.Launch().lead(registry.load('catch_vtrace'), run) == 0
  assert held == [True] and not run_locks.has_learner(run)
