"""The learner is killed, or fails: the messages to the user, and how the run continues."""

import signal

import numpy as np
import pytest

from seed_acme.storage import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_NUM_EPISODES = 200
_CATCH = ('--config.agent.optimizer.learning_rate=0.003', '--config.environments_per_actor=16')


def _mean_of_first_episodes(metrics, after_row):
  """Returns the mean return of at least `_NUM_EPISODES` episodes in the rows after `after_row`."""
  total, count = 0.0, 0
  for row in range(after_row + 1, len(metrics['episodes'])):
    number = metrics['episodes'][row] - metrics['episodes'][row - 1]
    if number and np.isfinite(metrics['episode/return'][row]):
      total += number * metrics['episode/return'][row]
      count += number
    if count >= _NUM_EPISODES:
      break
  assert count >= _NUM_EPISODES
  return total / count


def _counters_never_decrease(metrics):
  for name in ('agent_steps', 'updates', 'frames', 'episodes', 'trained_steps', 'wall_s'):
    assert (np.diff(metrics[name]) >= 0).all(), (name, metrics[name])


def _kill_learner_when_it_has_learnt(run, until, since=0):
  """Returns the mean return and the steps of the newest checkpoint at the kill."""
  until(
    lambda: (
      run.status().get('updates', 0) > since
      and (run.status()['episode_return_last_100'] or -1) > 0.6
      or run.check_runs()
    ),
    'a return above 0.6',
  )
  saves = checkpoint.newest(run.run_dir.checkpoints)
  until(
    lambda: checkpoint.newest(run.run_dir.checkpoints) != saves or run.check_runs(),
    'a checkpoint of that',
  )
  reached = run.status()['episode_return_last_100']
  run.wait_for_node('learner').send_signal(signal.SIGKILL)
  return reached


@pytest.fixture(scope='module')
def drill(runs, until):
  """Kills the learner, resumes with one restart, kills it again, and lets the run finish."""
  folder = runs.folder()
  killed = runs.train(*_CATCH, runs.endless, folder=folder)
  first_return = _kill_learner_when_it_has_learnt(killed, until)
  first_code = killed.wait()
  left = killed.nodes()
  first_failure, first_summary = killed.failure(), killed.summary()
  saved = checkpoint.load(checkpoint.newest(killed.run_dir.checkpoints)).meta['counts']
  resumed = runs.start('train', '--run_dir=run', '--max_restarts=1', folder=folder)
  until(lambda: resumed.status().get('resumptions') == 1 or resumed.check_runs(), 'a resumption')
  rows = len(resumed.metrics()['updates'])
  second_return = _kill_learner_when_it_has_learnt(resumed, until, since=saved['updates'])
  until(lambda: resumed.status().get('resumptions') == 2 or resumed.check_runs(), 'a restart')
  resumed.wait_for_updates(30, since=resumed.status()['updates'])
  resumed.process.send_signal(signal.SIGTERM)
  resumed.wait()
  return {
    'killed': killed,
    'code': first_code,
    'left': left,
    'failure': first_failure,
    'summary': first_summary,
    'saved': saved,
    'resumed': resumed,
    'rows': rows,
    'returns': (first_return, second_return),
  }


def test_a_killed_learner_ends_the_run_and_is_named(drill):
  run = drill['killed']
  assert drill['code'] == 1
  assert drill['left'] == []
  log = run.run_dir.logs / 'learner' / '0'
  assert run.stderr.splitlines() == [
    'error in learner/0: the process was lost: killed by SIGKILL',
    f'log: {log}',
  ]
  assert drill['failure']['node'] == 'learner/0'
  assert drill['summary']['status'] == 'failed'


def test_resuming_goes_on_from_the_checkpoint(drill):
  metrics, saved = drill['resumed'].metrics(), drill['saved']
  _counters_never_decrease(metrics)
  first = int(np.searchsorted(metrics['agent_steps'], saved['agent_steps'], side='right'))
  # Rows written after the checkpoint are gone: the next row continues its counters.
  assert metrics['updates'][first - 1] <= saved['updates'] <= metrics['updates'][first]
  assert saved['updates'] < metrics['updates'][-1]
  assert _mean_of_first_episodes(metrics, first - 1) >= drill['returns'][0] / 2


def test_max_restarts_does_it_by_itself(drill):
  run = drill['resumed']
  assert run.process.returncode == 143
  assert run.nodes() == []
  assert 'Restart 1 of 1 from the newest checkpoint: the process was lost' in run.stderr
  assert run.summary()['status'] == 'stopped'
  assert run.failure() is None
  assert drill['returns'][1] >= drill['returns'][0] / 2
  # The logs of both killed attempts are kept.
  for attempt in ('attempt_1', 'attempt_2', '.'):
    assert run.log(f'{attempt}/learner/0')
  # A learnt policy plays as well as before the restart.
  assert np.nanmean(run.metrics()['episode/return'][-20:]) >= drill['returns'][1] / 2


def test_the_learner_is_killed_while_actors_wait_for_it(runs):
  run = runs.train(runs.endless)
  run.wait_for_node('actor')  # before the learner serves, because its imports take longer
  run.wait_for_node('learner').kill()
  assert run.wait() == 1
  assert run.nodes() == []
  assert 'error in learner/0: the process was lost: killed by SIGKILL' in run.stderr


def test_a_thread_of_the_learner_fails(runs):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:Exploding',
    '--config.network.torso=drill_networks:CheckingTorso',
  )
  assert run.wait() == 1
  assert run.nodes() == []
  lines = run.stderr.splitlines()
  assert len(lines) == 2
  assert lines[0].startswith('error in learner/0: InvalidArgumentError: ')
  assert 'the torso was shown too much' in lines[0]
  assert lines[1] == f'log: {run.run_dir.logs / "learner" / "0"}'
  assert 'Traceback' in run.log('learner/0')


def test_a_loss_that_is_nan_stops_the_run_and_keeps_the_last_good_checkpoint(runs):
  run = runs.train(runs.endless, '--config.environment.id=drill_environments:Exploding')
  assert run.wait() == 1
  assert run.nodes() == []
  lines = run.stderr.splitlines()
  assert len(lines) == 2
  assert 'became nan in update' in lines[0]
  assert lines[0].startswith('error in learner/0: ')
  assert lines[1] == f'log: {run.run_dir.logs / "learner" / "0"}'
  arrays = checkpoint.load(checkpoint.newest(run.run_dir.checkpoints)).arrays
  assert all(np.isfinite(array).all() for array in arrays.values())
