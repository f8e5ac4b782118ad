"""A run with several learner hosts, each a process of this machine."""

import signal

import pytest

from seed_acme.programs.nodes import host as node_host
from seed_acme.storage import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_STEPS = 3_000
_TWO = ('--config.num_actors=3', '--config.num_learner_hosts=2')


def _train(runs, *options, steps=_STEPS, **where):
  return runs.train(f'--config.total_steps={steps}', *_TWO, *options, **where)


def _expect_finished(run, steps=_STEPS):
  return run.expect_finished(steps)


def test_counts_episodes_and_actors_are_those_of_all_hosts(runs):
  run = _train(runs, '--config.num_evaluation_environments=2')
  summary = _expect_finished(run)
  status = run.status()
  rows = [actor['rows'] for actor in status['actors']]
  assert len(rows) == 4 and min(rows) > 100
  assert all(actor['is_connected'] for actor in status['actors'])
  # Catch lasts 9 steps; with the episodes of only one host there would be fewer.
  assert 0.9 < 9 * summary['episodes'] / summary['agent_steps'] < 1.02
  assert status['unrolls_confirmed'] >= status['unrolls_learnt']
  assert status['evaluation_return'] is not None
  assert len(status['seconds_of_other_hosts']) == 1
  assert len(run.metrics()['agent_steps']) > 1  # one log, of the chief


def test_strictly_on_policy_updates_take_the_unrolls_of_both_hosts(runs):
  """Each actor finds its host over the network, too."""
  run = _train(
    runs, *runs.strictly_on_policy, '--config.num_actors=2', '--config.transport.kind=grpc'
  )
  _expect_finished(run)
  assert all(actor['is_connected'] and actor['rows'] for actor in run.status()['actors'])
  lags = run.metrics()['learner/policy_lag']
  assert {lag for lag in lags if lag == lag} == {0.0}  # a row without an update has no lag


def test_each_host_saves_its_memory_and_restores_it(runs):
  options = (
    '--config=catch_r2d2',
    '--config.agent.replay_min_size=100',
    '--config.agent.replay_capacity=1000',
    '--config.agent.batch_size=8',
    '--config.replay.unrolls_per_item=1',
  )
  folder = runs.folder()
  first = _train(runs, *options, folder=folder)
  assert _expect_finished(first)['updates'] > 5
  newest = checkpoint.newest(first.run_dir.checkpoints)
  parts = sorted(path.name for path in (newest / 'replay').iterdir())
  assert parts == ['host_0', 'host_1']
  sizes = [
    sum(file.stat().st_size for file in (newest / 'replay' / part).iterdir()) for part in parts
  ]
  assert min(sizes) > 0.3 * max(sizes)
  second = _train(runs, *options, steps=2 * _STEPS, folder=folder)
  _expect_finished(second, 2 * _STEPS)
  assert 'replay memory' not in second.stderr  # that it starts empty, or is an older one


def test_a_run_of_one_host_goes_on_with_two(runs):
  folder = runs.folder()
  first = runs.train(f'--config.total_steps={_STEPS}', '--config.num_actors=3', folder=folder)
  steps = _expect_finished(first)['agent_steps']
  second = _train(runs, steps=2 * _STEPS, folder=folder)
  assert _expect_finished(second, 2 * _STEPS)['agent_steps'] > steps
  assert second.status()['resumptions'] == 1
  counted = second.metrics()['agent_steps']
  assert list(counted) == sorted(counted)


def test_the_status_names_a_host_without_data_and_ctrl_c_ends_both_with_a_checkpoint(runs, until):
  run = runs.train(runs.endless, *_TWO, '--config.num_actors=2')
  run.wait_for_updates(3)
  named = []
  for silent in run.nodes('actor'):  # in unknown order
    silent.suspend()
    until(
      lambda: run.status()['hosts_without_data'] or run.check_runs(), 'a word of what is missing'
    )
    named += run.status()['hosts_without_data']
    silent.resume()
    until(lambda: not run.status()['hosts_without_data'] or run.check_runs(), 'data of both hosts')
  assert sorted(named) == ['learner/0', 'learner/1']
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert run.summary()['status'] == 'stopped' and run.nodes() == []
  assert run.summary()['saved_updates'] == run.status()['updates']


@pytest.mark.parametrize('index', [0, 1])
def test_a_host_that_is_killed_ends_the_run_and_a_restart_goes_on(runs, index, until):
  run = runs.train(runs.endless, *_TWO, '--max_restarts=1', '--config.checkpoint.period_s=1')
  run.wait_for_updates(3)
  until(lambda: len(run.nodes('learner')) == 2, 'two learners')
  sorted(run.nodes('learner'), key=lambda node: node.pid)[index].send_signal(signal.SIGKILL)
  until(lambda: run.status().get('resumptions') == 1 or run.check_runs(), 'a second start')
  since = run.status()['updates']
  run.wait_for_updates(3, since=since)
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert 'the process was lost: killed by SIGKILL' in run.stderr


def test_a_host_that_hangs_ends_the_run(runs, until):
  run = runs.train(runs.endless, *_TWO, '--config.learner.host_timeout_s=3')
  run.wait_for_updates(3)
  until(lambda: len(run.nodes('learner')) == 2, 'two learners')
  hanging = sorted(run.nodes('learner'), key=lambda node: node.pid)[1]
  hanging.suspend()
  assert run.wait(120.0 + node_host.termination_notice_s()) == 1
  assert run.nodes() == []
  assert 'learner/1 was lost, or did not answer within 3 s' in run.stderr
  # Launchpad's grace period, in which a process may save and end, is not used for a process that
  # hangs.
  assert 'did not terminate in time' not in run.log('launcher')


@pytest.mark.scale
def test_two_hosts_of_two_devices_learn_catch(runs):
  run = runs.start(
    'train',
    '--config=catch_vtrace',
    '--config.num_learner_hosts=2',
    '--config.learner.training_devices=cpu:0,cpu:1',
    '--config.total_steps=100000',
    '--run_dir=run',
  )
  run.wait(500)  # it takes longer than other runs
  summary = _expect_finished(run, 100_000)
  assert summary['episode_return_last_100'] >= 0.9
