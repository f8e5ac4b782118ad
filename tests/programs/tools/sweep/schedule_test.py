"""What the scheduler of a sweep says about runs that end at once."""

import pytest

from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs.system import processes
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import runs as sweep_runs
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

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
