"""One finished run, checked in every respect, and the commands that read it."""

import os
import pathlib
import shutil

import numpy as np
import pytest

from seed_acme.programs.pictures import plot
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from tests.programs import odd_machine
from tests.programs import several_commands

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]
_STEPS = 20_000
_MAX_PSS = 120e6  # bytes of a worker on Catch
_LOADED_LIBRARIES = ('tensorflow', 'reverb', 'libpywrap')


def _pss(process):
  """Returns the proportional set size in bytes."""
  lines = pathlib.Path(f'/proc/{process.pid}/smaps_rollup').read_text().splitlines()
  return next(int(line.split()[1]) * 1024 for line in lines if line.startswith('Pss:'))


@pytest.fixture(scope='module')
def finished(runs, until):
  """Returns (the run, late memory of the actor's worker and supervisor, the worker's libraries)."""
  # With an evaluation actor, and in runs/ with `latest`, as users run it.
  run = runs.start(
    'train',
    *runs.small,
    f'--config.total_steps={_STEPS}',
    '--config.environments_per_actor=32',
    '--config.agent.batch_size=16',
    '--config.num_evaluation_environments=4',
    '--json',
  )
  latest = run.folder / 'runs' / 'latest'
  until(lambda: (latest / 'config.json').exists() or run.check_runs(), 'runs/latest')
  run.run_dir = run_directory.RunDirectory(latest.resolve())
  until(lambda: run.status().get('agent_steps', 0) >= 8_000, '8,000 steps')
  workers = run.nodes('actor')
  memory = {
    'worker': max(map(_pss, workers)),
    'supervisor': max(map(_pss, run.nodes('actor_supervisor'))),
  }
  libraries = ''.join(pathlib.Path(f'/proc/{worker.pid}/maps').read_text() for worker in workers)
  assert run.wait() == 0, run.stderr
  return run, memory, libraries


def test_the_summary_is_whole_and_no_process_is_left(finished, one_json):
  run, _, _ = finished
  summary = run.summary()
  assert one_json(run.stdout) == summary
  assert run.nodes() == []
  assert run.stderr == ''
  assert summary['status'] == 'finished'
  assert _STEPS <= summary['agent_steps'] == summary['frames'] < _STEPS + 10_000
  assert summary['updates'] > 50
  assert summary['trained_steps'] <= summary['agent_steps']
  # An episode has 9 steps; each environment's newest steps, and one episode, are still unfinished.
  assert abs(summary['episodes'] - summary['agent_steps'] / 9) <= 3 * 32
  assert set(summary['cpu_s']) >= {'actor', 'actor_supervisor', 'launcher', 'learner'}
  assert -1 <= summary['episode_return_last_100'] <= 1
  assert -1 <= summary['evaluation_return'] <= 1
  assert 0 <= summary['policy_lag_mean'] <= summary['policy_lag_max']


def test_an_actor_is_small(finished):
  _, memory, libraries = finished
  print(
    f'PSS: worker {memory["worker"] / 1e6:.1f} MB, supervisor {memory["supervisor"] / 1e6:.1f} MB'
  )
  assert memory['worker'] < _MAX_PSS
  assert memory['supervisor'] < _MAX_PSS
  assert not [name for name in _LOADED_LIBRARIES if name in libraries]


def test_the_files_of_the_run(finished):
  run, _, _ = finished
  path = run.run_dir.path
  assert path.parent == run.folder / 'runs' / 'catch_vtrace'
  assert {
    'config.json',
    'summary.json',
    'status.json',
    'metrics.csv',
    'plot.png',
    'tensorboard',
    'checkpoints',
    'logs',
  } <= set(os.listdir(path))
  assert {'launcher', 'learner', 'actor'} <= set(os.listdir(run.run_dir.logs))
  saved = [checkpoint.updates_of(path) for path in run.run_dir.checkpoints.iterdir()]
  best = run.summary()['best_checkpoint']
  assert len({*saved} - {best['updates']}) in (2, 3) and best['updates'] in saved
  assert best['evaluation_return'] <= 1 and best['num_episodes'] >= 10
  metrics = run.metrics()
  for name in ('agent_steps', 'wall_s', 'updates', 'frames', 'episodes', 'trained_steps'):
    assert (np.diff(metrics[name]) >= 0).all(), name
  assert metrics['agent_steps'][-1] == run.summary()['agent_steps']


@pytest.mark.slow
def test_evaluate_and_plot_read_it_on_an_odd_machine(finished, one_json, monkeypatch):
  run, _, _ = finished
  odd_machine.enter(monkeypatch)
  shutil.copytree(run.run_dir.path, run.folder / 'größe eins')
  evaluations = ('größe eins',), ('runs/latest', '--checkpoint=best')
  results = several_commands.run(
    run.folder,
    *(('evaluate', *words, '--episodes=30', '--json') for words in evaluations),
    ('plot', 'runs/latest', 'größe eins', '--out=figure.png'),
  )
  assert [code for code, _, _ in results] == [0, 0, 0], results
  newest, best = (one_json(out) for _, out, _ in results[:2])
  assert best['checkpoint_updates'] == run.summary()['best_checkpoint']['updates']
  assert newest['episodes'] == 30
  assert newest['length_mean'] == 9
  assert newest['checkpoint_agent_steps'] == run.summary()['agent_steps']
  assert (run.folder / 'figure.png').stat().st_size > 1000
  assert plot.read_curve(run.run_dir.path, 'it').steps[-1] == run.summary()['agent_steps']


@pytest.mark.slow
def test_a_finished_run_is_extended_by_raising_total_steps(finished, runs, digest):
  run, _, _ = finished
  extended = runs.folder()
  shutil.copytree(run.run_dir.path, extended / 'run')
  (extended / 'run' / 'plot.png').unlink()
  (extended / 'run' / 'videos').mkdir()  # as if it had been filmed
  before = run.summary()
  steps = before['agent_steps'] + 2_000
  more = runs.start(
    'train',
    '--run_dir=run',
    f'--config.total_steps={steps}',
    '--config.num_evaluation_environments=0',
    '--launch=single_process',
    folder=extended,
  )
  assert more.wait() == 0, more.stderr
  assert more.stderr == '' and more.nodes() == []
  assert more.run_dir.plot.exists()
  summary = more.summary()
  assert summary['status'] == 'finished'
  assert summary['agent_steps'] >= steps
  assert summary['updates'] > before['updates']
  assert summary['cpu_s']['launcher'] > before['cpu_s']['launcher']
  assert (np.diff(more.metrics()['updates']) >= 0).all()
  assert 'Resuming: run' in more.stdout and 'Videos: run/videos\n' in more.stdout

  untouched = digest(extended / 'run')
  refused = runs.start('train', '--run_dir=run', '--config.agent.batch_size=8', folder=extended)
  assert refused.wait() == 2
  assert 'agent.batch_size: 16 -> 8' in refused.stderr
  assert len(refused.stderr.splitlines()) <= 4
  assert digest(extended / 'run') == untouched
