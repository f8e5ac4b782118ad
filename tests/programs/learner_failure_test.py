"""The learner is killed, or fails: the messages to the user, and how the run continues."""

import dataclasses
import signal

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.learning import learner as learner_lib
from seed_acme.programs import single_process
from seed_acme.programs.trial import specification
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

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


def _kill_learner_when_it_has_learnt(run, until):
  """Returns the mean return at the kill."""
  until(
    lambda: (run.status().get('episode_return_last_100') or -1) > 0.6 or run.check_runs(),
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
  """Kills the learner, resumes with one restart, kills it before it serves, and lets it fail."""
  folder = runs.folder()
  explodes = folder / 'explodes'
  killed = runs.train(
    *_CATCH,
    runs.endless,
    '--config.environment.id=drill_environments:Exploding',
    '--config.environment.settings',
    'when_there_is',
    str(explodes),
    '--config.network.torso=drill_networks:CheckingTorso',
    folder=folder,
  )
  reached = _kill_learner_when_it_has_learnt(killed, until)
  code = killed.wait()
  left = killed.nodes()
  failure, summary = killed.failure(), killed.summary()
  saved = checkpoint.load(checkpoint.newest(killed.run_dir.checkpoints)).meta['counts']
  again = ('train', '--run_dir=run', '--trust_run_dir', '--max_restarts=1')
  resumed = runs.start(*again, folder=folder)
  resumed.wait_for_node('actor')  # before the learner serves, because its imports take longer
  resumed.wait_for_node('learner').kill()
  until(lambda: resumed.status().get('resumptions') == 1 or resumed.check_runs(), 'a restart')
  enough = saved['episodes'] + 2 * _NUM_EPISODES
  until(lambda: resumed.status()['episodes'] > enough or resumed.check_runs(), 'more episodes')
  explodes.touch()
  resumed.wait()
  return {
    'killed': killed,
    'code': code,
    'left': left,
    'failure': failure,
    'summary': summary,
    'saved': saved,
    'resumed': resumed,
    'return': reached,
  }


def test_a_killed_learner_ends_the_run_and_is_named(drill):
  run = drill['killed']
  assert drill['code'] == 1
  assert drill['left'] == []
  log = run.run_dir.logs / 'learner' / '0'
  assert run.stderr.splitlines()[-2:] == [
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
  # A learnt policy plays as well as before.
  assert _mean_of_first_episodes(metrics, first - 1) >= drill['return'] / 2


def test_max_restarts_does_it_by_itself_though_the_actors_still_waited(drill):
  run = drill['resumed']
  assert (
    'Restart 1 of 1 from the newest checkpoint: the process was lost: killed by SIGKILL'
    in run.stderr
  )
  # The logs of both killed attempts are kept.
  for attempt in ('attempt_1', 'attempt_2', '.'):
    assert (run.run_dir.logs / attempt / 'learner' / '0').exists()


def test_a_thread_of_the_learner_fails(drill):
  run = drill['resumed']
  assert run.process.returncode == 1
  assert run.nodes() == []
  message, log = run.stderr.splitlines()[-2:]
  assert message.startswith('error in learner/0: InvalidArgumentError: ')
  assert 'the torso was shown too much' in message
  assert log == f'log: {run.run_dir.logs / "learner" / "0"}'
  assert 'Traceback' in run.log('learner/0')
  assert run.summary()['status'] == 'failed'


def test_a_loss_that_is_nan_stops_the_run_and_keeps_the_last_good_checkpoint(runs, monkeypatch):
  folder = runs.folder()
  monkeypatch.syspath_prepend(folder)
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config,
    num_actors=1,
    environments_per_actor=8,
    num_evaluation_environments=0,
    environment=config_lib.EnvironmentConfig('drill_environments:Exploding'),
    network=dataclasses.replace(config.network, mlp_sizes=(8,)),
    agent=dataclasses.replace(config.agent, unroll_length=9, batch_size=8),
    checkpoint=config_lib.CheckpointConfig(period_s=0.0),
  )
  run = run_directory.create(folder / 'run')
  specification.save(run, catch.Catch(1, seed=0).spec)
  with pytest.raises(learner_lib.NonFiniteError, match='became nan in update'):
    single_process.run(config, run)
  newest = checkpoint.load(checkpoint.newest(run.checkpoints))
  assert newest.meta['counts']['updates'] > 0
  assert all(np.isfinite(array).all() for array in newest.arrays.values())
