"""Network namespaces as hosts, connected by a switch that is a namespace, too."""

import contextlib
import os
import subprocess


def ip(*arguments):
  return subprocess.run(['ip', *arguments], capture_output=True, text=True)


def must(*arguments):
  done = ip(*arguments)
  assert done.returncode == 0, f'ip {" ".join(arguments)}: {done.stderr}'


class Network:
  """Hosts 1 ... n at 10.77.0.1 ... n, each on a port of a switch that is a namespace, too."""

  def __init__(self, number):
    self._prefix = f'seedacme{os.getpid()}'
    self._switch = f'{self._prefix}s'
    self.hosts = [f'{self._prefix}h{i}' for i in range(1, number + 1)]

  def make(self):
    must('netns', 'add', self._switch)
    must('-n', self._switch, 'link', 'add', 'switch', 'type', 'bridge')
    must('-n', self._switch, 'link', 'set', 'switch', 'up')
    for i, host in enumerate(self.hosts, start=1):
      must('netns', 'add', host)
      must(
        '-n',
        host,
        'link',
        'add',
        'eth0',
        'type',
        'veth',
        'peer',
        'name',
        f'port{i}',
        'netns',
        self._switch,
      )
      must('-n', self._switch, 'link', 'set', f'port{i}', 'master', 'switch', 'up')
      must('-n', host, 'addr', 'add', f'{self.address(i)}/24', 'dev', 'eth0')
      must('-n', host, 'link', 'set', 'eth0', 'up')
      must('-n', host, 'link', 'set', 'lo', 'up')

  def address(self, i):
    return f'10.77.0.{i}'

  def set_link(self, i, state):
    """Sets a link at the switch, so that the host does not notice."""
    must('-n', self._switch, 'link', 'set', f'port{i}', state)

  def signal(self, i, number):
    """Sends a signal to every process on a host."""
    for pid in ip('netns', 'pids', self.hosts[i - 1]).stdout.split():
      with contextlib.suppress(ProcessLookupError):
        os.kill(int(pid), number)

  def remove(self):
    for name in (*self.hosts, self._switch):
      ip('netns', 'del', name)
