"""`python exchanging_host.py INDEX ADDRESS,ADDRESS FOLDER`: one of several learner hosts.

It writes each operation's result to `FOLDER/INDEX.json`, and how host 0 reacts to a host 1 that is
slow, and at last to one that hangs.
"""

import contextlib
import json
import os
import pathlib
import socket
import sys
import threading
import time
from unittest import mock

import numpy as np
import tensorflow as tf

from seed_acme.parallel import collectives
from seed_acme.tensors import graph_function
from seed_acme.transport import fence as fence_lib

TIMEOUT_S = 3.0
CONNECT_S = 1.0


def _leaves(index):
  """Returns arrays of several types and ranks, one with a batch axis that is not the first."""
  rng = np.random.default_rng(index)
  return [
    rng.integers(0, 255, (2, 3), dtype=np.uint8),
    rng.normal(size=(4, 2, 3)).astype(np.float32),
    rng.normal(size=(3,)),
    np.array([True, False, True]) ^ bool(index),
    rng.integers(0, 2**63, (3,), dtype=np.uint64),
  ]


AXES = (1, 1, 0, 0, 0)


def expected(num_hosts):
  """Returns the expected result of `joined`."""
  parts = zip(*(_leaves(index) for index in range(num_hosts)))
  return [np.concatenate(part, axis=axis) for part, axis in zip(parts, AXES)]


def exchange(hosts):
  specs = [tf.TensorSpec(x.shape, x.dtype) for x in _leaves(0)]
  join = graph_function.GraphFunction(lambda *leaves: hosts.joined(leaves, AXES), tuple(specs))
  mean = graph_function.GraphFunction(
    lambda x, y: hosts.mean([x, y]),
    (tf.TensorSpec([2, 2], tf.float32), tf.TensorSpec([], tf.float32)),
  )
  joined = hosts.timed_function(join)(*_leaves(hosts.index))
  means = mean(np.full((2, 2), hosts.index, np.float32), np.float32(10 * hosts.index))
  own = [np.array(7.0 + hosts.index), np.arange(6, dtype=np.int64).reshape(2, 3) + hosts.index]
  facts = [hosts.facts([hosts.index, 5]), hosts.facts([2**40 + hosts.index])]
  reports = [hosts.reports({'of': hosts.index, 'text': 'ä' * 1000 * hosts.index}), hosts.reports(1)]
  before = len(os.listdir('/proc/self/task'))
  for _ in range(300):
    hosts.facts([0])
  return {
    'joined': [x.numpy().tolist() for x in joined],
    'types': [x.dtype.name for x in joined],
    'means': [x.numpy().tolist() for x in means],
    'facts': [x.tolist() for x in facts],
    'reports': reports,
    'of_chief': [x.tolist() for x in hosts.of_chief(own)],
    'more_threads': len(os.listdir('/proc/self/task')) - before,
  }


def survive(hosts, timeout_s=None):
  """Returns host 0's error when the other host is late."""
  if hosts.index:
    time.sleep(2 * TIMEOUT_S)
    with contextlib.suppress(collectives.HostLost), hosts.watched():  # host 0 has given it up
      hosts.facts([1])
    return None
  try:
    with hosts.watched():
      hosts.facts([1], timeout_s=timeout_s)
  except collectives.HostLost as error:
    return str(error)
  return 'answered'


def reaches(port, source):
  try:
    socket.create_connection(('127.0.0.1', port), CONNECT_S, (source, 0)).close()
  except TimeoutError:
    return False
  return True


def main(index, addresses, folder):
  # The loopback interface gets another number, so that 127.0.0.3 counts as another host.
  mock.patch.object(fence_lib, '_LOOPBACK_INTERFACE', 1 << 20).start()
  fence = fence_lib.Fence(('127.0.0.1',))
  hosts = collectives.Group(int(index), addresses.split(','), TIMEOUT_S, fence)
  hosts.connect(60.0, lambda: False)
  hosts.facts([0], timeout_s=60.0)
  own_port = int(addresses.split(',')[int(index)].rpartition(':')[2])
  reached = {source: reaches(own_port, source) for source in ('127.0.0.1', '127.0.0.3')}
  found = {**exchange(hosts), 'reached': reached}
  found['of_slow'] = survive(hosts, timeout_s=10 * TIMEOUT_S)
  found['of_hanging'] = survive(hosts)
  (pathlib.Path(folder) / f'{index}.json').write_text(json.dumps(found))
  threading.Event().wait(1.0)  # the other host may still be reading this one's values


if __name__ == '__main__':
  main(*sys.argv[1:])
