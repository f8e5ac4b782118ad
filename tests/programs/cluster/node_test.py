"""`seed-acme node`: the nodes of a run started one by one, here all on one machine."""

import os
import re
import signal
import socket

import pytest

from seed_acme.storage import checkpoint
from tests import ports
from tests.programs.cluster import clusters

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]


def _actors(run):
  return run.status().get('actors', [])


def test_nodes_started_in_any_order_train_to_the_end_and_all_end_well(make_cluster):
  cluster = make_cluster(actors=2)
  options = ['--config.num_evaluation_environments=4', '--config.total_steps=3000']
  actors = [cluster.actor(f'--index={i}', *options) for i in range(3)]
  learner = cluster.learner(*options)
  assert [run.wait() for run in (learner, *actors)] == [0, 0, 0, 0], learner.stderr
  assert learner.summary()['status'] == 'finished' and learner.summary()['agent_steps'] >= 3000
  records = _actors(learner)
  assert len(records) == 3 and all(record['rows'] > 0 for record in records)
  assert sum(record['rows'] for record in records[:2]) >= 3000
  assert re.search(r'actor/\d connected \(\d of 3 connected\)', learner.stdout)
  assert 'Finished: ' in learner.stdout and 'Evaluate: seed-acme evaluate' in learner.stdout
  for index, actor in enumerate(actors):
    first, last = 8 * index, 8 * index + (7 if index < 2 else 3)
    assert f'environments {first} ... {last} for the learner' in actor.stderr
    assert actor.stderr.splitlines()[-1] == f'actor/{index}: the run is over'
    assert 'Traceback' not in actor.stderr
    assert clusters.TOKEN not in actor.stderr + actor.stdout + learner.stdout + learner.stderr
  assert clusters.TOKEN not in (
    learner.run_dir.config.read_text() + learner.run_dir.status.read_text()
  )
  assert all(run.nodes() == [] for run in (learner, *actors))


def test_a_learner_started_again_after_the_end_makes_good_what_that_did_not_come_to(make_cluster):
  cluster = make_cluster()
  learner, actor = cluster.learner('--config.total_steps=2000'), cluster.actor()
  assert [run.wait() for run in (learner, actor)] == [0, 0], learner.stderr
  summary = learner.summary()
  # as if it was preempted at that moment
  for path in (learner.run_dir.summary, learner.run_dir.plot):
    path.unlink()
  saved = checkpoint.newest(learner.run_dir.checkpoints).stat().st_mtime_ns
  again = [cluster.learner('--config.total_steps=2000'), cluster.actor()]
  assert [run.wait() for run in again] == [0, 0], again[0].stdout + again[0].stderr
  assert again[1].stderr.splitlines()[-1] == 'actor/0: the run is over'
  assert learner.summary() == {
    **summary,
    **{name: learner.summary()[name] for name in ('cpu_s', 'steps_per_cpu_s')},
  }  # only the summary had it
  assert learner.run_dir.plot.exists()
  assert checkpoint.newest(learner.run_dir.checkpoints).stat().st_mtime_ns == saved
  assert again[0].stdout.startswith('Over: this run has made its 2,000 steps')
  assert 'Finished: ' in again[0].stdout and again[0].stderr == ''
  by_hand = cluster.start_without('train', '--run_dir=run')
  assert by_hand.wait() == 2 and 'raise --config.total_steps' in by_hand.stderr


def test_an_actor_that_is_away_when_the_run_ends_hears_it_when_it_is_back(make_cluster, until):
  cluster = make_cluster(actors=2)
  learner, away = cluster.learner('--config.total_steps=20000'), cluster.actor('--index=1')
  until(
    lambda: len(_actors(learner)) == 2 and _actors(learner)[1]['rows'] or learner.check_runs(),
    'its rows',
  )
  away.kill_everything()
  here = cluster.actor('--index=0')
  assert here.wait() == 0, here.stderr
  until(lambda: 'actor/1 cannot be told' in learner.stderr or learner.check_runs(), 'the notice')
  away = cluster.actor('--index=1')
  assert [run.wait() for run in (away, learner)] == [0, 0], learner.stderr
  assert away.stderr.splitlines()[-1] == 'actor/1: the run is over'
  assert learner.summary()['status'] == 'finished'


def test_a_learner_that_was_killed_or_stopped_goes_on_with_the_same_command(make_cluster, until):
  replay = f'localhost:{ports.unused()}'
  cluster = make_cluster(replay=replay)
  others = [cluster.actor('--config.total_steps=1'), cluster.start('replay')]
  updates, options = 0, ['--config.total_steps=1000000000']
  for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
    learner = cluster.learner(*options)
    learner.wait_for_updates(10, since=updates)
    until(
      lambda: checkpoint.newest(learner.run_dir.checkpoints).name > f'{updates:012}',  # noqa: B023
      'a checkpoint',
    )
    learner.process.send_signal(number)
    assert learner.wait() == code
    until(lambda: learner.nodes() == [], 'the end of its processes')  # noqa: B023
    updates = int(checkpoint.newest(learner.run_dir.checkpoints).name)
    assert all(run.process.poll() is None for run in others)
  assert learner.summary()['status'] == 'stopped'
  assert 'the same command again' in learner.stdout
  steps = learner.status()['agent_steps']
  learner = cluster.learner(f'--config.total_steps={steps + 5000}')
  assert [run.wait() for run in (learner, *others)] == [0, 0, 0], learner.stderr
  assert learner.status()['resumptions'] == 2
  assert learner.summary()['agent_steps'] >= steps + 5000
  actor = others[0]
  assert (actor.stdout + actor.stderr).count('the environments begin anew') == 2
  assert 'it has stopped before the end of the run' in actor.stderr
  assert 'Traceback' not in actor.stderr
  assert f'the replay memory stays on {replay}' in learner.stderr


def test_who_stops_an_actor_ends_it_alone(make_cluster, until):
  cluster = make_cluster()
  learner, actor = cluster.learner('--config.total_steps=1000000000'), cluster.actor()
  learner.wait_for_updates(5)
  for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    os.killpg(actor.process.pid, number)  # as a terminal does
    assert actor.wait() == code
    assert actor.nodes() == [] and 'Traceback' not in actor.stderr
    until(lambda: not _actors(learner)[0]['is_connected'], 'the loss in the status')
    actor = cluster.actor()
    until(lambda: _actors(learner)[0]['is_connected'], 'the new actor in the status')
  second = cluster.actor()  # by mistake: the same index
  assert actor.wait() == 2
  assert actor.stderr.splitlines()[-1] == (
    'error: another actor has taken over the environments of actor/0, one that was started '
    'later: give every actor of a run another --index'
  )
  learner.wait_for_updates(5, since=learner.status()['updates'])
  learner.process.kill()
  second.process.send_signal(signal.SIGTERM)  # while it waits for the learner
  assert second.wait() == 143


def test_an_actor_gives_up_after_the_time_it_was_given(make_cluster, until):
  cluster = make_cluster()
  never, learner = cluster.actor('--config.actor.connect_timeout_s=1'), cluster.learner()
  until(lambda: learner.run_dir.addresses.exists() or learner.check_runs(), 'the learner')
  # Its folder may be on a file system without sockets.
  assert not (learner.run_dir.path / 'inference.sock').exists()
  actor = cluster.actor('--config.actor.connect_timeout_s=1')
  learner.wait_for_updates(5)
  learner.kill_everything()
  for run in (never, actor):
    assert run.wait() == 1
    assert run.stderr.splitlines()[-1] == (
      f'error: no inference server at localhost:{cluster.port} for 1 s '
      '(actor.connect_timeout_s): Connection refused'
    )


def test_an_environment_that_fails_ends_its_actor_with_the_reason(make_cluster):
  cluster = make_cluster()
  options = [
    '--config.environment.id=drill_environments:Raising',
    '--config.environment.settings',
    'at_step',
    '30',
  ]
  learner, actor = cluster.learner(*options), cluster.actor(*options)
  assert actor.wait() == 1
  assert actor.stderr.splitlines()[-1] == (
    'error: the worker failed 3 times in a row (actor.max_failures), the last time with '
    'RuntimeError: the ball fell off the board'
  )
  learner.check_runs()  # it waits for a better actor


def test_nodes_that_do_not_fit_are_refused_by_the_learner(make_cluster):
  cluster = make_cluster()
  cluster.write('other_token.json', **{**cluster.settings, 'token': 'some-other-token'})
  learner = cluster.learner('--config.total_steps=1000000000')
  cases = [
    (cluster.actor(cluster='other_token.json'), ['token', 'the same token on every host']),
    (
      cluster.actor('--config.environments_per_actor=4'),
      ["environments_per_actor is 4, the learner's 8", 'the same --config'],
    ),
    (
      cluster.actor('--config.environment.settings', 'rows', '8'),
      ["environment.settings.rows is 8, the learner's absent"],
    ),
    (cluster.actor('--config.seed=7'), ["seed is 7, the learner's 1"]),
  ]
  for run, words in cases:
    assert run.wait() == 2, run.stderr
    last = run.stderr.splitlines()[-1]
    assert last.startswith(f'error: the learner at localhost:{cluster.port} refuses this node: ')
    assert all(word in last for word in words), last
    assert 'Traceback' not in run.stderr and 'other-token' not in run.stderr
  learner.check_runs()


def test_wrong_input_is_one_line_and_nothing_is_made(make_cluster):
  cluster = make_cluster(actors=3)
  used = socket.create_server(('127.0.0.1', 0))
  port = used.getsockname()[1]
  cluster.write('used.json', **{**cluster.settings, 'learner': f'127.0.0.1:{port}'})
  cluster.write('far.json', **{**cluster.settings, 'learner': '203.0.113.7:8000'})
  cluster.write('bad.json', **{**cluster.settings, 'aktors': 1})
  start = cluster.start
  cases = [
    (start('learner', cluster='none.json'), ['none.json', '--cluster']),
    (start('actor', cluster='bad.json'), ['bad.json', 'aktors', 'actors']),
    (start('driver'), ['driver', 'learner', 'replay', 'actor']),
    (start('actor', '--index=3'), ['--index=3', '0 ... 2']),
    (start('actor'), ['--index']),
    (start('learner', '--index=1'), ['--index=1', 'leave it out']),
    (start('actor', '--index=0', '--run_dir=run'), ['--run_dir=run', 'leave it out']),
    (start('learner', cluster='used.json'), [f'127.0.0.1:{port}', 'in use']),
    (start('learner', cluster='far.json'), ['203.0.113.7', 'no address of this host']),
    (start('learner', '--config.transport.kind=courier'), ['courier', 'grpc']),
    (start('learner', '--config.num_actors=5'), ['num_actors=5', 'has 3']),
    (start('replay'), ['no "replay"']),
    (cluster.start_without('node', 'actor', '--cluster=cluster.json'), ['--config']),
    (cluster.start_without('node', 'actor', '--config=catch_vtrace'), ['--cluster']),
  ]
  for run, words in cases:
    assert run.wait() == 2, run.stdout + run.stderr
    lines = run.stderr.splitlines()
    assert 1 <= len(lines) <= 2 and lines[0].startswith('error: '), run.stderr
    assert all(word in run.stderr for word in words), run.stderr
  assert {path.name for path in cluster.folder.iterdir() if path.suffix == ''} == set()
  used.close()
