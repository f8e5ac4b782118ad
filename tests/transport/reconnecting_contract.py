"""The contract of transports that reconnect: broken connections recover."""

from __future__ import annotations

import re
import time
import types as python_types

import numpy as np
import pytest

from seed_acme import core
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import reconnecting
from tests.transport import contract
from tests.transport import serving


class ReconnectingContract(contract.TransportContract):
  """The contract of gRPC and of Unix sockets."""

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
    serving.eventually(lambda: rig.num_waiting() == 1)  # the request is repeated
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
      core.ServerLost,
      match=rf'{re.escape(str(rig.port))} for {serving.ABSENT_S} s.*connect_timeout_s',
    ):
      serving.ask(channel, serving.request(np.array([0], np.int32), 1))

  def test_the_limit_counts_from_the_last_of_several_losses(self, rig, monkeypatch):
    # a simulated clock, so that a slow machine causes no time-out
    clock = python_types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(
      reconnecting,
      'time',
      python_types.SimpleNamespace(monotonic=lambda: clock.now, sleep=time.sleep),
    )
    channel = rig.connect(0, timeout_s=2 * reconnecting._LASTED_S)
    one = serving.request(np.array([0], np.int32), 0)
    rig.hold()
    channel.send(one)
    receiving = rig.background(channel.receive)
    for _ in range(3):  # together longer than the limit, during one wait for a reply
      serving.eventually(lambda: rig.num_waiting() == 1)
      clock.now += 1.5 * reconnecting._LASTED_S
      rig.stop_transport()
      serving.eventually(lambda: rig.num_waiting() == 0)
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
      reconnecting,
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
    time.sleep(0.7)  # longer than a retry, which gets the same answer
    assert not receiving.done()
    rig.stop_transport()
    rig.reopen()
    with pytest.raises(core.ServerRestarted, match=re.escape(str(rig.port))):
      receiving.result(serving.GUARD_S)
    with pytest.raises(core.ServerRestarted, match=re.escape(str(rig.port))):
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

  def test_a_server_that_stays_away_is_an_error(self, rig):
    channel = rig.connect(0, timeout_s=serving.ABSENT_S)
    rig.stop_transport()
    with pytest.raises(ConnectionError, match='connect_timeout_s'):
      serving.ask(channel, serving.request(np.array([0], np.int32), 0))
