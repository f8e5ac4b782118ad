"""Scripts that run as the learner hosts of a run, each in a process of its own."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys

_ROOT = str(pathlib.Path(__file__).resolve().parents[1])  # for scripts that import from `tests`

_HOST = '127.0.0.2'  # this machine, under an address that only another host would have


def run(script, arguments, num_hosts=2, timeout_s=300, may_fail=(), environment=None):
  """Runs `python script INDEX ADDRESSES *arguments` for each host.

  arguments: of the script after these two. may_fail: hosts whose exit code is not checked.
  environment: additional variables for them.
  """
  with contextlib.ExitStack() as kept:
    sockets = [kept.enter_context(socket.socket()) for _ in range(num_hosts)]
    for one in sockets:
      one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      one.bind(('', 0))
    addresses = ','.join(f'{_HOST}:{one.getsockname()[1]}' for one in sockets)
    hosts = [
      subprocess.Popen(
        [sys.executable, str(script), str(index), addresses, *map(str, arguments)],
        env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'PYTHONPATH': _ROOT, **(environment or {})},
      )
      for index in range(num_hosts)
    ]
    try:
      codes = [host.wait(timeout_s) for host in hosts]
    finally:
      for host in hosts:
        host.kill()
        host.wait()
  assert not {i: code for i, code in enumerate(codes) if code and i not in may_fail}
