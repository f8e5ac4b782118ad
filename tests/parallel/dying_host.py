"""`python dying_host.py INDEX ADDRESS,ADDRESS FOLDER`: one of two learner hosts.

Host 1 dies when both are connected. Host 0 writes what it hears of that into `FOLDER/0`.
"""

import math
import os
import pathlib
import signal
import sys
import time

from seed_acme.parallel import collectives

_LATER_S = 2.0  # host 0 has called its operation by then


def main(index, addresses, folder):
  hosts = collectives.Group(int(index), addresses.split(','), timeout_s=1.0)
  hosts.connect(60.0, lambda: False)
  if int(index):
    time.sleep(_LATER_S)
    os.kill(os.getpid(), signal.SIGKILL)
  try:
    with hosts.watched():
      hosts.reports('here', math.inf)
  except collectives.HostLost as error:
    (pathlib.Path(folder) / index).write_text(f'{type(error).__name__}: {error}')


if __name__ == '__main__':
  main(*sys.argv[1:])
