"""The ports of a run that each host reaches, between network namespaces, for all that `ss` finds.

From its own machine every port is reachable, so silence elsewhere is due to the fence.
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

pytestmark = [pytest.mark.scale, pytest.mark.timeout(600)]

_COMMAND = pathlib.Path(sys.executable).with_name('seed-acme')
_START_S = 300.0
_SERVING = 8000
# A port without an answer costs the whole time-out, so all are tried at once.
_CONNECT = """
import concurrent.futures, json, socket, sys
def reached(port):
  try:
    socket.create_connection((sys.argv[1], port), 3.0).close()
  except OSError:
    return False
  return True
ports = json.loads(sys.argv[2])
with concurrent.futures.ThreadPoolExecutor(64) as pool:
  answers = list(pool.map(reached, ports))
print(json.dumps([port for port, is_reached in zip(ports, answers) if is_reached]))
"""


class Hosts:
  """A runner of commands on the hosts of a network."""

  def __init__(self, network, folder):
    self._network = network
    self._folder = folder
    self._started = []

  def run(self, host, *command):
    """Runs a command on a host and returns its output."""
    inside = ['ip', 'netns', 'exec', self._network.hosts[host - 1]]
    return subprocess.run([*inside, *command], capture_output=True, text=True, check=True).stdout

  def start(self, host, *arguments):
    """Starts `seed-acme` with these arguments, in a folder that all hosts share."""
    path = self._folder / f'{len(self._started)}.output'
    inside = ['ip', 'netns', 'exec', self._network.hosts[host - 1]]
    with open(path, 'w') as output:
      process = subprocess.Popen(
        [*inside, str(_COMMAND), *arguments],
        cwd=self._folder,
        stdout=output,
        stderr=output,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
      )
    self._started.append((process, path))

  def wait_until_it_learns(self, run):
    """Waits for the first update. run: its folder."""
    end_s = time.monotonic() + _START_S
    status = run_directory.RunDirectory(self._folder / run).status
    while not (status.exists() and local.read_json(status).get('updates')):
      for process, path in self._started:
        assert process.poll() is None, path.read_text()
      assert time.monotonic() < end_s, [path.read_text() for _, path in self._started]
      time.sleep(0.2)

  def ports(self, host):
    """Returns all listening ports of a host."""
    lines = self.run(host, 'ss', '--no-header', '--listening', '--tcp', '--numeric').splitlines()
    return sorted({int(line.split()[3].rpartition(':')[2]) for line in lines})

  def reached(self, own, address, ports):
    """Returns the ports that host `own` can reach."""
    return json.loads(self.run(own, sys.executable, '-c', _CONNECT, address, json.dumps(ports)))

  def stop(self):
    for process, _ in self._started:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    for process, _ in self._started:
      try:
        process.wait(60.0)
      except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def hosts(make_network, tmp_path):
  """`hosts(number)` -> the hosts and their addresses, from 1."""
  with contextlib.ExitStack() as stack:

    def make(number):
      network = make_network(number)
      made = Hosts(network, tmp_path)
      stack.callback(made.stop)
      return made, [network.address(i) for i in range(number + 1)]

    yield make


@pytest.mark.parametrize(
  'settings, num_ports',
  [
    (['--config.num_learner_hosts=2'], 6),  # two each of Reverb, the exchange, and gRPC
    # Reverb's, and courier's, which listens on its own machine only.
    (['--config.transport.kind=courier', '--config.replay.separate_process=True'], 2),
  ],
)
def test_no_port_of_a_run_on_one_machine_answers_another(hosts, settings, num_ports):
  here, addresses = hosts(2)
  here.start(
    1,
    'train',
    '--config=catch_vtrace',
    '--run_dir=run',
    '--config.total_steps=1000000000',
    *settings,
  )
  here.wait_until_it_learns('run')
  ports = here.ports(1)
  assert len(ports) == num_ports
  assert here.reached(1, '127.0.0.1', ports) == ports
  assert here.reached(2, addresses[1], ports) == []


def test_ports_of_a_run_on_two_hosts_answer_those_and_whom_they_admit(hosts, tmp_path):
  here, addresses = hosts(4)
  cluster = {
    'learner': [f'{addresses[i]}:{_SERVING}' for i in (1, 2)],
    'exchange': [f'{addresses[i]}:8002' for i in (1, 2)],
    'actors': [addresses[1], addresses[2]],
    'admit': [addresses[4]],
    'token': 'the-token-of-this-run',
  }
  (tmp_path / 'cluster.json').write_text(json.dumps(cluster))
  (tmp_path / 'cluster.json').chmod(0o600)
  settings = ('--cluster=cluster.json', '--config=catch_vtrace', '--config.total_steps=1000000000')
  for host in (1, 2):
    run = ['--run_dir=run'] if host == 1 else []
    here.start(host, 'node', 'learner', *run, *settings)
    here.start(host, 'node', 'actor', *settings)
  here.wait_until_it_learns('run')
  for host, other in ((1, 2), (2, 1)):
    ports = here.ports(host)
    assert len(ports) == 3 and {_SERVING, 8002} < set(ports)
    for friend in (host, other, 4):
      assert here.reached(friend, addresses[host], ports) == ports
    assert here.reached(3, addresses[host], ports) == [_SERVING]  # it asks for the token
