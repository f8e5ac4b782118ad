"""The ports of a run that each host reaches, between network namespaces, for all that `ss` finds.

From its own machine every port is reachable, so silence elsewhere is due to the fence.
"""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

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
    self.addresses = [network.address(i + 1) for i, _ in enumerate(network.hosts)]

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

  def ports(self, host, number):
    """Waits until this many ports of a host listen, and returns them.

    The fences are up then, because each learner opens the port for its actors last.
    """
    end_s = time.monotonic() + _START_S
    while True:
      lines = self.run(host, 'ss', '--no-header', '--listening', '--tcp', '--numeric').splitlines()
      ports = sorted({int(line.split()[3].rpartition(':')[2]) for line in lines})
      if len(ports) == number:
        return ports
      for process, path in self._started:
        assert process.poll() is None, path.read_text()
      assert time.monotonic() < end_s, [ports, *(path.read_text() for _, path in self._started)]
      time.sleep(0.2)

  def signal(self, number):
    """Sends a signal to all processes."""
    for host, _ in enumerate(self.addresses, start=1):
      self._network.signal(host, number)

  def reached(self, own, address, ports):
    """Returns the ports that host `own` can reach."""
    return json.loads(self.run(own, sys.executable, '-c', _CONNECT, address, json.dumps(ports)))

  def kill(self):
    self.signal(signal.SIGKILL)
    for process, _ in self._started:
      process.wait()


@pytest.fixture
def hosts(make_network, tmp_path):
  """`hosts(number)` -> the hosts, from 1."""
  with contextlib.ExitStack() as stack:

    def make(number):
      made = Hosts(make_network(number), tmp_path)
      stack.callback(made.kill)
      return made

    yield make


def test_no_port_of_a_run_on_one_machine_answers_another(hosts):
  here = hosts(2)
  for host, settings in (
    (1, ['--config.num_learner_hosts=2']),
    (2, ['--config.transport.kind=courier', '--config.replay.separate_process=True']),
  ):
    here.start(
      host,
      'train',
      '--config=catch_vtrace',
      f'--run_dir=run{host}',
      '--config.num_actors=2',
      '--config.environments_per_actor=8',
      *settings,
    )
  # Two each of Reverb, the exchange, and gRPC; Reverb's, and courier's, which listens on its own
  # machine only.
  both = here.ports(1, 6), here.ports(2, 2)
  here.signal(signal.SIGSTOP)  # the kernel alone answers who connects
  for host, other, ports in zip((1, 2), (2, 1), both):
    assert here.reached(host, '127.0.0.1', ports) == ports
    assert here.reached(other, here.addresses[host - 1], ports) == []


def test_ports_of_learners_on_two_hosts_answer_those_and_whom_they_admit(hosts, tmp_path):
  here = hosts(4)
  one, two, _, friend = here.addresses
  cluster = {
    'learner': [f'{one}:{_SERVING}', f'{two}:{_SERVING}'],
    'exchange': [f'{one}:8002', f'{two}:8002'],
    'actors': [one, two],
    'admit': [friend],
    'token': 'the-token-of-this-run',
  }
  (tmp_path / 'cluster.json').write_text(json.dumps(cluster))
  (tmp_path / 'cluster.json').chmod(0o600)
  settings = ('--cluster=cluster.json', '--config=catch_vtrace')
  here.start(1, 'node', 'learner', '--run_dir=run', *settings)
  here.start(2, 'node', 'learner', *settings)
  both = here.ports(1, 3), here.ports(2, 3)
  here.signal(signal.SIGSTOP)  # the kernel alone answers who connects
  for host, other, ports in zip((1, 2), (2, 1), both):
    assert {_SERVING, 8002} < set(ports)
    for admitted in (host, other, 4):
      assert here.reached(admitted, here.addresses[host - 1], ports) == ports
    assert here.reached(3, here.addresses[host - 1], ports) == [_SERVING]  # it asks for the token
