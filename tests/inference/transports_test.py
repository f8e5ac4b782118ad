"""One contract for both transports, and what gRPC alone promises: broken streams mend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import gc
import socket
import threading
import time
import types as python_types
from typing import Any

from dm_env import specs as dm_specs
import grpc
import numpy as np
import portpicker
import psutil
import pytest

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import counting
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import grpc_transport
from seed_acme.inference import membership as membership_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import sessions
from seed_acme.inference import transports
from seed_acme.inference import wire

pytestmark = pytest.mark.timeout(120)

SPEC = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(2, dtype=np.int32)
)
NUM_ENVIRONMENTS = 64
GUARD_S = 60.0  # against a hang; nothing takes this long
ABSENT_S = 0.2  # `connect_timeout_s` where nobody will answer
NOTICED_S = 12.0  # keepalive takes 5 s; the rest is for a busy machine

Answer = Callable[[types.ActorRequest], batching.Reply]


def eventually(condition: Callable[[], bool]) -> None:
  give_up = time.monotonic() + GUARD_S
  while not condition():
    assert time.monotonic() < give_up, 'it never came true'
    time.sleep(0.005)


def request(
  env_ids: np.ndarray, number: int, spec: types.EnvironmentSpec = SPEC, step_type: int = types.FIRST
) -> types.ActorRequest:
  n = env_ids.size
  zeros = np.zeros(n, np.float32)
  observation = np.ones((n, *spec.observation.shape), spec.observation.dtype)
  return types.ActorRequest(
    number,
    env_ids,
    np.ones(n, np.int64),
    types.VectorTimeStep(np.full(n, step_type, np.uint8), zeros, zeros, observation, zeros),
  )


def own_number(one: types.ActorRequest) -> np.ndarray:
  """An action that tells whose request it answers."""
  return (1000 * one.env_ids + one.request_number).astype(np.int32)


class Rig:
  """A server of one transport whose batches are answered by `answer`; starts when told."""

  def __init__(
    self,
    kind: str,
    answer: Answer = own_number,
    port: int = 0,
    spec: types.EnvironmentSpec = SPEC,
    token: str = 'secret',
  ):
    self.kind, self.spec, self.token, self.port = kind, spec, token, port
    self.has_room = True
    self.answer = answer
    self.batcher = batching.Batcher(16, 0.001, lambda: self.has_room, lambda _: False)
    self.desk = sessions.SessionDesk(self.batcher, spec, NUM_ENVIRONMENTS, NUM_ENVIRONMENTS, token)
    self.membership = membership_lib.Membership({'actor': {'seed': '1'}, 'replay': {}}, 2)
    self.transport: transports.TransportServer | None = None
    self._pool = futures.ThreadPoolExecutor(16)
    self._is_over = False
    self._pool.submit(self._serve)
    self._channels: list[core.InferenceChannel] = []

  def start(self) -> Rig:
    self.transport = transports.serve(
      config_lib.TransportConfig(kind=self.kind), self.desk, self.port, 32, self.membership
    )
    self.port = self.transport.port
    self.transport.start()
    return self

  def _serve(self) -> None:
    while not self._is_over:
      for pending in self.batcher.next_batch(0.02):
        pending.answer(self.answer(pending.request))

  def connect(
    self,
    *env_ids: int,
    token: str | None = None,
    port: int | None = None,
    spec: types.EnvironmentSpec | None = None,
    timeout_s: float = GUARD_S,
  ) -> core.InferenceChannel:
    channel = transports.connect(
      self.kind,
      f'127.0.0.1:{port or self.port}',
      self.token if token is None else token,
      wire.GroupCodec(spec or self.spec, len(env_ids)),
      np.array(env_ids, np.int32),
      timeout_s,
    )
    self._channels.append(channel)
    return channel

  def background(self, function: Callable[..., Any], *arguments: Any) -> futures.Future:
    return self._pool.submit(function, *arguments)

  def hold(self) -> None:
    """Requests wait until `release`."""
    self.has_room = False

  def release(self) -> None:
    self.has_room = True
    self.batcher.wake()

  def num_waiting(self) -> int:
    return len(self.batcher._pending)

  def reopen(self) -> None:
    """Another server takes the place of one that has ended, as after a restart."""
    self.batcher = batching.Batcher(16, 0.001, lambda: True, lambda _: False)
    self.desk = sessions.SessionDesk(
      self.batcher, self.spec, NUM_ENVIRONMENTS, NUM_ENVIRONMENTS, self.token
    )
    self.start()

  def stop_transport(self) -> None:
    if self.transport is not None:
      self.transport.stop()
      self.transport = None

  def stop(self) -> None:
    self._is_over = True
    self.batcher.close()
    for channel in self._channels:
      channel.close()
    self.stop_transport()
    self._pool.shutdown()


def ask(channel: core.InferenceChannel, one: types.ActorRequest) -> types.Nest:
  channel.send(one)
  return channel.receive()


class TransportContract:
  """What an actor may rely on, whatever carries its messages."""

  kind: str

  @pytest.fixture
  def make_rig(self) -> Iterator[Callable[..., Rig]]:
    with contextlib.ExitStack() as stack:

      def make(**settings: Any) -> Rig:
        rig = Rig(self.kind, **settings)
        stack.callback(rig.stop)
        return rig

      yield make

  @pytest.fixture
  def rig(self, make_rig) -> Rig:
    return make_rig().start()

  def test_every_caller_gets_its_own_replies(self, rig):
    groups = [np.arange(3 * i, 3 * i + 1 + i % 3, dtype=np.int32) for i in range(8)]

    def play(env_ids: np.ndarray) -> None:
      channel = rig.connect(*env_ids.tolist())
      for number in range(25):
        one = request(env_ids, number)
        np.testing.assert_array_equal(ask(channel, one), own_number(one))

    for played in [rig.background(play, env_ids) for env_ids in groups]:
      played.result(GUARD_S)

  def test_the_request_arrives_whole(self, make_rig):
    arrived = []
    rig = make_rig(answer=lambda one: arrived.append(one) or own_number(one)).start()
    channel = rig.connect(5, 3)
    sent = request(np.array([5, 3], np.int32), 2**40)
    sent.timestep.observation[:] = [[1.5, -2.0], [0.25, np.inf]]
    ask(channel, sent)
    [got] = arrived
    assert got.request_number == sent.request_number
    for field, value in (*zip(sent._fields[1:3], sent[1:3]), *sent.timestep._asdict().items()):
      found = getattr(got, field, None)
      found = getattr(got.timestep, field) if found is None else found
      np.testing.assert_array_equal(found, value)

  def test_megabytes_pass(self, make_rig):
    spec = types.EnvironmentSpec(dm_specs.Array((3_000_000,), np.uint8), SPEC.action)
    rig = make_rig(spec=spec, answer=lambda one: one.timestep.observation[:, -1].astype('i4'))
    channel = rig.start().connect(0, 1)
    assert ask(channel, request(np.array([0, 1], np.int32), 0, spec)).tolist() == [1, 1]

  def test_a_refusal_reaches_its_caller_with_its_text_and_the_others_go_on(self, make_rig):
    def answer(one: types.ActorRequest) -> batching.Reply:
      return batching.Refusal('environment 0 – nein') if 0 in one.env_ids else own_number(one)

    rig = make_rig(answer=answer).start()
    refused, other = rig.connect(0), rig.connect(1)
    other.send(request(np.array([1], np.int32), 0))
    with pytest.raises(wire.Refused, match='environment 0 – nein'):
      ask(refused, request(np.array([0], np.int32), 0))
    assert other.receive().tolist() == [1000]

  @pytest.mark.parametrize('token', ['', 'wrong'])
  def test_a_wrong_token_is_turned_away(self, rig, token):
    with pytest.raises(wire.Refused, match='token'):
      rig.connect(0, token=token)
    assert rig.batcher._num_callers == 0

  def test_another_environment_is_turned_away_by_name(self, rig):
    other = types.EnvironmentSpec(dm_specs.Array((3,), np.float32), SPEC.action)
    with pytest.raises(wire.Refused, match='observation'):
      rig.connect(0, spec=other)
    with pytest.raises(wire.Refused, match='0 ... 63'):
      rig.connect(64)

  def test_an_actor_waits_for_a_server_that_is_not_up_yet(self, make_rig):
    rig = make_rig(port=portpicker.pick_unused_port())
    connecting = rig.background(rig.connect, 0)
    with pytest.raises(futures.TimeoutError):
      connecting.result(0.7)  # longer than a retry
    rig.start()
    assert ask(connecting.result(GUARD_S), request(np.array([0], np.int32), 4)).tolist() == [4]

  def test_an_actor_does_not_wait_for_ever(self, make_rig):
    rig = make_rig(port=portpicker.pick_unused_port())
    with pytest.raises(ConnectionError, match='connect_timeout_s'):
      rig.connect(0, timeout_s=ABSENT_S)

  def test_close_from_another_thread_ends_a_waiting_receive(self, rig):
    rig.hold()
    channel = rig.connect(0)
    channel.send(request(np.array([0], np.int32), 0))
    receiving = rig.background(channel.receive)
    eventually(lambda: rig.num_waiting() == 1)
    channel.close()
    with pytest.raises(core.ChannelClosed):
      receiving.result(GUARD_S)
    eventually(lambda: rig.num_waiting() == 0)  # what it had asked for is dropped

  def test_close_between_two_requests_ends_the_next_receive(self, rig):
    channel = rig.connect(0)
    ask(channel, request(np.array([0], np.int32), 0))
    channel.close()
    with pytest.raises(core.ChannelClosed):
      ask(channel, request(np.array([0], np.int32), 1))

  def test_a_closed_channel_is_no_longer_waited_for(self, rig):
    first, second = rig.connect(0), rig.connect(1)
    ask(first, request(np.array([0], np.int32), 0))
    assert rig.batcher._num_callers == 2
    first.close()
    first.close()
    eventually(lambda: rig.batcher._num_callers == 1)
    second.close()
    eventually(lambda: rig.batcher._num_callers == 0)

  def test_closing_while_a_reply_is_under_way_harms_nobody(self, rig):
    other = rig.connect(63)
    for number in range(30):
      channel = rig.connect(0)
      channel.send(request(np.array([0], np.int32), number))
      channel.close()
      one = request(np.array([63], np.int32), number)
      np.testing.assert_array_equal(ask(other, one), own_number(one))
    eventually(lambda: rig.batcher._num_callers == 1)

  def test_a_new_channel_takes_over_the_environments_of_an_old_one(self, rig):
    rig.hold()
    old = rig.connect(0, 1)
    old.send(request(np.array([0, 1], np.int32), 0))
    receiving = rig.background(old.receive)
    eventually(lambda: rig.num_waiting() == 1)
    new = rig.connect(0, 1)
    with pytest.raises(core.ChannelClosed):
      receiving.result(GUARD_S)
    rig.release()
    one = request(np.array([0, 1], np.int32), 3)
    np.testing.assert_array_equal(ask(new, one), own_number(one))

  def test_the_end_of_the_run_ends_its_actors(self, rig):
    rig.hold()
    waiting, idle = rig.connect(0), rig.connect(1)
    waiting.send(request(np.array([0], np.int32), 0))
    receiving = rig.background(waiting.receive)
    eventually(lambda: rig.num_waiting() == 1)
    rig.desk.end_run()
    rig.batcher.close()
    with pytest.raises(core.ChannelClosed):
      receiving.result(GUARD_S)
    with pytest.raises(core.ChannelClosed):
      ask(idle, request(np.array([1], np.int32), 0))
    waiting.close()
    idle.close()
    rig.desk.wait_until_all_left(GUARD_S)
    assert not rig.desk.is_connected().any()
    rig.stop_transport()

  def test_a_port_in_use_is_the_users_error(self, rig, make_rig):
    with socket.socket() as taken:
      taken.bind(('127.0.0.1', 0))
      taken.listen()
      for port in (taken.getsockname()[1], rig.port):
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
      channel.send(request(np.array([0], np.int32), 0))
    assert [channel.receive().tolist() for channel in channels] == [[0], [1], [2]]
    with pytest.raises(wire.Refused, match='token'):
      rigs[0].connect(1, port=rigs[1].port)


class TestCourier(TransportContract):
  kind = 'courier'


class TestGrpc(TransportContract):
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
    assert ask(channel, request(np.array([0], np.int32), 1)).tolist() == [1]

  def test_a_stream_survives_a_new_transport_on_the_same_desk(self, rig):
    rig.hold()
    channel, idle = rig.connect(0, 1), rig.connect(2)
    one = request(np.array([0, 1], np.int32), 0)
    channel.send(one)
    receiving = rig.background(channel.receive)
    eventually(lambda: rig.num_waiting() == 1)
    rig.stop_transport()
    eventually(lambda: rig.num_waiting() == 0)
    rig.start()
    eventually(lambda: rig.num_waiting() == 1)  # asked again
    rig.release()
    np.testing.assert_array_equal(receiving.result(GUARD_S), own_number(one))
    for number in (7, 8):
      assert ask(idle, request(np.array([2], np.int32), number)).tolist() == [2000 + number]

  def test_close_during_the_wait_for_a_lost_server_is_not_forgotten(self, rig, monkeypatch):
    channel = rig.connect(0)
    rig.stop_transport()

    def close_and_come_back(_: float) -> None:
      channel.close()
      if rig.transport is None:
        rig.start()

    monkeypatch.setattr(
      grpc_transport,
      'time',
      python_types.SimpleNamespace(monotonic=time.monotonic, sleep=close_and_come_back),
    )
    with pytest.raises(core.ChannelClosed):
      ask(channel, request(np.array([0], np.int32), 0))

  def test_actors_of_a_server_that_ends_before_the_run_go_on_with_the_next_one(self, rig):
    rig.hold()
    channel, idle = rig.connect(0), rig.connect(1)
    one = request(np.array([0], np.int32), 5)
    channel.send(one)
    receiving = rig.background(channel.receive)
    eventually(lambda: rig.num_waiting() == 1)
    rig.batcher.close()  # and no `end_run`
    time.sleep(0.7)  # longer than a retry, which is told the same
    assert not receiving.done()
    rig.stop_transport()
    rig.reopen()
    with pytest.raises(core.ServerRestarted, match=str(rig.port)):
      receiving.result(GUARD_S)
    with pytest.raises(core.ServerRestarted, match=str(rig.port)):
      ask(idle, request(np.array([1], np.int32), 0))

  def test_the_loser_of_a_fight_for_environments_is_told_so(self, rig):
    old = rig.connect(0, 1)
    rig.connect(1)
    with pytest.raises(core.ChannelTaken):
      ask(old, request(np.array([0, 1], np.int32), 0))

  def test_rows_and_connections_are_counted_over_reconnections(self, rig):
    for number in range(3):
      channel = rig.connect(3, 5)
      ask(channel, request(np.array([3, 5], np.int32), number))
      assert np.flatnonzero(rig.desk.is_connected()).tolist() == [3, 5]
      channel.close()
      eventually(lambda: not rig.desk.is_connected().any())
    answered = rig.desk.num_answered()
    assert answered[[3, 5]].tolist() == [3, 3] and answered.sum() == 6

  def test_a_stream_whose_greeting_is_lost_is_opened_again(self, make_rig, monkeypatch, caplog):
    monkeypatch.setattr(grpc_transport, '_GREETING_S', 0.5)
    rig = make_rig()
    opened, let_go = [], threading.Event()
    open_session = rig.desk.open

    def lose_the_first(hello: bytes) -> sessions.Session:
      opened.append(hello)
      if len(opened) == 1:
        let_go.wait(GUARD_S)
        raise ValueError
      return open_session(hello)

    monkeypatch.setattr(rig.desk, 'open', lose_the_first)
    connecting = rig.start().background(rig.connect, 0)
    try:
      channel = connecting.result(GUARD_S / 2)
    finally:
      let_go.set()
    assert 'silent for 0.5 s' in caplog.text
    assert ask(channel, request(np.array([0], np.int32), 3)).tolist() == [3]

  def test_lost_streams_are_not_left_to_the_garbage_collector(self, rig):
    channel = rig.connect(0)
    one = request(np.array([0], np.int32), 0)
    ask(channel, one)
    gc.collect()
    gc.disable()
    try:
      rig.hold()
      receiving = rig.background(ask, channel, one)
      eventually(lambda: rig.num_waiting() == 1)
      rig.stop_transport()
      time.sleep(1.2)  # two attempts that fail
      rig.start()
      rig.release()
      receiving.result(GUARD_S)
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
      grpc_transport,
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
        one.result(GUARD_S)
    assert num_attempts == 40

  def test_a_server_that_stays_away_is_an_error(self, rig):
    channel = rig.connect(0, timeout_s=ABSENT_S)
    rig.stop_transport()
    with pytest.raises(ConnectionError, match='connect_timeout_s'):
      ask(channel, request(np.array([0], np.int32), 0))


class TestJoin:
  """Nodes that are started by themselves."""

  @pytest.fixture
  def rig(self) -> Iterator[Rig]:
    one = Rig('grpc').start()
    yield one
    one.stop()

  def member(
    self,
    rig: Rig,
    node: str = 'actor/0',
    token: str = 'secret',
    timeout_s: float = GUARD_S,
    **settings: str,
  ) -> grpc_transport.GrpcMember:
    return grpc_transport.GrpcMember(
      f'127.0.0.1:{rig.port}', token, membership_lib.hello(node, settings), timeout_s
    )

  def test_starts_are_counted_by_node_and_resumption(self, rig):
    starts = [self.member(rig, node, seed='1').join() for node in ('actor/0', 'actor/1', 'actor/0')]
    assert starts == [2000, 2000, 2001]

  @pytest.mark.parametrize(
    'change, words',
    [
      ({'token': 'wrong'}, 'token'),
      ({'seed': '2'}, "seed is 2, the learner's 1"),
      ({'seed': '1', 'more': 'x'}, "more is x, the learner's absent"),
      ({}, "seed is absent, the learner's 1"),
      ({'node': 'driver/0'}, 'no node driver/0'),
    ],
  )
  def test_a_node_that_does_not_fit_is_refused(self, rig, change, words):
    with pytest.raises(wire.Refused, match=words):
      self.member(rig, **change).join()

  def test_a_learner_that_does_not_come_is_an_error(self, rig):
    rig.stop_transport()
    with pytest.raises(core.ServerLost, match='connect_timeout_s.*refused'):
      self.member(rig, timeout_s=ABSENT_S, seed='1').join()

  def test_who_stays_hears_of_the_end_even_after_a_broken_connection(self, rig):
    proxy = CuttingProxy(rig.port)
    staying = grpc_transport.GrpcMember(
      f'127.0.0.1:{proxy.port}', 'secret', membership_lib.hello('replay/0', {}), GUARD_S
    )
    staying.join()
    waiting = rig.background(staying.wait_for_end)
    eventually(lambda: rig.membership._num_staying == 1)
    proxy.cut()
    eventually(lambda: proxy.num_connections == 2 and rig.membership._num_staying == 1)
    assert not waiting.done()
    rig.membership.end_run(GUARD_S)
    waiting.result(GUARD_S)
    proxy.close()

  def test_the_end_does_not_wait_for_ever_for_who_does_not_listen(self, rig):
    membership = rig.membership
    staying = rig.background(membership.stay().wait_until_over)
    eventually(lambda: membership._num_staying == 1)
    membership._num_staying += 1  # another one, that never answers
    membership.end_run(ABSENT_S)
    assert staying.result(GUARD_S) and membership._num_staying == 1


@pytest.mark.parametrize('end', ['server', 'client'])
def test_a_connection_that_falls_silent_is_noticed_within_seconds(end):
  with contextlib.ExitStack() as stack:
    rig = Rig('grpc').start()
    stack.callback(rig.stop)
    proxy = CuttingProxy(rig.port)
    stack.callback(proxy.close)
    channel = rig.connect(0, port=proxy.port)
    one = request(np.array([0], np.int32), 0)
    ask(channel, one)
    if end == 'client':
      rig.hold()
      channel.send(one)
      receiving = rig.background(channel.receive)
      eventually(lambda: rig.num_waiting() == 1)
    proxy.fall_silent()
    started = time.monotonic()
    if end == 'client':
      eventually(lambda: proxy.num_connections == 2 and rig.num_waiting() == 1)
      rig.release()
      np.testing.assert_array_equal(receiving.result(GUARD_S), own_number(one))
    else:  # whose client is busy with its environments
      eventually(lambda: not rig.desk.is_connected().any())
      assert proxy.num_connections == 1
    assert time.monotonic() - started < NOTICED_S


class CuttingProxy:
  """Forwards TCP to a port; can hold back what the server says, cut every connection, and drop
  all that is sent over those there are while new ones work."""

  def __init__(self, port: int):
    self._to = port
    self._listener = socket.create_server(('127.0.0.1', 0))
    self.port = self._listener.getsockname()[1]
    self._sockets: list[socket.socket] = []
    self._silent: set[socket.socket] = set()
    self.lets_replies_pass = threading.Event()
    self.lets_replies_pass.set()
    self.num_connections = 0
    threading.Thread(target=self._accept, daemon=True).start()

  def _accept(self) -> None:
    with contextlib.suppress(OSError):
      while True:
        client, _ = self._listener.accept()
        server = socket.create_connection(('127.0.0.1', self._to))
        self._sockets += [client, server]
        self.num_connections += 1
        for pair in ((client, server, None), (server, client, self.lets_replies_pass)):
          threading.Thread(target=self._forward, args=pair, daemon=True).start()

  def _forward(
    self, source: socket.socket, target: socket.socket, gate: threading.Event | None
  ) -> None:
    with contextlib.suppress(OSError):
      while data := source.recv(65536):
        if gate is not None:
          gate.wait()
        if source not in self._silent:
          target.sendall(data)

  def fall_silent(self) -> None:
    self._silent.update(self._sockets)

  def cut(self) -> None:
    cut, self._sockets = self._sockets, []
    for one in cut:
      with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
      one.close()

  def close(self) -> None:
    with contextlib.suppress(OSError):
      self._listener.shutdown(socket.SHUT_RDWR)
    self._listener.close()
    self.cut()
    self.lets_replies_pass.set()


class _Discard:
  def has_room(self) -> bool:
    return True

  def put(self, unrolls: types.Unroll) -> None:
    pass


@pytest.mark.parametrize('cut', ['request waits', 'reply under way'])
def test_a_request_repeated_after_a_broken_stream_steps_once(acting, cut):
  made = acting('lstm')
  server = server_lib.InferenceServer(
    spec=made.spec,
    policy=made.policy,
    num_training=4,
    num_environments=4,
    unroll_length=5,
    overlap=0,
    batch_size=4,
    seed=1,
    sink=_Discard(),
    counters=counting.Counters(),
    quota=None,
  )
  lock = threading.Lock()

  def answer(one: types.ActorRequest) -> batching.Reply:
    with lock:
      return server.step([one])[0]

  env_ids = np.array([1, 3], np.int32)
  rows = lambda: server._slots.row_numbers[env_ids].tolist()
  with contextlib.ExitStack() as stack:
    rig = Rig('grpc', answer, spec=made.spec).start()
    stack.callback(rig.stop)
    proxy = CuttingProxy(rig.port)
    stack.callback(proxy.close)
    channel = rig.connect(1, 3, port=proxy.port)
    ask(channel, request(env_ids, 0))
    for number in range(1, 4):
      if cut == 'request waits':
        rig.hold()
      else:
        proxy.lets_replies_pass.clear()
      channel.send(request(env_ids, number, step_type=types.MID))
      receiving = rig.background(channel.receive)
      if cut == 'request waits':
        eventually(lambda: rig.num_waiting() == 1)
      else:
        eventually(lambda: rows() == [number + 1] * 2)  # noqa: B023
      proxy.cut()
      proxy.lets_replies_pass.set()
      rig.release()
      actions = receiving.result(GUARD_S)
      assert rows() == [number + 1] * 2
      np.testing.assert_array_equal(actions, server._slots.action[env_ids])
      assert proxy.num_connections > number
    assert rig.batcher._num_callers == 1
