"""`seed-acme node`: several learner hosts, each started separately."""

import signal

import pytest

from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from tests import ports

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(900)]

# On each host, 8 environments of the host's only actor make half of an update's unrolls.
_STRICT = (
  '--config.agent.batch_size=16',
  '--config.replay.queue_size=16',
  '--config.inference.strictly_on_policy=True',
  '--config.num_evaluation_environments=4',
  # At full speed the evaluation, which waits for no update, would take a core for itself.
  '--config.environment.id=drill_slow:Slow',
)


def test_two_learner_hosts_whatever_befalls_one_of_them_and_to_the_end(make_cluster, until):
  """They start again together after a kill. Without that, the exit codes tell the host that failed
  from the one left alone: with these codes a Kubernetes Job counts only its own host's failures."""
  addresses = [f'127.0.0.1:{ports.unused()}' for _ in range(4)]
  cluster = make_cluster(actors=2, learner=addresses[:2], exchange=addresses[2:])
  actors = [cluster.actor(f'--index={i}', *_STRICT) for i in range(3)]

  def start_hosts(steps, *more):
    options = (*_STRICT, f'--config.total_steps={steps}', *more)
    other = cluster.start('learner', '--index=1', *options)
    return cluster.learner('--index=0', *options), other

  chief, other = start_hosts(10**9, '--max_restarts=1')
  newest = lambda: checkpoint.newest(chief.run_dir.checkpoints)
  saved_updates = lambda: int(newest().name) if newest() else 0

  def wait_for_training(since):
    until(lambda: saved_updates() > since or chief.check_runs(), 'a checkpoint with more updates')

  saved = 0
  for host in (chief, other):
    wait_for_training(saved)
    host.wait_for_node('learner').send_signal(signal.SIGKILL)
    saved = saved_updates()
  assert other.wait() == processes.FAILURE_EXIT
  assert chief.wait() == processes.OTHER_NODE_EXIT
  assert 'learner/0 has died' in other.stderr and 'learner/1 has died' in chief.stderr

  saved, (chief, other) = saved_updates(), start_hosts(10**9)
  wait_for_training(saved)
  assert chief.status()['resumptions'] == 2
  other.process.send_signal(signal.SIGTERM)
  assert [other.wait(), chief.wait()] == [143, processes.OTHER_NODE_EXIT]
  assert 'another learner host was stopped' in chief.stderr
  assert chief.summary()['status'] == 'failed'

  before = checkpoint.load(newest()).meta['counts']
  steps = before['agent_steps'] + 3000
  chief, other = start_hosts(steps)
  assert [run.wait() for run in (chief, other, *actors)] == [0] * 5, (chief.stderr, other.stderr)
  summary, status = chief.summary(), chief.status()
  assert summary['agent_steps'] >= steps and status['resumptions'] == 3
  made = {name: summary[name] - before[name] for name in ('agent_steps', 'episodes')}
  # Catch lasts 9 steps; with the episodes of only one host there would be fewer.
  assert 0.9 < 9 * made['episodes'] / made['agent_steps'] < 1.02
  assert min(actor['rows'] for actor in status['actors'][:2]) > 100
  assert len(status['actors']) == 3 and status['actors'][2]['rows'] > 0
  assert status['evaluation_return'] is not None
  assert len(status['seconds_of_other_hosts']) == 1
  lags = chief.metrics()['learner/policy_lag']
  assert {lag for lag in lags if lag == lag} == {0.0}  # a row without an update has no lag
  assert 'learner/1: the run is over' in other.stderr
