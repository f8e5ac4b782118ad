"""A run with several learner hosts, each a process of this machine."""

import signal

import pytest

from seed_acme.programs.nodes import host as node_host
from seed_acme.storage import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(900)]
_TWO = '--config.num_learner_hosts=2'


def test_a_run_goes_on_with_two_hosts_and_each_saves_its_memory_and_restores_it(runs):
  folder = runs.folder()
  train = lambda steps, *more: runs.train(
    '--config=catch_r2d2',
    '--config.num_actors=3',
    '--config.agent.unroll_length=4',
    '--config.agent.overlap=1',
    '--config.agent.replay_ratio=1',
    '--config.network.core_size=16',
    '--config.agent.replay_min_size=60',
    '--config.agent.replay_capacity=1000',
    '--config.replay.unrolls_per_item=1',
    f'--config.total_steps={steps}',
    *more,
    folder=folder,
  )
  of_one = train(500, '--launch=single_process')
  steps = of_one.expect_finished(500)['agent_steps']

  stopped = train(10**9, _TWO)
  stopped.wait_for_updates(6, since=of_one.status()['updates'])
  stopped.process.send_signal(signal.SIGINT)
  assert stopped.wait() == 130 and stopped.nodes() == []
  summary, status = stopped.summary(), stopped.status()
  assert summary['status'] == 'stopped' and summary['saved_updates'] == status['updates']
  assert status['resumptions'] == 1 and status['agent_steps'] > steps
  assert 'replay memory' in stopped.stderr  # starts empty, as it was that of one host
  memory = checkpoint.newest(stopped.run_dir.checkpoints) / 'replay'
  parts = sorted(memory.iterdir())
  assert [part.name for part in parts] == ['host_0', 'host_1']
  sizes = [sum(file.stat().st_size for file in part.iterdir()) for part in parts]
  assert min(sizes) > 0.3 * max(sizes)

  steps = status['agent_steps'] + 500
  resumed = train(steps, _TWO)
  assert resumed.expect_finished(steps)['updates'] > status['updates']
  assert 'replay memory' not in resumed.stderr  # that it starts empty, or is an older one
  assert resumed.status()['resumptions'] == 2
  counted = resumed.metrics()['agent_steps']
  assert list(counted) == sorted(counted)  # one log, of the chief


def test_a_host_without_data_one_that_is_killed_and_one_that_hangs(runs, until):
  run = runs.train(
    runs.endless,
    _TWO,
    '--config.num_actors=4',
    '--config.environments_per_actor=4',
    '--config.replay.num_shards=2',
    '--config.learner.host_timeout_s=5',
    '--config.checkpoint.period_s=1',
    '--max_restarts=1',
  )
  run.wait_for_updates(3)
  named = []
  for silent in run.nodes('actor'):  # in unknown order, each the only one of a host's shard
    silent.suspend()
    until(
      lambda: run.status()['hosts_without_data'] or run.check_runs(), 'a word of what is missing'
    )
    named += run.status()['hosts_without_data']
    silent.resume()
    until(lambda: not run.status()['hosts_without_data'] or run.check_runs(), 'data of both hosts')
  assert sorted(named) == ['learner/0'] * 2 + ['learner/1'] * 2
  status = run.status()
  assert status['unrolls_confirmed'] >= status['unrolls_learnt']

  def learner(index):
    until(lambda: len(run.nodes('learner')) == 2, 'two learners')
    return sorted(run.nodes('learner'), key=lambda node: node.pid)[index]

  learner(0).send_signal(signal.SIGKILL)
  until(lambda: run.status()['resumptions'] == 1 or run.check_runs(), 'a second start')
  run.wait_for_updates(3, since=run.status()['updates'])
  assert 'the process was lost: killed by SIGKILL' in run.stderr

  learner(1).suspend()
  assert run.wait(150.0 + node_host.termination_notice_s()) == 1
  assert run.nodes() == []
  assert 'learner/1 was lost, or did not answer within 5 s' in run.stderr
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
    '--config.total_steps=60000',
    '--run_dir=run',
  )
  run.wait(500)  # it takes longer than other runs
  summary = run.expect_finished(60_000)
  assert summary['episode_return_last_100'] >= 0.9
