"""One contract for all transports, and properties of gRPC alone."""

from __future__ import annotations

import contextlib
import gc
import re
import socket
import threading
import time
import types as python_types

import grpc
import numpy as np
import psutil
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.transport import reconnecting
from seed_acme.transport import sessions
from tests.transport import contract
from tests.transport import reconnecting_contract
from tests.transport import serving

pytestmark = pytest.mark.timeout(120)


def _listens_at(port):
  # A socket of both families shows an IPv4 address as `::ffff:127.0.0.1`.
  return {
    c.laddr.ip.removeprefix('::ffff:')
    for c in psutil.Process().connections('tcp')
    if c.status == psutil.CONN_LISTEN and c.laddr.port == port
  }


class TestCourier(contract.TransportContract):
  kind = 'courier'

  def test_it_listens_on_this_machine_alone(self, rig):
    addresses = _listens_at(rig.port)
    assert addresses and addresses <= {'127.0.0.1', '::1'}

  @pytest.mark.parametrize('host', ['0.0.0.0', '[::]', '192.0.2.1', 'learner.example'])
  def test_it_is_not_opened_to_other_machines(self, make_rig, monkeypatch, host):
    monkeypatch.setenv('COURIER_HOST', host)
    with pytest.raises(types.UserError, match=f'COURIER_HOST is {re.escape(host)}.*unset'):
      make_rig().start()

  @pytest.mark.parametrize('host', ['', 'localhost', '127.0.0.1'])
  def test_it_may_be_told_to_listen_on_this_machine(self, make_rig, monkeypatch, host):
    monkeypatch.setenv('COURIER_HOST', host)
    addresses = _listens_at(make_rig().start().port)
    assert addresses and addresses <= {'127.0.0.1', '::1'}

  def test_the_loss_of_the_server_is_heard_of_at_once(self, make_rig):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    channel = rig.connect(0, timeout_s=serving.NEVER_S)  # whatever its time-out is
    rig.hold()
    receiving = rig.background(serving.ask, channel, serving.request(np.array([0], np.int32), 0))
    serving.eventually(lambda: rig.num_waiting() == 1)
    rig.stop_transport()
    with pytest.raises(core.ServerLost, match='was lost'):
      receiving.result(serving.GUARD_S)


class TestGrpc(reconnecting_contract.ReconnectingContract):
  kind = 'grpc'

  def test_it_listens_on_this_machine_alone(self, rig):
    assert _listens_at(rig.port) == {'127.0.0.1'}

  def test_a_proxy_of_the_machine_is_not_used(self, rig, monkeypatch):
    for name in ('http_proxy', 'https_proxy', 'grpc_proxy'):
      monkeypatch.setenv(name, 'http://127.0.0.1:9')
    for name in ('no_proxy', 'no_grpc_proxy'):
      monkeypatch.delenv(name, raising=False)
    channel = rig.connect(0, timeout_s=10)
    assert serving.ask(channel, serving.request(np.array([0], np.int32), 1)).tolist() == [1]

  @pytest.mark.slow
  def test_lost_streams_are_not_left_to_the_garbage_collector(self, rig):
    channel = rig.connect(0)
    one = serving.request(np.array([0], np.int32), 0)
    serving.ask(channel, one)
    gc.collect()
    gc.disable()
    try:
      rig.hold()
      receiving = rig.background(serving.ask, channel, one)
      serving.eventually(lambda: rig.num_waiting() == 1)
      rig.stop_transport()
      time.sleep(1.2)  # two failing attempts
      rig.start()
      rig.release()
      receiving.result(serving.GUARD_S)
      del receiving
      streams = [
        o for o in gc.get_objects() if isinstance(o, grpc.RpcError) and isinstance(o, grpc.Future)
      ]
      assert len(streams) == 1, streams
    finally:
      gc.enable()

  def test_channels_of_one_process_do_not_slow_each_others_attempts(self, make_rig, monkeypatch):
    patience_s, num_attempts = 20.0, 0  # gRPC's own policy: 6 attempts, first 1 s apart, then more
    enough = threading.Event()
    monkeypatch.setattr(
      reconnecting,
      'time',
      python_types.SimpleNamespace(
        monotonic=lambda: time.monotonic() + patience_s * enough.is_set(),
        sleep=lambda _: time.sleep(0.02),
      ),
    )
    rig = make_rig()
    with socket.socket() as listener:
      listener.bind(('127.0.0.1', 0))
      listener.listen()
      listener.settimeout(1.0)
      rig.port = listener.getsockname()[1]
      connecting = [
        rig.background(lambda i=i: rig.connect(i, timeout_s=patience_s)) for i in range(4)
      ]
      while num_attempts < 40 and not all(one.done() for one in connecting):
        with contextlib.suppress(TimeoutError):
          listener.accept()[0].close()
          num_attempts += 1
      enough.set()
    for one in connecting:
      with pytest.raises(ConnectionError):
        one.result(serving.GUARD_S)
    assert num_attempts == 40

  @pytest.mark.slow
  def test_a_stream_whose_greeting_is_lost_is_opened_again(self, make_rig, monkeypatch, caplog):
    monkeypatch.setattr(reconnecting, 'GREETING_S', 0.5)
    rig = make_rig()
    opened, let_go = [], threading.Event()
    open_session = rig.desk.open

    def lose_the_first(hello: bytes) -> sessions.Session:
      opened.append(hello)
      if len(opened) == 1:
        let_go.wait(serving.GUARD_S)
        raise ValueError
      return open_session(hello)

    monkeypatch.setattr(rig.desk, 'open', lose_the_first)
    connecting = rig.start().background(rig.connect, 0)
    try:
      channel = connecting.result(serving.GUARD_S / 2)
    finally:
      let_go.set()
    assert 'silent for 0.5 s' in caplog.text
    assert serving.ask(channel, serving.request(np.array([0], np.int32), 3)).tolist() == [3]
