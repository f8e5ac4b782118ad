"""The servers and runs that `inspect` contacts, and how long it waits for them."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

from seed_acme import types
from seed_acme.programs.tools.inspection import address as inspect_address
from seed_acme.programs.tools.inspection import command as inspect_command
from seed_acme.replay import inspection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_nobody_waits_longer_for_a_connection_than_was_said(monkeypatch):
  asked = []

  def never(address, timeout):
    asked.append((address, timeout))
    raise TimeoutError('timed out')

  monkeypatch.setattr(socket, 'create_connection', never)
  with pytest.raises(types.UserError, match='host:7 .no answer within 3 s'):
    inspect_address.check_answers('host:7', inspect_command._PROBE_TIMEOUT_S)
  assert asked == [(('host', 7), inspect_command._PROBE_TIMEOUT_S)]
  assert inspect_command._PROBE_TIMEOUT_S <= 4  # the rest of 5 s is for Python's start-up


@pytest.fixture
def listener():
  """`listener(answer)`: the address of a server that accepts a connection and sends that."""
  with contextlib.ExitStack() as stack:

    def listen(answer):
      server = stack.enter_context(socket.socket())
      server.bind(('127.0.0.1', 0))
      server.listen()

      def serve():
        connection = stack.enter_context(server.accept()[0])
        connection.sendall(answer)

      threading.Thread(target=serve, daemon=True).start()
      return f'127.0.0.1:{server.getsockname()[1]}'

    yield listen


@pytest.mark.parametrize(
  'answer, words',
  [
    (b'', 'no answer within 0.2 s'),
    (bytes([0, 0, 0]), 'no answer within 0.2 s'),
    (b'HTTP/1.1 400 Bad Request', 'something else answers there'),
  ],
)
def test_who_is_silent_or_speaks_otherwise_is_found_before_reverb_is_loaded(
  listener, answer, words
):
  with pytest.raises(types.UserError, match=f'no Reverb server at .*{words}'):
    inspect_address.check_answers(listener(answer), 0.2)


def test_a_reverb_server_is_taken_for_one(ours):
  inspect_address.check_answers(ours.address, inspect_command._PROBE_TIMEOUT_S)


@pytest.mark.parametrize('left_s, timeout_s', [(4.0, 3), (2.9, 2), (0.5, 1), (-7.0, 1)])
def test_one_deadline_for_the_probe_and_the_first_answer(
  inspect, monkeypatch, ours, left_s, timeout_s
):
  asked = []
  snapshot = inspection.Server.snapshot

  def record(server, timeout_s=None):
    asked.append(timeout_s)
    return snapshot(server)

  monkeypatch.setattr(inspection.Server, 'snapshot', record)
  monkeypatch.setattr(inspect_command.time, 'monotonic', lambda: 100.0)
  monkeypatch.setattr(inspect_command, '_DEADLINE_S', left_s)
  monkeypatch.setattr(inspect_address, 'check_answers', lambda *_: None)
  inspect(server=ours.address)
  assert asked == [timeout_s, None]


def test_the_deadline_leaves_time_for_the_start_of_python():
  longest_s = max(inspect_command._PROBE_TIMEOUT_S, inspect_command._DEADLINE_S)
  assert longest_s + inspect_command._first_timeout_s(0.0) <= 5


_SERVER = """
import time, reverb
server = reverb.Server([reverb.Table.queue('q', 3)])
print(server.port, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server_process():
  """Starts a server in its own process: (process, address)."""
  with subprocess.Popen(
    [sys.executable, '-c', _SERVER], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
  ) as process:
    yield process, f'localhost:{process.stdout.readline().strip()}'
    process.kill()


@pytest.mark.processes
def test_watching_says_when_the_server_is_gone(runs, until, server_process):
  process, address = server_process
  run = runs.start('inspect', f'--server={address}', '--watch=0.2', '--json')
  until(lambda: len(run.stdout.splitlines()) >= 3 or run.check_runs(), 'three records')
  process.kill()
  assert run.wait() == 1
  (line,) = run.stderr.splitlines()
  assert line.startswith('error: ') and address in line and 'gone' in line
  for line in run.stdout.splitlines():
    assert json.loads(line)['tables']['q']['blocked'] == 'samples'


@pytest.mark.processes
def test_a_live_run_and_the_same_when_a_kill_of_its_launcher_has_ended_it(
  runs, until, inspect, one_json
):
  folder = runs.folder()
  slow = '--config.environment.id=drill_slow:Slow'
  trained = runs.train(runs.endless, slow, folder=folder)
  trained.wait_for_updates(3)
  # Watching ends quietly with Ctrl-C.
  watched = runs.start('inspect', '--run_dir=run', '--watch=0.2', folder=folder)
  until(lambda: watched.stdout.count('mirror: ') >= 2 or watched.check_runs(), 'two blocks')
  watched.process.send_signal(signal.SIGINT)
  assert watched.wait() == 130
  assert watched.stderr == ''
  assert '\x1b' not in watched.stdout  # standard output is no terminal
  run_dir = str(trained.run_dir.path)
  # Long enough for several items, one of which comes every half second.
  tables = one_json(inspect(run_dir=run_dir, interval=3.0, json=True))['tables']
  assert tables['unrolls']['inserts_per_s'] > 0
  assert tables['mirror']['size'] >= 1
  leaves = {leaf['name'] for leaf in tables['unrolls']['signature']}
  assert {'inputs/reward', 'outputs/action', 'policy_version'} <= leaves
  with pytest.raises(types.UserError, match='has no items to draw'):
    inspect(run_dir=run_dir, sample=1, table='unrolls', consume=True)
  record = one_json(inspect(run_dir=run_dir, sample=1, save='items', json=True))
  assert record['table'] == 'mirror'
  assert record['items'][0]['leaves']['policy_version']['shape'] == [8, 10]
  trained.wait_for_node('launcher').kill()
  assert trained.wait() == 1
  assert trained.nodes() == []
  assert trained.stderr.splitlines()[-2:] == [
    'error in launcher: the process was lost: killed by SIGKILL',
    f'log: {trained.run_dir.logs / "launcher"}',
  ]
  assert trained.summary()['status'] == 'failed'
  with pytest.raises(types.UserError, match='has ended'):
    inspect(run_dir=run_dir)
