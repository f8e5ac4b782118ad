"""`seed-acme node`: the nodes of a run started one by one, here all on one machine."""

import os
import re
import signal
import socket
import sys

import pytest

from seed_acme.programs import cli
from seed_acme.storage import checkpoint
from tests import ports
from tests.programs.cluster import clusters

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(900)]

# Slow until there is a file, so that no run is over before the test has done to it what it wants,
# and the machine is left to other tests.
_PACED = """
import os, time
import drill_environments

class Paced(drill_environments.Raising):
  def step(self, actions):
    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hurry')):
      time.sleep(0.05)
    return super().step(actions)
"""
_ENVIRONMENT = (
  '--config.environment.id=paced:Paced',
  '--config.environment.settings',
  'only_with',
  'broken',
)


def _last_line(run):
  return run.stderr.splitlines()[-1]


def _wait_for_actor(until, learner, index, is_connected=True):
  def is_so():
    actors = learner.status().get('actors')
    return actors and actors[index]['is_connected'] == is_connected or learner.check_runs()

  until(is_so, f'actor/{index} in the status')


def _expect_refusals(cluster):
  """Starts actors that do not belong to the run."""
  cluster.write('other_token.json', **{**cluster.settings, 'token': 'some-other-token'})
  cases = [
    (cluster.actor('--index=1', cluster='other_token.json'), 'the same token on every host'),
    (cluster.actor('--index=1'), "environment.id is catch, the learner's paced:Paced"),
  ]
  for run, words in cases:
    assert run.wait() == 2, run.stderr
    start = f'error: the learner at localhost:{cluster.port} refuses this node: '
    assert _last_line(run).startswith(start) and words in _last_line(run)
    assert 'Traceback' not in run.stderr and 'other-token' not in run.stderr


def _expect_failure(cluster):
  """Starts an actor whose environment fails."""
  (cluster.folder / 'broken').touch()
  actor = cluster.actor('--index=1', *_ENVIRONMENT)
  assert actor.wait() == 1
  assert _last_line(actor) == (
    'error: the worker failed 3 times in a row (actor.max_failures), the last time with '
    'RuntimeError: the ball fell off the board'
  )
  (cluster.folder / 'broken').unlink()


def _expect_stop(actor, number, code):
  os.killpg(actor.process.pid, number)  # as a terminal does
  assert actor.wait() == code
  assert actor.nodes() == [] and 'Traceback' not in actor.stderr


def _expect_takeover(until, learner, actor):
  """Starts two actors with the same index; returns both. The second one does not wait for long."""
  first = actor(1)
  _wait_for_actor(until, learner, 1)
  second = actor(1, '--config.actor.connect_timeout_s=1')
  assert first.wait() == 2
  assert _last_line(first) == (
    'error: another actor has taken over the environments of actor/1, one that was started '
    'later: give every actor of a run another --index'
  )
  return first, second


def _expect_kill(until, learner, actor, port):
  """Kills the learner, for which the actor does not wait for long."""
  learner.process.kill()
  until(lambda: learner.nodes() == [], 'the end of its processes')
  assert actor.wait() == 1
  assert _last_line(actor) == (
    f'error: no inference server at localhost:{port} for 1 s '
    '(actor.connect_timeout_s): Connection refused'
  )
  assert 'Traceback' not in actor.stderr


def _expect_end_again(learner, steps, train, actor):
  """Starts all nodes of a run that is over, as after a preemption that left only the summary and
  the plot to do; returns what was started, the learner first."""
  run_dir, summary = learner.run_dir, learner.summary()
  for path in (run_dir.summary, run_dir.plot):
    path.unlink()
  saved = checkpoint.newest(run_dir.checkpoints).stat().st_mtime_ns
  again, *_ = started = [train(steps), actor(0), actor(1)]
  assert [run.wait() for run in started] == [0, 0, 0], again.stdout + again.stderr
  costs = {name: learner.summary()[name] for name in ('cpu_s', 'steps_per_cpu_s')}
  assert learner.summary() == {**summary, **costs}  # only the summary had the costs
  assert run_dir.plot.exists()
  assert checkpoint.newest(run_dir.checkpoints).stat().st_mtime_ns == saved
  assert again.stdout.startswith(f'Over: this run has made its {steps:,} steps')
  assert 'Finished: ' in again.stdout and again.stderr == ''
  return started


def _expect_end_by_hand(cluster):
  by_hand = cluster.start_without('train', '--run_dir=run', '--trust_run_dir')
  assert by_hand.wait() == 2 and 'raise --config.total_steps' in by_hand.stderr


def _expect_nothing_left(learner, runs):
  """No process is left, and no token is in what the nodes have written."""
  assert all(run.nodes() == [] for run in runs)
  written = [text for run in runs for text in (run.stdout, run.stderr)]
  written += [learner.run_dir.config.read_text(), learner.run_dir.status.read_text()]
  written += [log.read_text() for log in learner.run_dir.logs.rglob('*') if log.is_file()]
  assert not any(clusters.TOKEN in text for text in written)


def test_the_nodes_of_a_run_from_an_early_actor_to_a_start_after_the_end(make_cluster, until):
  """Actors that fail, end or change are nobody else's concern. A learner that was killed, was
  stopped, or had no time for its summary goes on with the same command."""
  replay = f'localhost:{ports.unused()}'
  cluster = make_cluster(actors=2, replay=replay)
  actor = lambda index, *more: cluster.actor(f'--index={index}', *_ENVIRONMENT, *more)
  train = lambda steps: cluster.learner(*_ENVIRONMENT, f'--config.total_steps={steps}')
  (cluster.folder / 'paced.py').write_text(_PACED)

  early = actor(1)
  until(lambda: 'waiting for the learner' in early.stderr, 'an actor that waits for the learner')
  _expect_stop(early, signal.SIGTERM, 143)
  memory, learner = cluster.start('replay', *_ENVIRONMENT), train(10**9)
  until(lambda: learner.run_dir.addresses.exists() or learner.check_runs(), 'the learner')
  # Its folder may be on a file system without sockets.
  assert not (learner.run_dir.path / 'inference.sock').exists()
  _expect_failure(cluster)
  stays = actor(0, '--config.total_steps=1')
  _expect_refusals(cluster)
  first = actor(1)
  _wait_for_actor(until, learner, 1)
  _expect_stop(first, signal.SIGINT, 130)
  _wait_for_actor(until, learner, 1, is_connected=False)

  first, second = _expect_takeover(until, learner, actor)
  learner.wait_for_updates(5, since=learner.status()['updates'])
  newest = lambda: int(checkpoint.newest(learner.run_dir.checkpoints).name)
  until(newest, 'a checkpoint with updates')
  _expect_kill(until, learner, second, cluster.port)

  updates, killed, learner = newest(), learner, train(10**9)
  until(lambda: newest() > updates or learner.check_runs(), 'a checkpoint with more updates')
  learner.process.send_signal(signal.SIGINT)
  assert learner.wait() == 130
  assert learner.summary()['status'] == 'stopped' and learner.status()['resumptions'] == 1
  assert 'the same command again' in learner.stdout
  assert f'the replay memory stays on {replay}' in learner.stderr

  until(lambda: 'it has stopped before the end of the run' in stays.stderr, 'a word of the stop')
  assert (stays.stdout + stays.stderr).count('the environments begin anew') == 1
  _expect_stop(stays, signal.SIGHUP, 129)  # while it waits for the learner

  steps = learner.status()['agent_steps'] + 2_000
  learner, away = train(steps), actor(1)

  def has_rows_of_this_start():
    status = learner.status()
    return status['resumptions'] == 2 and status['actors'][1]['rows'] or learner.check_runs()

  until(has_rows_of_this_start, 'its rows')
  away.kill_everything()
  (cluster.folder / 'hurry').touch()
  here = actor(0)
  assert here.wait() == 0, here.stderr
  until(lambda: 'is over: actor/1' in learner.stderr or learner.check_runs(), 'the notice')
  away = actor(1)
  assert [run.wait() for run in (away, learner, memory)] == [0, 0, 0], learner.stderr
  summary = learner.summary()
  assert summary['status'] == 'finished' and summary['agent_steps'] >= steps
  assert re.search(r'actor/\d connected \(\d of 2 connected\)', learner.stdout)
  assert 'Finished: ' in learner.stdout and 'Evaluate: seed-acme evaluate' in learner.stdout

  again, *told = _expect_end_again(learner, steps, train, actor)
  for index, run in enumerate((here, away, *told)):
    assert f'environments {8 * (index % 2)} ... {8 * (index % 2) + 7} for the learner' in run.stderr
    assert _last_line(run) == f'actor/{index % 2}: the run is over'
    assert 'Traceback' not in run.stderr
  _expect_end_by_hand(cluster)
  runs = (early, stays, first, second, killed, memory, learner, here, away, again, *told)
  _expect_nothing_left(learner, runs)


def test_wrong_input_is_one_line_and_nothing_is_made(make_cluster, monkeypatch, capsys):
  cluster = make_cluster(actors=3)
  used = socket.create_server(('127.0.0.1', 0))
  port = used.getsockname()[1]
  cluster.write('used.json', **{**cluster.settings, 'learner': f'127.0.0.1:{port}'})
  cluster.write('far.json', **{**cluster.settings, 'learner': '203.0.113.7:8000'})
  cluster.write('bad.json', **{**cluster.settings, 'aktors': 1})
  monkeypatch.chdir(cluster.folder)
  monkeypatch.setattr(sys, 'path', list(sys.path))
  handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
  good, given = ('--config=catch_vtrace', '--cluster=cluster.json'), ('--config=catch_vtrace',)
  cases = [
    (('learner', *given, '--cluster=none.json'), ['none.json', '--cluster']),
    (('actor', *given, '--cluster=bad.json'), ['bad.json', 'aktors', 'actors']),
    (('driver', *good), ['driver', 'learner', 'replay', 'actor']),
    (('actor', *good, '--index=3'), ['--index=3', '0 ... 2']),
    (('actor', *good), ['--index']),
    (('learner', *good, '--index=1'), ['--index=1', 'leave it out']),
    (('actor', *good, '--index=0', '--run_dir=run'), ['--run_dir=run', 'leave it out']),
    (('learner', *given, '--cluster=used.json'), [f'127.0.0.1:{port}', 'in use']),
    (('learner', *given, '--cluster=far.json'), ['203.0.113.7', 'no address of this host']),
    (('learner', *good, '--config.transport.kind=courier'), ['courier', 'grpc']),
    (('learner', *good, '--config.num_actors=5'), ['num_actors=5', 'has 3']),
    (('replay', *good), ['no "replay"']),
    (('actor', '--cluster=cluster.json'), ['--config']),
    (('actor', *given), ['--cluster']),
  ]
  for arguments, words in cases:
    assert cli.main(['node', *arguments]) == 2
    stderr = capsys.readouterr().err
    lines = stderr.splitlines()
    assert 1 <= len(lines) <= 2 and lines[0].startswith('error: '), stderr
    assert all(word in stderr for word in words), stderr
  for number, handler in handlers.items():
    signal.signal(number, handler)
  assert {path.name for path in cluster.folder.iterdir() if path.suffix == ''} == set()
  used.close()
