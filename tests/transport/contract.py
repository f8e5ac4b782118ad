"""The contract of all transports with an actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import socket
import threading
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import wire
from tests import ports
from tests.transport import serving


class TransportContract:
  """The contract of all transports with an actor."""

  kind: str

  @pytest.fixture
  def make_rig(self) -> Iterator[Callable[..., serving.Rig]]:
    with contextlib.ExitStack() as stack:

      def make(**settings: Any) -> serving.Rig:
        rig = serving.Rig(self.kind, **settings)
        stack.callback(rig.stop)
        return rig

      yield make

  @pytest.fixture
  def rig(self, make_rig) -> serving.Rig:
    return make_rig().start()

  def ask_alone(self, rig: serving.Rig, channel: core.InferenceChannel, env_ids: list[int]) -> None:
    """Asks when a batch waits without limit, which shows that it waits for no other caller."""
    one = serving.request(np.array(env_ids, np.int32), 8, step_type=types.MID)
    asking = rig.background(serving.ask, channel, one)
    np.testing.assert_array_equal(asking.result(serving.GUARD_S), serving.own_number(one))

  def test_every_caller_gets_its_own_replies(self, rig):
    groups = [np.arange(3 * i, 3 * i + 1 + i % 3, dtype=np.int32) for i in range(8)]

    def play(env_ids: np.ndarray) -> None:
      channel = rig.connect(*env_ids.tolist())
      for number in range(25):
        one = serving.request(env_ids, number)
        np.testing.assert_array_equal(serving.ask(channel, one), serving.own_number(one))

    for played in [rig.background(play, env_ids) for env_ids in groups]:
      played.result(serving.GUARD_S)

  def test_the_request_arrives_whole(self, make_rig):
    arrived = []
    rig = make_rig(answer=lambda one: arrived.append(one) or serving.own_number(one)).start()
    channel = rig.connect(5, 3)
    sent = serving.request(np.array([5, 3], np.int32), 2**40)
    sent.timestep.observation[:] = [[1.5, -2.0], [0.25, np.inf]]
    serving.ask(channel, sent)
    [got] = arrived
    assert got.request_number == sent.request_number
    for field, value in (*zip(sent._fields[1:3], sent[1:3]), *sent.timestep._asdict().items()):
      found = getattr(got, field, None)
      found = getattr(got.timestep, field) if found is None else found
      np.testing.assert_array_equal(found, value)

  def test_megabytes_pass(self, make_rig):
    spec = types.EnvironmentSpec(dm_specs.Array((3_000_000,), np.uint8), serving.SPEC.action)
    rig = make_rig(spec=spec, answer=lambda one: one.timestep.observation[:, -1].astype('i4'))
    channel = rig.start().connect(0, 1)
    assert serving.ask(channel, serving.request(np.array([0, 1], np.int32), 0, spec)).tolist() == [
      1,
      1,
    ]

  def test_a_refusal_reaches_its_caller_with_its_text_and_the_others_go_on(self, make_rig):
    def answer(one: types.ActorRequest) -> batching.Reply:
      return (
        batching.Refusal('environment 0 – nein') if 0 in one.env_ids else serving.own_number(one)
      )

    rig = make_rig(answer=answer).start()
    refused, other = rig.connect(0), rig.connect(1)
    other.send(serving.request(np.array([1], np.int32), 0))
    with pytest.raises(core.Refused, match='environment 0 – nein'):
      serving.ask(refused, serving.request(np.array([0], np.int32), 0))
    assert other.receive().tolist() == [1000]

  @pytest.mark.parametrize('token', ['', 'wrong'])
  def test_a_wrong_token_is_turned_away(self, make_rig, token):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    with pytest.raises(core.Refused, match='token'):
      rig.connect(0, token=token)
    self.ask_alone(rig, rig.connect(1), [1])

  def test_another_environment_is_turned_away_by_name(self, rig):
    other = types.EnvironmentSpec(dm_specs.Array((3,), np.float32), serving.SPEC.action)
    with pytest.raises(core.Refused, match='observation'):
      rig.connect(0, spec=other)
    with pytest.raises(core.Refused, match='0 ... 63'):
      rig.connect(64)

  def test_an_actor_waits_for_a_server_that_is_not_up_yet(self, make_rig):
    rig = make_rig(port=ports.unused())
    connecting = rig.background(rig.connect, 0)
    with pytest.raises(futures.TimeoutError):
      connecting.result(0.7)  # longer than a retry
    rig.start()
    assert serving.ask(
      connecting.result(serving.GUARD_S), serving.request(np.array([0], np.int32), 4)
    ).tolist() == [4]

  def test_an_actor_does_not_wait_for_ever(self, make_rig):
    rig = make_rig(port=ports.unused())
    with pytest.raises(ConnectionError, match='connect_timeout_s'):
      rig.connect(0, timeout_s=serving.ABSENT_S)

  def test_beside_the_learner_the_limit_is_not_one_for_its_start(self, make_rig):
    rig = make_rig(port=ports.unused())
    patience = patience_lib.beside_learner(serving.ABSENT_S)
    connecting = rig.background(lambda: rig.connect(0, patience=patience))
    with pytest.raises(futures.TimeoutError):
      connecting.result(1.5)  # longer than the limit and two retries
    rig.start()
    assert serving.ask(
      connecting.result(serving.GUARD_S), serving.request(np.array([0], np.int32), 4)
    ).tolist() == [4]

  def test_a_wait_without_limit_can_be_stopped(self, make_rig):
    rig, stop = make_rig(port=ports.unused()), threading.Event()
    patience = patience_lib.beside_learner(serving.ABSENT_S, stop.is_set)
    connecting = rig.background(lambda: rig.connect(0, patience=patience))
    stop.set()
    with pytest.raises(core.ChannelClosed):
      connecting.result(serving.GUARD_S)

  def test_close_from_another_thread_ends_a_waiting_receive(self, rig):
    rig.hold()
    channel = rig.connect(0)
    channel.send(serving.request(np.array([0], np.int32), 0))
    receiving = rig.background(channel.receive)
    serving.eventually(lambda: rig.num_waiting() == 1)
    channel.close()
    with pytest.raises(core.ChannelClosed):
      receiving.result(serving.GUARD_S)
    serving.eventually(lambda: rig.num_waiting() == 0)  # its pending request is dropped

  def test_close_between_two_requests_ends_the_next_receive(self, rig):
    channel = rig.connect(0)
    serving.ask(channel, serving.request(np.array([0], np.int32), 0))
    channel.close()
    with pytest.raises(core.ChannelClosed):
      serving.ask(channel, serving.request(np.array([0], np.int32), 1))

  def test_a_closed_channel_is_no_longer_waited_for(self, make_rig):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    first, second = rig.connect(0), rig.connect(1)
    asking = rig.background(serving.ask, second, serving.request(np.array([1], np.int32), 0))
    with pytest.raises(futures.TimeoutError):
      asking.result(0.3)  # the other actor may send a request, too
    first.close()
    first.close()
    assert asking.result(serving.GUARD_S).tolist() == [1000]
    third = rig.connect(2)
    asking = rig.background(serving.ask, third, serving.request(np.array([2], np.int32), 0))
    with pytest.raises(futures.TimeoutError):
      asking.result(0.3)  # closing the first twice removes only one caller
    second.close()
    assert asking.result(serving.GUARD_S).tolist() == [2000]

  def test_closing_while_a_reply_is_under_way_harms_nobody(self, rig):
    other = rig.connect(63)
    for number in range(30):
      channel = rig.connect(0)
      channel.send(serving.request(np.array([0], np.int32), number))
      channel.close()
      one = serving.request(np.array([63], np.int32), number)
      np.testing.assert_array_equal(serving.ask(other, one), serving.own_number(one))
    serving.eventually(lambda: np.flatnonzero(rig.desk.is_connected()).tolist() == [63])

  def test_a_new_channel_takes_over_the_environments_of_an_old_one(self, rig):
    rig.hold()
    old = rig.connect(0, 1)
    old.send(serving.request(np.array([0, 1], np.int32), 0))
    receiving = rig.background(old.receive)
    serving.eventually(lambda: rig.num_waiting() == 1)
    new = rig.connect(0, 1)
    with pytest.raises(core.ChannelClosed):
      receiving.result(serving.GUARD_S)
    rig.release()
    one = serving.request(np.array([0, 1], np.int32), 3)
    np.testing.assert_array_equal(serving.ask(new, one), serving.own_number(one))

  def test_an_actor_that_was_replaced_does_not_take_its_environments_back(self, make_rig):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    old = rig.connect(0, 1, start=wire.Start(1_000, 3))
    new = rig.connect(0, 1, start=wire.Start(2_000, 0))
    one = serving.request(np.array([0, 1], np.int32), 7)
    np.testing.assert_array_equal(serving.ask(new, one), serving.own_number(one))
    old.close()
    # after a disconnection, or its worker's restart
    back = rig.connect(0, 1, start=wire.Start(1_000, 4))
    with pytest.raises(core.ChannelTaken):
      serving.ask(back, one)
    self.ask_alone(rig, new, [0, 1])

  def test_the_end_of_the_run_ends_its_actors(self, rig):
    rig.hold()
    waiting, idle = rig.connect(0), rig.connect(1)
    waiting.send(serving.request(np.array([0], np.int32), 0))
    receiving = rig.background(waiting.receive)
    serving.eventually(lambda: rig.num_waiting() == 1)
    rig.desk.end_run()
    rig.batcher.close()
    with pytest.raises(core.ChannelClosed):
      receiving.result(serving.GUARD_S)
    with pytest.raises(core.ChannelClosed):
      serving.ask(idle, serving.request(np.array([1], np.int32), 0))
    waiting.close()
    idle.close()
    rig.desk.wait_until_all_left(serving.GUARD_S)
    assert not rig.desk.is_connected().any()
    rig.stop_transport()

  def test_a_port_in_use_is_the_users_error(self, rig, make_rig):
    with socket.socket() as taken:
      taken.bind(('127.0.0.1', 0))
      taken.listen()
      ports = [rig.port] if self.kind == 'unix' else [rig.port, taken.getsockname()[1]]
      for port in ports:
        with pytest.raises(types.UserError, match=f'{port}.*in use'):
          make_rig(port=port).start()

  def test_several_servers_at_once(self, make_rig):
    rigs = [
      make_rig(token=f'token {i}', answer=lambda one, i=i: np.full(1, i, np.int32)).start()
      for i in range(3)
    ]
    assert len({rig.port for rig in rigs}) == 3
    channels = [rig.connect(0) for rig in rigs]
    for channel in channels:
      channel.send(serving.request(np.array([0], np.int32), 0))
    assert [channel.receive().tolist() for channel in channels] == [[0], [1], [2]]
    with pytest.raises(core.Refused, match='token'):
      rigs[0].connect(1, port=rigs[1].port)
