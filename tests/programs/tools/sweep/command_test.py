"""`seed-acme sweep` with real processes, and its wrong arguments."""

import contextlib
import csv
import os
import pathlib
import signal
import sqlite3
from typing import NamedTuple

import pytest

from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs import cli
from seed_acme.programs.system import processes
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import saved_plan
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.trial import door
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.slow

_GRID = '--grid=agent.optimizer.learning_rate=1e-3,1e-2'
_STEPS = 4_000  # for slow environments half a minute, more than a run is ahead of another
_HANG_S = 450.0  # two runs at a time; half a minute on an idle machine


def _sweep(runs, folder, *arguments):
  return runs.start(
    'sweep', '--config=catch_vtrace', *runs.small, '--out=out', *arguments, folder=folder
  )


def _run_dirs(run):
  return [run_directory.RunDirectory(path) for path in sorted(run.folder.glob('out/*/seed_1'))]


def _statuses(run):
  return [local.read_json(found.status) for found in _run_dirs(run) if found.status.exists()]


def _wait(run, until, is_so, what):
  until(lambda: is_so() or run.process.poll() is not None, what, _HANG_S)
  assert run.process.poll() is None, run.stdout + run.stderr


def _table(run, name='table.csv'):
  with open(run.folder / 'out' / name, newline='') as file:
    return list(csv.DictReader(file))


class Drill(NamedTuple):
  """A search that was stopped in its first two trials, and killed in one of them after that."""

  stopped: object  # the `Run` of the command
  statuses: list[dict]  # of the two trials, after the stop
  arguments: tuple[str, ...]


@pytest.fixture(scope='module')
def drill(runs, until):
  folder = runs.folder()
  hurry = folder / 'hurry'
  arguments = (
    '--search=agent.optimizer.learning_rate=1e-4..1e-2:log',
    '--trials=2',
    f'--config.total_steps={_STEPS}',
    '--config.environment.id=drill_slow:Slow',
    '--config.environment.settings',
    *('step_s', '0.1', 'hurry', str(hurry)),
  )
  stopped = _sweep(runs, folder, *arguments, '--jobs=2')
  updates = lambda: [status['updates'] for status in _statuses(stopped)]
  _wait(stopped, until, lambda: len(updates()) == 2 and all(updates()), 'updates of two trials')
  os.killpg(stopped.process.pid, signal.SIGINT)
  assert stopped.wait() == 130, stopped.stderr
  statuses, before = _statuses(stopped), updates()

  killed = _sweep(runs, folder, *arguments, '--jobs=1')
  _wait(killed, until, lambda: sum(updates()) > sum(before), 'an update')
  killed.process.kill()
  killed.process.wait()
  until(lambda: not killed.nodes(), 'the end of all processes', 30)
  hurry.touch()
  return Drill(stopped, statuses, arguments)


class TestInterruptedSearch:
  """A `--search` that is stopped, killed, finished, and started once more."""

  pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

  def test_ctrl_c_stops_the_runs_with_checkpoints_and_leaves_a_table(self, drill):
    run = drill.stopped
    assert run.nodes() == []
    assert 'Traceback' not in run.stdout + run.stderr
    assert 'Stopping with checkpoints' in run.stdout
    assert run.stdout.count('Stopped learning_rate') == 2
    assert run.stdout.splitlines()[-1].startswith('Resume: ')
    assert run.stdout.splitlines()[-1].endswith('sweep --out=out --jobs=2 --trust_run_dir')
    assert [status['status'] for status in drill.statuses] == ['stopped'] * 2

  def test_the_command_that_it_prints_finishes_its_trials_and_they_stay(self, drill, runs, digest):
    resume = ('sweep', '--out=out', '--jobs=2', '--trust_run_dir')
    run = runs.start(*resume, folder=drill.stopped.folder)
    assert run.wait(_HANG_S) == 0, run.stdout + run.stderr
    assert run.stderr == '' and run.nodes() == []
    assert run.stdout.count('Resumed learning_rate=') == 2
    assert 'Started' not in run.stdout and '2 of 2 runs finished' in run.stdout
    statuses = _statuses(run)
    assert [status['status'] for status in statuses] == ['finished'] * 2
    assert sorted(status['resumptions'] for status in statuses) == [1, 2]
    assert all(status['agent_steps'] >= _STEPS for status in statuses)
    with contextlib.closing(sqlite3.connect(run.folder / 'out' / 'search.db')) as database:
      states = database.execute('select state from trials').fetchall()
    assert states == [('COMPLETE',)] * 2
    assert [row['seeds'] for row in _table(run)] == ['1'] * 2
    assert {row['status'] for row in _table(run, 'runs.csv')} == {'finished'}
    for name in ('table.md', 'curves.png', 'settings.png'):
      assert (run.folder / 'out' / name).stat().st_size > 500

    before = [digest(found.path) for found in _run_dirs(run)]
    again = _sweep(runs, run.folder, *drill.arguments)
    assert again.wait() == 0, again.stderr
    assert '2 runs of them over' in again.stdout and 'Started' not in again.stdout
    assert before == [digest(found.path) for found in _run_dirs(run)]


def _refused(capsys, *arguments):
  assert cli.main(['sweep', *arguments]) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ')
  return err


@pytest.fixture(name='may_start')
def _may_start(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(door, 'check', lambda configs: None)  # it would start a process
  return tmp_path


@pytest.fixture(name='here')
def _here(may_start, monkeypatch):
  monkeypatch.setattr(sweep_schedule, '_start', None)  # nothing may be started
  return may_start


_COMPLETE = ('--config=catch_vtrace', _GRID, '--seeds=2')


@pytest.mark.parametrize(
  'arguments, words',
  [
    ((), ['--config=NAME_OR_PATH', '--out']),
    (('--out=nothing',), ['--config=NAME_OR_PATH']),
    (('--config=catch_vtrac', '--seeds=2'), ['catch_vtrac', 'catch_vtrace']),
    (('--config=catch_vtrace', _GRID), ['--seeds=N']),
    (('--config=catch_vtrace', '--grid=agent.discout=1', '--seeds=2'), ['agent.discount?']),
    ((*_COMPLETE, '--seeds=two'), ['two']),
    ((*_COMPLETE, '--jobs=-1'), ['--jobs (-1)']),
    ((*_COMPLETE, '--launch=local_mt'), ['local_mt', 'single_process']),
    ((*_COMPLETE, '--config.agent.optimizer.learning_rate=1'), ['learning_rate', 'keep one']),
    ((*_COMPLETE, '--config.replay.port=9999', '--jobs=2'), ['replay.port (9999)', '--jobs=1']),
    ((*_COMPLETE, '--config.initial_checkpoint=nothing'), ['nothing', 'no checkpoint']),
    ((*_COMPLETE, '--out=/proc/sweep'), ['/proc/sweep']),
    ((*_COMPLETE, '--out=thesis'), ['thesis', 'chapter.tex']),
    ((*_COMPLETE, '--out=thesis/chapter.tex'), ['thesis/chapter.tex']),
    (('--report',), ['--out']),
    (('--report', '--out=thesis'), ["'thesis'"]),
  ],
)
def test_wrong_arguments(here, capsys, arguments, words):
  (here / 'thesis').mkdir()
  (here / 'thesis' / 'chapter.tex').write_text('all my work')
  err = _refused(capsys, *arguments)
  for word in words:
    assert word in err
  assert os.listdir(here) == ['thesis'] and os.listdir(here / 'thesis') == ['chapter.tex']


@pytest.mark.parametrize(
  'arguments',
  [
    (*_COMPLETE, '--config.initial_checkpoint=runs/latest'),
    ('--config=catch_vtrace', '--seeds=2', '--grid=initial_checkpoint=runs/latest'),
  ],
)
def test_runs_of_a_sweep_do_not_start_from_each_other(here, capsys, arguments):
  run_directory.point_latest(run_directory.create('runs/first'))
  error = _refused(capsys, *arguments)
  assert 'runs/latest' in error and f'give {here / "runs" / "first"}' in error
  assert not (here / 'runs' / 'sweeps').exists()


def test_a_folder_that_another_program_is_filling(here, capsys):
  (here / 'out').mkdir()
  with local.lock(here / 'out' / '.lock', str):
    assert f'process {os.getpid()}' in _refused(capsys, *_COMPLETE, '--out=out')
  assert os.listdir(here / 'out') == ['.lock']


@pytest.mark.parametrize('failures, code', [({}, 130), ({'a run': 'updates are lost'}, 1)])
def test_a_stop_after_which_something_is_lost_is_no_orderly_end(
  here, monkeypatch, capsys, failures, code
):
  def stop(scheduler):
    scheduler.stop_signal = signal.SIGINT
    scheduler.failures.update(failures)

  monkeypatch.setattr(sweep_schedule.Scheduler, 'run', stop)
  assert cli.main(['sweep', *_COMPLETE, '--out=out']) == code
  assert 'Resume: ' in capsys.readouterr().out


class _Child:
  """A training process that ends at once: it fails at the first rate and finishes otherwise."""

  def __init__(self, command, **_):
    [path] = [part.partition('=')[2] for part in command if part.startswith('--run_dir=')]
    run = run_directory.RunDirectory(pathlib.Path(path))
    self.returncode = int(saved_config.load(run.config).agent.optimizer.learning_rate == 1e-3)
    if self.returncode:
      processes.report_failure(run, 'learner/0', 'RuntimeError: the ball fell off', 'learner/0')
      return
    for file in (run.status, run.summary):
      record = {'status': 'finished', 'agent_steps': 300_000, 'episode_return_last_100': 0.5}
      local.write_json(file, record)

  def poll(self):
    return self.returncode


def test_after_a_run_that_fails_the_others_are_finished_and_it_is_told_at_the_end(
  may_start, monkeypatch, capsys, one_json
):
  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', _Child)
  arguments = ('--config=catch_vtrace', _GRID, '--seeds=1', '--jobs=1', '--json')
  assert cli.main(['sweep', *arguments, '--out=out']) == 1
  out, err = capsys.readouterr()
  record = one_json(out)
  assert record['runs'] == {'finished': 1, 'unfinished': 0, 'failed': 1, 'waiting': 0}
  rates = [(row['agent.optimizer.learning_rate'], row['seeds']) for row in record['table']]
  assert rates == [(1e-2, 1), (1e-3, 0)]
  assert err.splitlines()[0] == 'error: 1 of 2 runs failed'
  assert 'learning_rate=0.001 seed 1: RuntimeError: the ball fell off' in err.splitlines()[1]
  assert len(err.splitlines()) == 2


def test_a_swept_field_is_not_overridden_in_vain_on_resuming(may_start, capsys, monkeypatch):
  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', None)
  config = registry.load('catch_vtrace')
  (may_start / 'out').mkdir()
  saved_plan.save(sweep_plan.make(config, [{'total_steps': (1500, 3000)}], 1), may_start / 'out')
  assert cli.main(['sweep', '--out=out', '--config.total_steps=200000']) == 2
  assert 'total_steps is given by --config.total_steps and in the grid' in capsys.readouterr().err


def test_a_setting_is_not_overridden_in_vain_beside_a_grid(may_start, capsys, monkeypatch):
  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', None)
  name = 'environment.settings'
  grid = f'--grid={name}=[num_bits,4],[num_bits,5]'
  given = (f'--config.{name}.num_bits=9', '--config=bitflip_sac_her')
  assert cli.main(['sweep', '--out=out', *given, grid, '--seeds=1']) == 2
  assert f'{name}.num_bits is given by --config.' in capsys.readouterr().err


def test_a_run_that_was_begun_with_other_values_is_not_touched(may_start, capsys, monkeypatch):
  here = may_start
  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', None)
  config = registry.load('catch_vtrace')
  run = sweep_plan.make(config, [], 1).runs(here / 'out')[0]
  run_directory.create(run.run_dir.path)
  saved = sweep_grid.replace(run.config, 'agent.discount', 0.5)
  saved_config.save(saved, run.run_dir.config)
  saved_plan.save(sweep_plan.make(config, [], 1), here / 'out')
  assert cli.main(['sweep', '--out=out']) == 1
  assert 'agent.discount: 0.5 -> 0.99' in capsys.readouterr().err
  assert saved_config.load(run.run_dir.config) == saved
