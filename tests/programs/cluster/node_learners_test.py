"""`seed-acme node`: several learner hosts, each started by itself."""

import signal

import portpicker
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture
def make_two_learners(make_cluster):
  def make():
    ports = [f'127.0.0.1:{portpicker.pick_unused_port()}' for _ in range(4)]
    return make_cluster(actors=2, learner=ports[:2], exchange=ports[2:])

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
  assert hosts[1].wait() == 1
  assert 'another learner host was stopped' in hosts[1].stderr
  for actor in actors:
    actor.process.send_signal(signal.SIGINT)
    actor.wait()


def test_learner_hosts_that_do_not_fit_say_where(make_two_learners):
  cluster = make_two_learners()
  other = cluster.start('learner', '--index=1', '--config.agent.discount=0.5')
  chief = cluster.learner('--index=0')
  assert [chief.wait(), other.wait()] == [2, 2]
  assert 'agent.discount is 0.5 here and 0.99 at learner/0' in other.stderr
