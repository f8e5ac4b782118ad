"""What the scheduler of a sweep says about runs that end at once."""

import io
import subprocess

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs.system import processes
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import runs as sweep_runs
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_POPEN = subprocess.Popen
_LOCKED = 'run_dir is being trained by another program'


@pytest.fixture(name='run')
def _run(tmp_path):
  """A run that failed yesterday."""
  [run] = sweep_plan.make(registry.load('catch_vtrace'), [], 1).runs(tmp_path)
  run_directory.create(run.run_dir.path)
  saved_config.save(run.config, run.run_dir.config)
  processes.report_failure(run.run_dir, 'learner/0', 'the disk was full yesterday', 'learner/0')
  return run


def _reasons(run, monkeypatch, end, stop_signal=None):
  """Returns the failures after a start of the run, which is `end(log)`."""

  class Child:
    returncode = processes.USER_ERROR_EXIT

    def __init__(self, *_, stdout, **__):
      end(stdout)
      scheduler.stop_signal = stop_signal

    def poll(self):
      return self.returncode

    def terminate(self):
      pass

  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', Child)
  scheduler = sweep_schedule.Scheduler(
    sweep_runs.Grid([run]), {}, jobs=1, launch='', progress=None, after_run=lambda _: None
  )
  scheduler.run()
  return scheduler.failures


def _refuse(log):
  log.write(f'error: {_LOCKED}\n')


def test_a_start_that_is_refused_is_not_blamed_for_an_earlier_failure(run, monkeypatch):
  assert _reasons(run, monkeypatch, _refuse) == {run.run_dir.path: _LOCKED}
  assert sweep_state.read(run).message == 'the disk was full yesterday'  # it is still in the folder


def test_a_stop_before_the_run_has_begun_is_no_failure(run, monkeypatch):
  assert _reasons(run, monkeypatch, _refuse, stop_signal=2) == {}


@pytest.mark.parametrize('message', ['the ball fell off', 'the disk was full yesterday'])
def test_a_failure_of_this_start_is_the_reason_also_if_it_is_the_same_again(
  run, monkeypatch, message
):
  def fail(_):
    old = run.run_dir.failure.stat().st_mtime_ns
    while run.run_dir.failure.exists() and run.run_dir.failure.stat().st_mtime_ns == old:
      processes.clear_failure(run.run_dir)
      processes.report_failure(run.run_dir, 'learner/0', message, 'learner/0')

  assert _reasons(run, monkeypatch, fail) == {run.run_dir.path: message}
  assert local.read_json(run.run_dir.failure)['message'] == message


class _Search(sweep_runs.Grid):
  """Runs whose search cannot use its database in the methods named."""

  def __init__(self, runs, broken):
    super().__init__(runs)
    self._broken = broken

  def to_stop(self, running):
    return self._of('to_stop') or super().to_stop(running)

  def ended(self, run, has_failed):
    return self._of('ended') or super().ended(run, has_failed)

  def _of(self, method):
    if method in self._broken:
      raise types.Failure('database is locked')


def _sleeping(monkeypatch, seconds, calls):
  """Makes a run a process that sleeps, saves when it is told to stop, and notes how it is ended."""

  class Child(_POPEN):
    def __init__(self, *_, **__):
      saving = f'trap "exit 0" TERM; echo; sleep {seconds} & wait'
      super().__init__(['sh', '-c', saving], stdout=subprocess.PIPE, start_new_session=True)
      with self.stdout as output:
        output.readline()  # it has set its trap

    def terminate(self):
      calls.append('terminate')
      super().terminate()

    def kill(self):
      calls.append('kill')
      super().kill()

  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', Child)
  monkeypatch.setattr(sweep_schedule, '_LOOK_S', 0.05)


class _Progress(sweep_schedule.Progress):
  def __init__(self):
    super().__init__(io.StringIO())
    self.messages = []

  def message(self, text):
    self.messages.append(text)


def test_a_search_that_cannot_decide_what_to_prune_goes_on_and_says_so_once(run, monkeypatch):
  calls, progress = [], _Progress()
  _sleeping(monkeypatch, 0.5, calls)
  scheduler = sweep_schedule.Scheduler(
    _Search([run], ['to_stop']), {}, jobs=1, launch='', progress=progress, after_run=lambda _: None
  )
  scheduler.run()
  assert calls == []
  notices = [text for text in progress.messages if text.startswith('Notice')]
  assert notices == ['Notice: nothing is pruned for now: database is locked']


def test_an_error_of_a_search_stops_the_other_runs_with_checkpoints(tmp_path, monkeypatch):
  runs = sweep_plan.make(registry.load('catch_vtrace'), [], 2).runs(tmp_path)
  calls, seconds = [], iter([0.1, 600])
  search = _Search(runs, ['ended'])
  started = sweep_schedule._start

  def start(*arguments):
    _sleeping(monkeypatch, next(seconds), calls)
    return started(*arguments)

  monkeypatch.setattr(sweep_schedule, '_start', start)
  scheduler = sweep_schedule.Scheduler(
    search, {}, jobs=2, launch='', progress=None, after_run=lambda _: None
  )
  with pytest.raises(types.Failure, match='database is locked'):
    scheduler.run()
  assert calls == ['terminate']
