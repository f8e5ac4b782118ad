"""Fixtures of the replay tests: distinguishable unrolls, and tables for them."""

import threading

import numpy as np
import pytest
import tree

from seed_acme import core
from seed_acme import types
from seed_acme.replay import server as server_lib
from tests.replay import table_server

_NUM_ROWS = 3


def _coded_unrolls(first, number):
  """Returns unrolls `first` ... `first + number - 1`, leaves `[number, L, ...]`.

  Every number encodes its unroll, row and field; `policy_version` is `100 * unroll + row`.
  """
  index = np.arange(first, first + number)
  code = index[:, None] * 100 + np.arange(_NUM_ROWS)  # [K, L]
  deep = code[..., None] * 10 + np.arange(2)  # [K, L, 2]
  inputs = types.AgentInput(
    step_type=(code % 3).astype(np.uint8),
    reward=code.astype(np.float32),
    discount=(code / 7).astype(np.float32),
    previous_action=(code + 1).astype(np.int32),
    observation={
      'flat': deep.astype(np.float32),
      'image': np.repeat(deep[..., None] % 251, 4, axis=-1).astype(np.uint8),
    },
  )
  outputs = types.AgentOutput(
    action=(code + 2).astype(np.int32),
    prediction=types.ActorCriticOutput(
      deep.astype(np.float32) + 0.5, code.astype(np.float32) - 0.5
    ),
  )
  state = np.repeat(index[:, None], 4, axis=1).astype(np.float32)
  return types.Unroll((state, -state), inputs, outputs, code.astype(np.int64))


@pytest.fixture
def coded_unrolls():
  """`coded_unrolls(first, number)`: see above."""
  return _coded_unrolls


@pytest.fixture
def serve():
  """`serve(queue_size, unrolls_per_item)`: a queue for such unrolls, stopped after the test."""
  servers = []

  def start(queue_size, unrolls_per_item):
    example = tree.map_structure(lambda x: x[0], _coded_unrolls(0, 1))
    servers.append(
      server_lib.ReplayServer(core.ReplaySpec(), 4, queue_size, unrolls_per_item, example, port=0)
    )
    return servers[-1]

  yield start
  for server in servers:
    server.stop()


@pytest.fixture
def iterate():
  """`iterate(samples)`: like `iter`, but the iterator is deleted in a thread of its own.

  Within the server's process Reverb waits at the table in periods of 3 s, and deleting the iterator
  waits for the end of one.
  """
  iterators = []

  def begin(samples):
    iterators.append(iter(samples))
    return iterators[-1]

  yield begin
  threading.Thread(target=iterators.clear, daemon=True).start()


@pytest.fixture
def serve_tables():
  served = []

  def start(table):
    served.append(table_server.Served(table))
    return served[-1]

  yield start
  for one in served:
    one.stop()
