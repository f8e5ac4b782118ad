"""Unix sockets: the contract, and the effect of strangers, slow readers and long paths."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import stat
import threading
import time

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import transports
from seed_acme.transport import unix_protocol
from seed_acme.transport import unix_server
from seed_acme.transport import wire
from tests.transport import reconnecting_contract
from tests.transport import serving

pytestmark = pytest.mark.timeout(120)
_ONE = np.array([0], np.int32)


@pytest.fixture(name='stranger')
def _stranger():
  """`stranger(rig)`: a connection that has sent nothing yet."""
  with contextlib.ExitStack() as stack:

    def connect(rig) -> socket.socket:
      caller = stack.enter_context(unix_protocol.new_socket())
      caller.settimeout(serving.GUARD_S)
      caller.connect(rig.port)
      return caller

    yield connect


def _is_cut_off(caller: socket.socket) -> bool:
  try:
    return caller.recv(1) == b''
  except ConnectionResetError:
    return True


class TestUnix(reconnecting_contract.ReconnectingContract):
  kind = 'unix'

  def test_only_the_user_of_the_run_gets_in(self, rig):
    assert stat.S_IMODE(os.stat(rig.port).st_mode) == 0o600

  def test_the_socket_of_a_learner_that_was_killed_is_replaced(self, make_rig):
    rig = make_rig()
    with unix_protocol.new_socket() as left_over:
      left_over.bind(rig.port)
      left_over.listen()
    channel = rig.start().connect(0)
    assert serving.ask(channel, serving.request(_ONE, 2)).tolist() == [2]

  def test_nothing_is_left_in_the_folder(self, rig):
    rig.connect(0)
    rig.stop_transport()
    assert not pathlib.Path(rig.port).exists()

  def test_a_path_may_be_longer_than_an_address(self, make_rig, tmp_path):
    folder = tmp_path / ('a' * 120) / ('b' * 120)
    folder.mkdir(parents=True)
    rig = make_rig(port=str(folder / 'inference.sock')).start()
    assert serving.ask(rig.connect(0), serving.request(_ONE, 2)).tolist() == [2]

  def test_a_folder_without_sockets_is_the_users_error(self, make_rig, tmp_path):
    rig = make_rig(port=str(tmp_path / 'none' / 'inference.sock'))
    with pytest.raises(types.UserError, match=r'inference\.sock: No such file.*kind=grpc'):
      rig.start()

  @pytest.mark.parametrize(
    'said',
    [
      # The server would allocate this much; it could not allocate a terabyte, and would hang up.
      unix_protocol.header(1 << 30),
      unix_protocol.header(5) + b'hello' + b'and more, before the answer',
    ],
  )
  def test_who_speaks_out_of_turn_is_cut_off(self, make_rig, stranger, said):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    caller = stranger(rig)
    caller.sendall(said)
    serving.eventually(lambda: _is_cut_off(caller) or caller.recv(1 << 16) == b'')
    self.ask_alone(rig, rig.connect(1), [1])

  @pytest.mark.parametrize('env_ids', [{'8': 1, '08': 2}, ['8'], {}, 8, [[8]]])
  def test_a_greeting_of_another_form_is_refused_and_named(
    self, make_rig, stranger, caplog, env_ids
  ):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    channel, other = rig.connect(1), stranger(rig)
    said = json.loads(wire.GroupCodec(rig.spec, 1).hello(_ONE))
    hello = json.dumps({**said, 'env_ids': env_ids}).encode()
    greeting = unix_protocol.greeting(rig.token, hello)
    other.sendall(unix_protocol.header(len(greeting)) + greeting)
    assert b'no greeting of an actor' in other.recv(1 << 16)
    self.ask_alone(rig, channel, [1])
    assert 'turned an actor away: ' in caplog.text

  def test_what_cannot_be_handled_ends_its_connection_only(
    self, make_rig, stranger, monkeypatch, caplog
  ):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    channel, others = rig.connect(1), [stranger(rig) for _ in range(2)]

    def fails(*_):
      raise TypeError('a slice of a dict')

    hello = unix_protocol.greeting(rig.token, wire.GroupCodec(rig.spec, 1).hello(_ONE))
    with monkeypatch.context() as patched:
      patched.setattr(rig.desk, 'open', fails)
      for one in others:
        one.sendall(unix_protocol.header(len(hello)) + hello)
      assert all(_is_cut_off(one) for one in others)
    self.ask_alone(rig, channel, [1])
    assert caplog.text.count('a slice of a dict') >= 2  # the log names the error

  def test_a_request_that_cannot_be_handled_ends_its_connection_only(
    self, make_rig, stranger, monkeypatch
  ):
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    channel, other = rig.connect(1), stranger(rig)
    codec = wire.GroupCodec(rig.spec, 1)
    hello = unix_protocol.greeting(rig.token, codec.hello(_ONE))
    other.sendall(unix_protocol.header(len(hello)) + hello)
    assert other.recv(1 << 16)

    def fails(*_):
      raise TypeError('unhandled')

    message = codec.encode_request(serving.request(_ONE, 0))
    with monkeypatch.context() as patched:
      patched.setattr(wire.GroupCodec, 'decode_request', fails)
      other.sendall(unix_protocol.header(len(message)) + message)
      assert _is_cut_off(other)
    self.ask_alone(rig, channel, [1])

  def test_who_asks_again_before_the_reply_is_cut_off(self, rig, stranger):
    rig.hold()
    codec = wire.GroupCodec(rig.spec, 1)
    caller = stranger(rig)
    hello = unix_protocol.greeting(rig.token, codec.hello(_ONE))
    caller.sendall(unix_protocol.header(len(hello)) + hello)
    assert caller.recv(1 << 16)
    message = codec.encode_request(serving.request(_ONE, 0))
    caller.sendall(2 * (unix_protocol.header(len(message)) + message))
    assert _is_cut_off(caller)
    serving.eventually(lambda: not rig.desk.is_connected().any())
    serving.eventually(lambda: rig.num_waiting() == 0)

  def test_silent_strangers_do_not_keep_actors_out(self, make_rig, stranger, monkeypatch):
    monkeypatch.setattr(unix_server, '_MAX_STRANGERS', 4)
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    monkeypatch.setattr(unix_server, '_READING_S', -1.0)
    strangers = [stranger(rig) for _ in range(9)]
    assert all(_is_cut_off(one) for one in strangers[:5])
    self.ask_alone(rig, rig.connect(0), [0])
    monkeypatch.setattr(unix_server, '_GREETING_S', 0.5)
    time.sleep(0.6)
    rig.connect(1)
    assert all(_is_cut_off(one) for one in strangers)

  def test_actors_that_connect_while_the_learner_is_busy_are_all_let_in(
    self, make_rig, stranger, monkeypatch
  ):
    monkeypatch.setattr(unix_server, '_MAX_STRANGERS', 2)
    rig = make_rig(batch_timeout_s=serving.NEVER_S).start()
    is_connected, codec = threading.Event(), wire.GroupCodec(rig.spec, 1)
    rig.batcher.loop.call(is_connected.wait)
    callers = [stranger(rig) for _ in range(8)]
    for env_id, caller in enumerate(callers):
      greeting = unix_protocol.greeting(rig.token, codec.hello(np.array([env_id], np.int32)))
      caller.sendall(unix_protocol.header(len(greeting)) + greeting)
    is_connected.set()
    assert all(caller.recv(1 << 16) for caller in callers)

  def test_a_server_that_says_nothing_is_not_waited_for_without_end(self, make_rig):
    rig = make_rig()
    with unix_protocol.new_socket() as silent:
      silent.bind(rig.port)
      silent.listen()
      with pytest.raises(core.ServerLost, match=r'silent for 0\.2 s'):
        rig.connect(0, timeout_s=serving.ABSENT_S)

  def test_a_reader_that_takes_nothing_keeps_nobody_waiting(self, make_rig):
    size = 3_000_000
    action = dm_specs.Array((size,), np.uint8)
    spec = types.EnvironmentSpec(serving.SPEC.observation, action)

    def answer(one: types.ActorRequest) -> batching.Reply:
      return np.full((one.env_ids.size, size), one.env_ids[0], np.uint8)

    rig = make_rig(spec=spec, answer=answer).start()
    slow, other = rig.connect(7), rig.connect(8)
    slow.send(serving.request(np.array([7], np.int32), 0))
    for number in range(3):
      reply = serving.ask(other, serving.request(np.array([8], np.int32), number))
      assert (reply == 8).all()
    reply = slow.receive()
    assert reply.shape == (1, size) and (reply == 7).all()

  def test_a_hundred_actors_at_once(self, rig):
    def play(index: int) -> None:
      channel = rig.connect(index % serving.NUM_ENVIRONMENTS, start=wire.Start(0, index))
      try:
        serving.ask(channel, serving.request(np.array([index % 64], np.int32), index))
      except core.ChannelTaken:
        pass
      finally:
        channel.close()

    for played in [rig.background(play, index) for index in range(100)]:
      played.result(serving.GUARD_S)
    serving.eventually(lambda: not rig.desk.is_connected().any())

  def test_actions_are_not_overwritten_by_later_ones(self, rig):
    channel = rig.connect(0)
    first = serving.ask(channel, serving.request(_ONE, 1))
    serving.ask(channel, serving.request(_ONE, 2))
    assert first.tolist() == [1]


def test_both_ends_find_each_other_by_the_run_folder(tmp_path):
  auto, grpc = config_lib.TransportConfig(), config_lib.TransportConfig(kind='grpc')
  assert transports.address_beside(auto, tmp_path, 'host:1') == f'unix:{tmp_path}/inference.sock'
  assert transports.address_beside(grpc, tmp_path, 'host:1') == 'host:1'
  with pytest.raises(core.ServerLost, match=r'inference\.sock for 0\.2 s'):
    transports.connect(
      'auto',
      transports.address_beside(auto, tmp_path, 'host:1'),
      'token',
      wire.GroupCodec(serving.SPEC, 1),
      _ONE,
      patience_lib.on_other_hosts(serving.ABSENT_S),
      wire.FIRST_START,
    )
