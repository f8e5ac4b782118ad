"""One contract for both transports, and what gRPC alone promises: broken streams mend."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import time
import types as python_types

import grpc
import numpy as np
import psutil
import pytest

from seed_acme import core
from seed_acme.transport import grpc_client
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from tests.transport import contract
from tests.transport import serving

pytestmark = pytest.mark.timeout(120)


class TestCourier(contract.TransportContract):
  kind = 'courier'


class TestGrpc(contract.TransportContract):
  kind = 'grpc'

  def test_it_listens_on_this_machine_alone(self, rig):
    # A socket of both families shows an IPv4 address as `::ffff:127.0.0.1`.
    listening = {
      c.laddr.ip.removeprefix('::ffff:')
      for c in psutil.Process().connections('tcp')
      if c.status == psutil.CONN_LISTEN and c.laddr.port == rig.port
    }
    assert listening == {'127.0.0.1'}

  def test_a_proxy_of_the_machine_is_not_used(self, rig, monkeypatch):
    for name in ('http_proxy', 'https_proxy', 'grpc_proxy'):
      monkeypatch.setenv(name, 'http://127.0.0.1:9')
    for name in ('no_proxy', 'no_grpc_proxy'):
      monkeypatch.delenv(name, raising=False)
    channel = rig.connect(0, timeout_s=10)
    assert serving.ask(channel, serving.request(np.array([0], np.int32), 1)).tolist() == [1]

  def test_a_stream_survives_a_new_transport_on_the_same_desk(self, rig):
    rig.hold()
    channel, idle = rig.connect(0, 1), rig.connect(2)
    one = serving.request(np.array([0, 1], np.int32), 0)
    channel.send(one)
    receiving = rig.background(channel.receive)
    serving.eventually(lambda: rig.num_waiting() == 1)
    rig.stop_transport()
    serving.eventually(lambda: rig.num_waiting() == 0)
    rig.start()
    serving.eventually(lambda: rig.num_waiting() == 1)  # asked again
    rig.release()
    np.testing.assert_array_equal(receiving.result(serving.GUARD_S), serving.own_number(one))
    for number in (7, 8):
      assert serving.ask(idle, serving.request(np.array([2], np.int32), number)).tolist() == [
        2000 + number
      ]

  def test_a_server_that_was_there_and_went_is_waited_for_to_the_limit(self, rig):
    channel = rig.connect(0, patience=patience_lib.beside_learner(serving.ABSENT_S))
    serving.ask(channel, serving.request(np.array([0], np.int32), 0))
    rig.stop_transport()
    with pytest.raises(
      core.ServerLost, match=rf'{rig.port} for {serving.ABSENT_S} s.*connect_timeout_s'
    ):
      serving.ask(channel, serving.request(np.array([0], np.int32), 1))

  def test_the_limit_counts_from_the_last_of_several_losses(self, rig, monkeypatch):
    monkeypatch.setattr(grpc_client, '_LASTED_S', 0.5)
    channel = rig.connect(0, timeout_s=2.0)
    one = serving.request(np.array([0], np.int32), 0)
    rig.hold()
    channel.send(one)
    receiving = rig.background(channel.receive)
    for _ in range(3):  # together longer than the limit, all within one wait for a reply
      serving.eventually(lambda: rig.num_waiting() == 1)
      time.sleep(1.0)
      rig.stop_transport()
      rig.start()
    serving.eventually(lambda: rig.num_waiting() == 1)
    rig.release()
    np.testing.assert_array_equal(receiving.result(serving.GUARD_S), serving.own_number(one))

  def test_close_during_the_wait_for_a_lost_server_is_not_forgotten(self, rig, monkeypatch):
    channel = rig.connect(0)
    rig.stop_transport()

    def close_and_come_back(_: float) -> None:
      channel.close()
      if rig.transport is None:
        rig.start()

    monkeypatch.setattr(
      grpc_client,
      'time',
      python_types.SimpleNamespace(monotonic=time.monotonic, sleep=close_and_come_back),
    )
    with pytest.raises(core.ChannelClosed):
      serving.ask(channel, serving.request(np.array([0], np.int32), 0))

  def test_actors_of_a_server_that_ends_before_the_run_go_on_with_the_next_one(self, rig):
    rig.hold()
    channel, idle = rig.connect(0), rig.connect(1)
    one = serving.request(np.array([0], np.int32), 5)
    channel.send(one)
    receiving = rig.background(channel.receive)
    serving.eventually(lambda: rig.num_waiting() == 1)
    rig.batcher.close()  # and no `end_run`
    time.sleep(0.7)  # longer than a retry, which is told the same
    assert not receiving.done()
    rig.stop_transport()
    rig.reopen()
    with pytest.raises(core.ServerRestarted, match=str(rig.port)):
      receiving.result(serving.GUARD_S)
    with pytest.raises(core.ServerRestarted, match=str(rig.port)):
      serving.ask(idle, serving.request(np.array([1], np.int32), 0))

  def test_the_loser_of_a_fight_for_environments_is_told_so(self, rig):
    old = rig.connect(0, 1)
    rig.connect(1)
    with pytest.raises(core.ChannelTaken):
      serving.ask(old, serving.request(np.array([0, 1], np.int32), 0))

  def test_rows_and_connections_are_counted_over_reconnections(self, rig):
    for number in range(3):
      channel = rig.connect(3, 5)
      serving.ask(channel, serving.request(np.array([3, 5], np.int32), number))
      assert np.flatnonzero(rig.desk.is_connected()).tolist() == [3, 5]
      channel.close()
      serving.eventually(lambda: not rig.desk.is_connected().any())
    answered = rig.desk.num_answered()
    assert answered[[3, 5]].tolist() == [3, 3] and answered.sum() == 6

  def test_a_stream_whose_greeting_is_lost_is_opened_again(self, make_rig, monkeypatch, caplog):
    monkeypatch.setattr(grpc_client, '_GREETING_S', 0.5)
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
      time.sleep(1.2)  # two attempts that fail
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
    patience_s, num_attempts = 20.0, 0  # gRPC's own: 6 attempts, at first 1 s apart, then more
    enough = threading.Event()
    monkeypatch.setattr(
      grpc_client,
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

  def test_a_server_that_stays_away_is_an_error(self, rig):
    channel = rig.connect(0, timeout_s=serving.ABSENT_S)
    rig.stop_transport()
    with pytest.raises(ConnectionError, match='connect_timeout_s'):
      serving.ask(channel, serving.request(np.array([0], np.int32), 0))
