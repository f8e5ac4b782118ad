"""One start of a launcher, which is a shell here."""

import signal
import subprocess
import time

import numpy as np
import pytest

from seed_acme.files import local
from seed_acme.programs.front_end import attempt as attempt_lib
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.front_end import launches
from seed_acme.programs.system import cpu_account
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory


class _Shown:
  """A progress that keeps what it was shown."""

  def __init__(self):
    self.statuses = []

  def update(self, status):
    self.statuses.append(dict(status))


@pytest.mark.parametrize(
  'writes, code, updates', [(True, 0, [None, 5]), (False, processes.FAILURE_EXIT, [None])]
)
def test_a_killed_launcher_is_judged_by_the_status_of_its_own_start(
  tmp_path, monkeypatch, writes, code, updates
):
  """The clock was set back between the two starts, so the later status has the earlier time."""
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'status': 'finished', 'time_s': time.time(), 'updates': 3})
  own = {'status': 'finished', 'time_s': time.time() - 3600, 'updates': 5}
  local.write_json(tmp_path / 'own.json', own)
  write = f'mv {tmp_path}/own.json {run.status}; ' if writes else ''

  def start(*_):
    return subprocess.Popen(['sh', '-c', f'{write}kill -9 $$'], start_new_session=True)

  monkeypatch.setattr(launcher_process, 'start', start)
  shown = _Shown()
  attempt = attempt_lib.Attempt(run, (), 0.0, launches.Supervision(progress=shown), 0.0)
  assert attempt.run() == code
  assert run.failure.exists() == bool(code)
  found = [status.get('updates') for status in shown.statuses]
  assert list(dict.fromkeys(found)) == updates


class _Account:
  """An account that says the same whenever it is asked."""

  def __init__(self, _):
    pass

  def sample(self):
    pass

  def seconds(self):
    return {'learner': 2.0, 'actor': 0.5}


def test_the_cpu_seconds_of_a_start_are_known_though_its_front_end_was_killed(
  tmp_path, monkeypatch
):
  def start(*_):
    return subprocess.Popen(['sleep', '60'], start_new_session=True)

  def killed():
    raise SystemExit

  monkeypatch.setattr(launcher_process, 'start', start)
  monkeypatch.setattr(cpu_account, 'CpuAccount', _Account)
  run = run_directory.create(tmp_path / 'run')
  for _ in range(2):
    with pytest.raises(SystemExit):
      attempt_lib.Attempt(run, (), 0.0, launches.Supervision(should_stop=killed), 0.0).run()
  last = attempt_lib.Attempt(run, (), 0.0, launches.Supervision(should_stop=lambda: True), 0.0)
  last.run()
  last.run()  # a restart by the same front end
  assert last.cpu_s == {'actor': 2.0, 'learner': 8.0}
  assert local.read_json(run.cpu_seconds) == last.cpu_s


@pytest.mark.parametrize('writes', [True, False])
def test_training_has_begun_once_a_start_has_written_a_status(tmp_path, monkeypatch, writes):
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'status': 'stopped', 'time_s': 1.0})  # of an earlier start
  local.write_json(tmp_path / 'own.json', {'status': 'running', 'time_s': 2.0})
  commands = [f'mv {tmp_path}/own.json {run.status}; exit 1' if writes else 'exit 1', 'exit 2']

  def start(*_):
    return subprocess.Popen(['sh', '-c', commands.pop(0)], start_new_session=True)

  monkeypatch.setattr(launcher_process, 'start', start)
  attempt = attempt_lib.Attempt(run, (), 0.0, launches.Supervision(), 0.0)
  assert attempt.run() == 1 and attempt.trains == writes
  assert attempt.run() == 2 and not attempt.trains
  assert attempt.has_begun == writes


def _stoppable(run, monkeypatch):
  """A launcher that saves a checkpoint when it is asked to stop, from its start on."""

  def start(*_):
    save = f'sleep 0.3; touch {run.path}/saved; exit 0'
    saving = f'trap "{save}" TERM; echo; while true; do sleep 0.05; done'
    process = subprocess.Popen(
      ['sh', '-c', saving], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    with process.stdout as output:
      assert output.readline() == '\n'  # it has set its trap
    return process

  monkeypatch.setattr(launcher_process, 'start', start)


def test_a_run_whose_messages_nobody_reads_stops_with_a_checkpoint(tmp_path, monkeypatch):
  run = run_directory.create(tmp_path / 'run')
  _stoppable(run, monkeypatch)

  def show(text):
    raise BrokenPipeError(text)

  def notify():
    run.add_notice('something')
    return False

  attempt = attempt_lib.Attempt(
    run, (), 0.0, launches.Supervision(show=show, should_stop=notify), 0.0
  )
  assert attempt.run() == 0
  assert attempt.stop_signal == signal.SIGPIPE
  assert (run.path / 'saved').exists()


def test_an_error_of_the_front_end_lets_the_launcher_save(tmp_path, monkeypatch):
  run = run_directory.create(tmp_path / 'run')
  _stoppable(run, monkeypatch)

  def fail():
    raise OSError('unexpected')

  with pytest.raises(OSError, match='unexpected'):
    attempt_lib.Attempt(run, (), 0.0, launches.Supervision(should_stop=fail), 0.0).run()
  assert (run.path / 'saved').exists()


def test_a_wish_to_stop_is_remembered_when_the_launcher_dies_at_that_moment(tmp_path, monkeypatch):
  run = run_directory.create(tmp_path / 'run')
  dead = subprocess.Popen(['sh', '-c', 'exit 1'], start_new_session=True)
  dead.wait()
  monkeypatch.setattr(launcher_process, 'start', lambda *_: dead)
  monkeypatch.setattr(cpu_account, 'CpuAccount', _Account)
  should_stop = lambda: True  # never asked while the launcher lived

  attempt = attempt_lib.Attempt(run, (), 0.0, launches.Supervision(should_stop=should_stop), 0.0)
  attempt.run()
  assert attempt.is_stopped


@pytest.mark.parametrize('fails', [False, True])
def test_a_learner_may_wait_for_actors_that_are_away(tmp_path, monkeypatch, fails):
  """At the end of a run, for as long as it has announced; after a failure nobody is told."""
  monkeypatch.setattr(attempt_lib, '_STOP_S', 0.2)
  run = run_directory.create(tmp_path / 'run')
  local.write_json(tmp_path / 'own.json', {'status': 'finished', 'time_s': 2.0})
  failure = f'echo {{}} > {run.failure}; ' if fails else ''

  def start(*_):
    away = f'sleep {60 if fails else 1.5}; touch {run.path}/told'
    script = f'mv {tmp_path}/own.json {run.status}; {failure}{away}'
    return subprocess.Popen(['sh', '-c', script], start_new_session=True)

  monkeypatch.setattr(launcher_process, 'start', start)
  shown = []
  attempt_lib.Attempt(run, (), 0.0, launches.Supervision(show=shown.append), 0.0).run()
  assert (run.path / 'told').exists() != fails
  assert not shown


def test_a_damaged_checkpoint_is_one_of_the_notices(tmp_path, monkeypatch):
  run, shown = run_directory.create(tmp_path / 'run'), []
  for updates in (1, 2):
    damaged = checkpoint_writer.save(run.checkpoints, updates, {'w': np.zeros(2)}, {}, keep=2)
  with open(damaged / 'arrays.npz', 'ab') as file:
    file.write(b'x')
  run.add_notice('of the start before')
  monkeypatch.setattr(
    launcher_process, 'start', lambda *_: subprocess.Popen(['true'], start_new_session=True)
  )
  attempt_lib.Attempt(run, (), 0.0, launches.Supervision(show=shown.append), 0.0).run()
  (line,) = run.notices.read_text().splitlines()
  assert line.startswith('checkpoint 000000000002 is skipped') and shown == [f'Notice: {line}']
