"""The hosts that reach a replay server, simulated as in `tests/transport/fence_test.py`."""

import socket

import portpicker
import pytest
import reverb
import tree

from seed_acme import core
from seed_acme.replay import server as server_lib
from seed_acme.transport import fence as fence_lib


def test_strangers_are_not_answered_and_the_learner_is(coded_unrolls, monkeypatch):
  monkeypatch.setattr(fence_lib, '_LOOPBACK_INTERFACE', 1 << 20)
  example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
  fence = fence_lib.Fence(('127.0.0.1', '::1'))
  server = server_lib.ReplayServer(core.ReplaySpec(), 4, 8, 1, example, port=0, fence=fence)
  port = int(server.address.rpartition(':')[2])
  try:
    with pytest.raises(TimeoutError):
      socket.create_connection(('127.0.0.1', port), 0.3, ('127.0.0.2', 0))
    assert 'unrolls' in reverb.Client(f'127.0.0.1:{port}').server_info(timeout=20)
  finally:
    server.stop()


def test_names_are_looked_up_before_it_listens(coded_unrolls):
  example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
  port, listened = portpicker.pick_unused_port(), []

  class Asked(fence_lib.Fence):
    def look_up(self):
      with socket.socket() as caller:
        listened.append(caller.connect_ex(('127.0.0.1', port)) == 0)
      return super().look_up()

  server = server_lib.ReplayServer(core.ReplaySpec(), 4, 8, 1, example, port=port, fence=Asked())
  server.stop()
  assert listened == [False]
