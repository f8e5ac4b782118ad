"""`seed-acme sweep` with real processes, and its wrong arguments."""

import contextlib
import csv
import os
import signal
import sqlite3

import pytest

from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs import cli
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.trial import door
from seed_acme.storage import run_directory

pytestmark = pytest.mark.slow

_GRID = '--grid=agent.optimizer.learning_rate=1e-3,1e-2'
_SEEDS = ('seed_1', 'seed_2')
_STEPS = 15_000  # so many that both runs of a pair are still running when they are killed
_SLUGS = ('learning_rate=0.001', 'learning_rate=0.01')
_HANG_S = 450.0  # four runs, two at a time; a minute on an idle machine
_processes = [pytest.mark.processes, pytest.mark.timeout(600)]


def _sweep(runs, folder, *arguments):
  return runs.start(
    'sweep',
    '--config=catch_vtrace',
    *runs.small,
    '--out=out',
    '--jobs=2',
    *arguments,
    folder=folder,
  )


def _run_dir(run, slug, seed):
  return run_directory.RunDirectory(run.folder / 'out' / slug / seed)


def _updates(run_dir):
  return local.read_json(run_dir.status)['updates'] if run_dir.status.exists() else 0


def _wait_for_updates(run, until, seed, number=1):
  """Waits for both combinations with this seed, which run at the same time."""
  until(
    lambda: (
      all(_updates(_run_dir(run, slug, seed)) >= number for slug in _SLUGS)
      or run.process.poll() is not None
    ),
    f'update {number}',
    _HANG_S,
  )
  assert run.process.poll() is None, run.stdout + run.stderr


def _table(run, name='table.csv'):
  with open(run.folder / 'out' / name, newline='') as file:
    return list(csv.DictReader(file))


@pytest.fixture(scope='module')
def interrupted(runs, until):
  """Stops a sweep, then kills it; returns the updates that its first runs had made."""
  folder = runs.folder()
  arguments = (_GRID, '--seeds=2', f'--config.total_steps={_STEPS}')
  run = _sweep(runs, folder, *arguments)
  _wait_for_updates(run, until, 'seed_1')
  os.killpg(run.process.pid, signal.SIGINT)
  assert run.wait() == 130, run.stderr
  stopped = [local.read_json(_run_dir(run, slug, 'seed_1').status) for slug in _SLUGS]

  killed = _sweep(runs, folder, *arguments)
  updates = max(status['updates'] for status in stopped)
  _wait_for_updates(killed, until, 'seed_1', updates + 1)
  killed.process.kill()
  killed.process.wait()
  until(lambda: not killed.nodes(), 'the end of all processes', 30)
  return run, stopped, killed, arguments


class TestInterruptedSweep:
  """One sweep that is stopped, killed, finished, and started once more."""

  pytestmark = _processes

  def test_ctrl_c_stops_the_runs_with_checkpoints_and_leaves_a_table(self, interrupted):
    run, stopped, _, _ = interrupted
    assert run.nodes() == []
    assert 'Traceback' not in run.stdout + run.stderr
    assert 'Stopping with checkpoints' in run.stdout
    assert run.stdout.count('Stopped learning_rate') == 2
    assert run.stdout.splitlines()[-1].startswith('Resume: ')
    assert run.stdout.splitlines()[-1].endswith('sweep --out=out --jobs=2')
    assert [status['status'] for status in stopped] == ['stopped'] * 2
    assert all(status['updates'] for status in stopped)

  def test_the_command_that_it_prints_resumes_it_and_finished_runs_stay(
    self, interrupted, runs, digest
  ):
    first, stopped, killed, arguments = interrupted
    run = runs.start('sweep', '--out=out', '--jobs=2', folder=first.folder)
    assert run.wait(_HANG_S) == 0, run.stdout + run.stderr
    assert run.stderr == '' and run.nodes() == []
    assert 'Resumed learning_rate=0.001 seed 1 at ' in run.stdout
    assert 'Started learning_rate=0.001 seed 2' in run.stdout
    assert '4 of 4 runs finished' in run.stdout
    for slug in _SLUGS:
      for seed, resumptions in zip(_SEEDS, (2, 0)):
        status = local.read_json(_run_dir(run, slug, seed).status)
        assert (status['status'], status['resumptions']) == ('finished', resumptions)
        assert status['agent_steps'] >= _STEPS
    assert [row['seeds'] for row in _table(run)] == ['2', '2']
    assert {row['status'] for row in _table(run, 'runs.csv')} == {'finished'}
    for name in ('table.md', 'curves.png', 'settings.png'):
      assert (run.folder / 'out' / name).stat().st_size > 500

    before = [digest(_run_dir(run, slug, seed).path) for slug in _SLUGS for seed in _SEEDS]
    again = _sweep(runs, first.folder, *arguments)
    assert again.wait() == 0, again.stderr
    assert '4 of them finished' in again.stdout and 'Started' not in again.stdout
    assert before == [digest(_run_dir(run, slug, seed).path) for slug in _SLUGS for seed in _SEEDS]


class TestKilledSearch:
  """A `--search` that is killed during its first two trials, and resumed."""

  pytestmark = _processes

  def test_the_trials_that_were_under_way_are_finished_and_only_the_others_are_drawn(
    self, runs, until
  ):
    run = _sweep(
      runs,
      runs.folder(),
      '--search=agent.optimizer.learning_rate=1e-4..1e-2:log',
      '--trials=3',
      f'--config.total_steps={_STEPS}',
    )
    folders = lambda: [run_directory.RunDirectory(p) for p in run.folder.glob('out/*/seed_1')]
    until(
      lambda: (
        (len(folders()) == 2 and all(map(_updates, folders()))) or run.process.poll() is not None
      ),
      'updates of two trials',
      _HANG_S,
    )
    assert run.process.poll() is None, run.stdout + run.stderr
    begun = {folder.path for folder in folders()}
    run.process.kill()
    run.process.wait()
    until(lambda: not run.nodes(), 'the end of all processes', 30)

    again = runs.start('sweep', '--out=out', '--jobs=2', '--json', folder=run.folder)
    assert again.wait(_HANG_S) == 0, again.stdout + again.stderr
    assert begun < {folder.path for folder in folders()} and len(folders()) == 3
    assert {local.read_json(folder.status)['status'] for folder in folders()} == {'finished'}
    assert [row['seeds'] for row in _table(run)] == ['1'] * 3
    with contextlib.closing(sqlite3.connect(run.folder / 'out' / 'search.db')) as database:
      states = database.execute('select state from trials').fetchall()
    assert states == [('COMPLETE',)] * 3


class TestFailingRun:
  """A sweep in which one of two combinations cannot run."""

  pytestmark = _processes

  def test_the_others_are_finished_and_it_is_told_at_the_end(self, runs, one_json):
    run = _sweep(
      runs,
      runs.folder(),
      '--grid=environment.id=drill_environments:Raising,catch',
      '--seeds=1',
      '--config.total_steps=2000',
      '--json',
    )
    assert run.wait(_HANG_S) == 1, run.stdout + run.stderr
    record = one_json(run.stdout)
    assert record['runs'] == {'finished': 1, 'unfinished': 0, 'failed': 1, 'waiting': 0}
    best, worst = record['table']
    assert (best['environment.id'], best['seeds'], worst['seeds']) == ('catch', 1, 0)
    lines = run.stderr.splitlines()
    assert lines[0] == 'error: 1 of 2 runs failed'
    assert 'id=drill_environments:Raising seed 1: RuntimeError: the ball fell off' in lines[1]
    assert len(lines) == 2


def _refused(capsys, *arguments):
  assert cli.main(['sweep', *arguments]) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ')
  return err


@pytest.fixture(name='here')
def _here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(sweep_schedule, '_start', None)  # nothing may be started
  return tmp_path


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


def test_a_run_that_was_begun_with_other_values_is_not_touched(here, capsys, monkeypatch):
  monkeypatch.undo()
  monkeypatch.chdir(here)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(sweep_schedule.subprocess, 'Popen', None)
  monkeypatch.setattr(door, 'check', lambda configs: None)  # it would start a process
  config = registry.load('catch_vtrace')
  run = sweep_plan.make(config, [], 1).runs(here / 'out')[0]
  run_directory.create(run.run_dir.path)
  saved = sweep_plan.sweep_grid.replace(run.config, 'agent.discount', 0.5)
  sweep_plan.saved_config.save(saved, run.run_dir.config)
  sweep_plan.save(sweep_plan.make(config, [], 1), here / 'out')
  assert cli.main(['sweep', '--out=out']) == 1
  assert 'agent.discount: 0.5 -> 0.99' in capsys.readouterr().err
  assert sweep_plan.saved_config.load(run.run_dir.config) == saved
