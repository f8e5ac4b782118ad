"""`seed-acme node`: several learner hosts, each started separately."""

import signal

import pytest

from seed_acme.programs.system import processes
from tests import ports

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture
def make_two_learners(make_cluster):
  def make():
    addresses = [f'127.0.0.1:{ports.unused()}' for _ in range(4)]
    return make_cluster(actors=2, learner=addresses[:2], exchange=addresses[2:])

  return make


def test_two_learner_hosts_train_to_the_end(make_two_learners):
  cluster = make_two_learners()
  options = ['--config.num_evaluation_environments=4', '--config.total_steps=3000']
  actors = [cluster.actor(f'--index={i}', *options) for i in range(3)]
  other = cluster.start('learner', '--index=1', *options)
  chief = cluster.learner('--index=0', *options)
  assert [run.wait() for run in (chief, other, *actors)] == [0] * 5, (chief.stderr, other.stderr)
  assert chief.summary()['agent_steps'] >= 3000
  assert [actor['rows'] > 0 for actor in chief.status()['actors']] == [True] * 3
  assert 'learner/1: the run is over' in other.stderr


@pytest.mark.parametrize('killed', [0, 1])
def test_a_learner_host_that_is_killed_has_all_of_them_start_again(
  make_two_learners, runs, until, killed
):
  cluster = make_two_learners()
  options = [runs.endless, '--max_restarts=1']
  actors = [cluster.actor(f'--index={i}', runs.endless) for i in range(2)]
  hosts = [cluster.learner('--index=0', *options), cluster.start('learner', '--index=1', *options)]
  chief = hosts[0]
  chief.wait_for_updates(3)
  hosts[killed].wait_for_node('learner').send_signal(signal.SIGKILL)
  until(lambda: chief.status().get('resumptions') == 1 or chief.check_runs(), 'a second start')
  chief.wait_for_updates(3, since=chief.status()['updates'])
  chief.process.send_signal(signal.SIGINT)
  assert chief.wait() == 130
  assert hosts[1].wait() == processes.OTHER_NODE_EXIT
  assert 'another learner host was stopped' in hosts[1].stderr
  for actor in actors:
    actor.process.send_signal(signal.SIGINT)
    actor.wait()


@pytest.mark.parametrize('killed', [0, 1])
def test_the_exit_codes_tell_the_host_that_failed_from_the_one_left_alone(
  make_two_learners, runs, killed
):
  """With these codes a Kubernetes Job counts only the failures of its own host."""
  cluster = make_two_learners()
  actors = [cluster.actor(f'--index={i}', runs.endless) for i in range(2)]
  hosts = [cluster.learner('--index=0', runs.endless)]
  hosts.append(cluster.start('learner', '--index=1', runs.endless))
  hosts[0].wait_for_updates(3)
  hosts[killed].wait_for_node('learner').send_signal(signal.SIGKILL)
  codes = [host.wait() for host in hosts]
  assert codes[killed] == processes.FAILURE_EXIT
  assert codes[1 - killed] == processes.OTHER_NODE_EXIT
  assert f'learner/{killed} has died' in hosts[1 - killed].stderr
  for actor in actors:
    actor.process.send_signal(signal.SIGINT)
    actor.wait()


def test_the_chief_of_a_host_that_is_stopped_is_not_over(make_two_learners, runs):
  cluster = make_two_learners()
  actors = [cluster.actor(f'--index={i}', runs.endless) for i in range(2)]
  chief = cluster.learner('--index=0', runs.endless)
  other = cluster.start('learner', '--index=1', runs.endless)
  chief.wait_for_updates(3)
  other.process.send_signal(signal.SIGTERM)
  assert [other.wait(), chief.wait()] == [143, processes.OTHER_NODE_EXIT]
  assert chief.summary()['status'] == 'failed'
  for actor in actors:
    actor.process.send_signal(signal.SIGINT)
    actor.wait()


def test_learner_hosts_that_do_not_fit_say_where(make_two_learners):
  cluster = make_two_learners()
  other = cluster.start('learner', '--index=1', '--config.agent.discount=0.5')
  chief = cluster.learner('--index=0')
  assert [chief.wait(), other.wait()] == [2, 2]
  assert 'agent.discount is 0.5 here and 0.99 at learner/0' in other.stderr
