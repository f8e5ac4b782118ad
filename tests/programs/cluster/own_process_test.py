"""A node of a cluster in this process."""

import os
import signal
import subprocess
import sys

_SLOW_NODE = """
import subprocess, sys, types, time
from seed_acme.programs.cluster import membership, own_process

class Life(own_process.Life):
  def actor(self, node):
    program = subprocess.Popen(['sleep', '600'])
    print(program.pid, node.folder.path, flush=True)
    while True:
      time.sleep(0.1)

life = Life(types.SimpleNamespace(admitted=lambda: None))
with membership.local_folder() as folder:
  life.lived(types.SimpleNamespace(kind='actor', name='actor/0'), None, folder)
"""


def test_a_second_signal_kills_the_programs_and_removes_the_folder(until):
  with subprocess.Popen(
    [sys.executable, '-c', _SLOW_NODE], stdout=subprocess.PIPE, text=True
  ) as node:
    pid, folder = node.stdout.readline().split()
    assert os.path.isdir(folder)
    node.send_signal(signal.SIGTERM)
    assert node.poll() is None
    until(lambda: node.send_signal(signal.SIGTERM) or node.poll() is not None, 'the end', 30)
    assert node.returncode == 128 + signal.SIGTERM
  assert not os.path.exists(folder)
  until(lambda: not _runs(int(pid)), 'the end of its program', 10)


def _runs(pid):
  try:
    with open(f'/proc/{pid}/stat') as file:
      return file.read().rpartition(')')[2].split()[0] != 'Z'
  except FileNotFoundError:
    return False
