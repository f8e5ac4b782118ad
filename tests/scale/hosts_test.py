"""Three network namespaces as three hosts: a learner with replay, and an actor on each of two.

They share nothing but a switch: each has a folder of its own, and its own copy of the cluster file.
Skipped only if the kernel does not permit namespaces.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from seed_acme.files import local
from seed_acme.storage import run_directory

pytestmark = [pytest.mark.scale, pytest.mark.timeout(1200)]

_COMMAND = pathlib.Path(sys.executable).with_name('seed-acme')
_HANG_S = 300.0
_CUT_S = 30.0
_NOTICED_S = 15.0  # it takes 3 to 5 s; the rest is for a busy machine
_BACK_S = 20.0
_SETTINGS = (
  '--config=catch_vtrace',
  '--cluster=cluster.json',
  '--config.learner.log_period_s=0.2',
  '--config.checkpoint.period_s=5',
)


@pytest.fixture
def network(make_network):
  return make_network(3)


class Node:
  """`seed-acme node` on one host, in a folder of its own."""

  def __init__(self, network, host, folder, cluster, *arguments):
    self.folder = folder
    self.folder.mkdir(exist_ok=True)
    (folder / 'cluster.json').write_text(json.dumps(cluster))
    (folder / 'cluster.json').chmod(0o600)
    self._output = folder / f'{len(list(folder.glob("*.output")))}.output'
    command = [_COMMAND, 'node', *arguments, *_SETTINGS]
    with open(self._output, 'w') as output:
      self.process = subprocess.Popen(
        ['ip', 'netns', 'exec', network.hosts[host - 1], *command],
        cwd=folder,
        stdout=output,
        stderr=output,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
      )

  @property
  def output(self):
    return self._output.read_text()

  def status(self):
    path = run_directory.RunDirectory(self.folder / 'run').status
    return local.read_json(path) if path.exists() else {}

  def kill(self):
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self.process.pid, signal.SIGKILL)
    self.process.wait()


def _until(is_so, what, nodes, timeout_s=_HANG_S):
  """Polls; returns the seconds that it took."""
  started = time.monotonic()
  while not is_so():
    for node in nodes:
      assert node.process.poll() is None, f'{what}: a node ended: {node.output}'
    assert time.monotonic() - started < timeout_s, f'{what} did not come about'
    time.sleep(0.05)
  return time.monotonic() - started


def _is_connected(learner, index):
  actors = learner.status().get('actors')
  return bool(actors) and actors[index]['is_connected']


def _rows(learner, index):
  return learner.status()['actors'][index]['rows']


def _cut_off_and_back(network, learner, actor, nodes, say):
  """Cuts off host 3, with actor 1, for 30 s: training continues without it, and then with it."""
  network.set_link(3, 'down')
  cut = time.monotonic()
  noticed_s = _until(lambda: not _is_connected(learner, 1), 'the loss', nodes)
  rows, others, steps = _rows(learner, 1), _rows(learner, 0), learner.status()['agent_steps']
  _until(lambda: 'is lost' in actor.output, 'the loss, on its own side', nodes)
  both_noticed_s = time.monotonic() - cut
  while time.monotonic() < cut + _CUT_S:  # the other host acts now and then
    network.signal(2, signal.SIGSTOP)
    time.sleep(0.9)
    network.signal(2, signal.SIGCONT)
    time.sleep(0.1)
  assert _rows(learner, 1) == rows
  made = learner.status()['agent_steps'] - steps
  assert made > 0 and _rows(learner, 0) > others
  network.set_link(3, 'up')
  back_s = _until(
    lambda: _is_connected(learner, 1) and _rows(learner, 1) > rows, 'the return', nodes
  )
  say(
    f'noticed by the learner after {noticed_s:.1f} s, by both after {both_noticed_s:.1f} s; '
    f'{made:,} steps in the {_CUT_S:g} s of the '
    f'cut, all from the other host; rows again {back_s:.1f} s after the link was up'
  )
  assert both_noticed_s < _NOTICED_S and back_s < _BACK_S


def test_two_actor_hosts_one_cut_off_a_learner_that_is_resumed_and_a_clean_end(
  network, tmp_path, capsys
):
  def say(text):
    with capsys.disabled():
      print(f'\n  {text}', end='', flush=True)

  cluster = {
    'learner': f'{network.address(1)}:8000',
    'token': 'the-token-of-this-run',
    'actors': [network.address(2), network.address(3)],
  }
  with contextlib.ExitStack() as stack:

    def start(host, name, *arguments):
      node = Node(network, host, tmp_path / name, cluster, *arguments)
      stack.callback(node.kill)
      return node

    # their index follows from the address
    actors = [start(2, 'host2', 'actor'), start(3, 'host3', 'actor')]
    learner = start(1, 'host1', 'learner', '--run_dir=run', '--config.total_steps=1000000000')
    nodes = [learner, *actors]
    connected_s = _until(
      lambda: _is_connected(learner, 0) and _is_connected(learner, 1), 'all actors', nodes
    )
    say(f'both actor hosts connected {connected_s:.1f} s after the start of the learner')
    _until(lambda: min(_rows(learner, 0), _rows(learner, 1)) > 1000, 'rows of both', nodes)
    _cut_off_and_back(network, learner, actors[1], nodes, say)

    _until(lambda: 'actor/1 connected again' in learner.output, 'word of that', nodes)
    learner.process.terminate()  # as a preemption does
    assert learner.process.wait(_HANG_S) == 143, learner.output
    steps = learner.status()['agent_steps']
    learner = start(
      1, 'host1', 'learner', '--run_dir=run', f'--config.total_steps={max(steps + 20_000, 60_000)}'
    )
    nodes = [learner, *actors]
    codes = [node.process.wait(_HANG_S) for node in nodes]
    assert codes == [0, 0, 0], [node.output for node in nodes]
    summary = local.read_json(tmp_path / 'host1' / 'run' / 'summary.json')
    say(
      f'ended on all hosts with 0, at {summary["agent_steps"]:,} steps and a return of '
      f'{summary["episode_return_last_100"]:.2f}\n'
    )
    assert summary['status'] == 'finished' and learner.status()['resumptions'] == 1
    assert summary['episode_return_last_100'] > 0.9
    assert all(_rows(learner, index) > 0 for index in (0, 1))
    assert 'actor/1 lost' in (tmp_path / 'host1' / '0.output').read_text()
    assert 'actor/1 connected again' in (tmp_path / 'host1' / '0.output').read_text()
    _check_actors(actors)


def _check_actors(actors):
  """Checks that they ended with the run, survived one restart of the learner, and left no files."""
  for index, actor in enumerate(actors):
    assert actor.output.splitlines()[-1] == f'actor/{index}: the run is over'
    assert actor.output.count('the environments begin anew') == 1
    assert [path.name for path in sorted(actor.folder.iterdir())] == ['0.output', 'cluster.json']
