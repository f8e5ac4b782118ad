"""Sessions between transport and batcher: who is admitted, answered, refused, replaced."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
import threading

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import sessions
from seed_acme.inference import wire

pytestmark = pytest.mark.timeout(60)

SPEC = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(4, dtype=np.int32)
)
CODEC = wire.GroupCodec(SPEC, 2)
GUARD_S = 30.0


def message(env_ids: tuple[int, int] = (0, 1), number: int = 0) -> bytes:
  zeros = np.zeros(2, np.float32)
  return CODEC.encode_request(
    types.ActorRequest(
      number,
      np.array(env_ids, np.int32),
      np.ones(2, np.int64),
      types.VectorTimeStep(
        np.zeros(2, np.uint8), zeros, zeros, np.zeros((2, 2), np.float32), zeros
      ),
    )
  )


class Rig:
  """A desk over a batcher of one request a batch; environments 0 ... 5 train, 6 ... 9 do not."""

  def __init__(self) -> None:
    self.has_room = True
    self.batcher = batching.Batcher(1, 0.0, lambda: self.has_room, lambda _: False)
    self.desk = sessions.SessionDesk(self.batcher, SPEC, 10, 6, 'secret')
    self._pool = futures.ThreadPoolExecutor(8)

  def open(self, *env_ids: int) -> sessions.Session:
    return self.desk.open(CODEC.hello(np.array(env_ids, np.int32)))

  def ask(self, session: sessions.Session, request: bytes) -> futures.Future[bytes]:
    return self._pool.submit(session.answer, request)

  def take(self) -> batching.PendingRequest:
    batch = self.batcher.next_batch(GUARD_S)
    assert len(batch) == 1
    return batch[0]

  def stop(self) -> None:
    self.batcher.close()
    self._pool.shutdown()


@pytest.fixture
def rig() -> Iterator[Rig]:
  one = Rig()
  yield one
  one.stop()


def test_a_request_is_answered_with_its_actions(rig):
  session = rig.open(0, 1)
  reply = rig.ask(session, message(number=5))
  pending = rig.take()
  assert pending.request.request_number == 5 and pending.is_training
  pending.answer(np.array([3, 2], np.int32))
  assert CODEC.decode_reply(reply.result(GUARD_S)).tolist() == [3, 2]


def test_a_refusal_is_passed_on(rig):
  session = rig.open(0, 1)
  reply = rig.ask(session, message())
  rig.take().answer(batching.Refusal('because'))
  with pytest.raises(wire.Refused, match='because'):
    CODEC.decode_reply(reply.result(GUARD_S))


def test_environments_of_another_stream_are_refused(rig):
  session = rig.open(0, 1)
  with pytest.raises(wire.Refused, match='did not open'):
    CODEC.decode_reply(session.answer(message((0, 2))))


def test_rubbish_is_refused_and_the_session_goes_on(rig):
  session = rig.open(0, 1)
  random = np.random.default_rng(1)
  length = len(message())
  sizes = [0, 1, length - 1, length + 1, *random.integers(0, 2 * length, 100), *[length] * 100]
  for size in sizes:
    with pytest.raises(wire.Refused):
      CODEC.decode_reply(session.answer(random.bytes(size)))
  reply = rig.ask(session, message())
  rig.take().answer(np.zeros(2, np.int32))
  assert CODEC.decode_reply(reply.result(GUARD_S)).tolist() == [0, 0]


def test_evaluation_sessions_are_not_held_back(rig):
  rig.has_room = False
  training, evaluation = rig.open(0, 1), rig.open(7, 8)
  held, played = rig.ask(training, message()), rig.ask(evaluation, message((7, 8)))
  pending = rig.take()
  assert not pending.is_training and pending.request.env_ids.tolist() == [7, 8]
  pending.answer(np.zeros(2, np.int32))
  played.result(GUARD_S)
  assert not held.done()


def test_the_newest_session_of_an_environment_wins(rig):
  rig.has_room = False  # so that nothing is taken
  old, other = rig.open(0, 1), rig.open(2, 3)
  waiting, untouched = rig.ask(old, message()), rig.ask(other, message((2, 3)))
  new = rig.open(1, 4)
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(waiting.result(GUARD_S))
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(old.answer(message()))
  old.close()  # its stream ends later; closing twice is nothing
  rig.has_room = True
  rig.batcher.wake()
  pending = rig.take()
  assert pending.request.env_ids.tolist() == [2, 3]
  pending.answer(np.zeros(2, np.int32))
  untouched.result(GUARD_S)
  reply = rig.ask(new, message((1, 4)))
  rig.take().answer(np.ones(2, np.int32))
  assert CODEC.decode_reply(reply.result(GUARD_S)).tolist() == [1, 1]


def test_closing_a_session_takes_its_waiting_request_with_it(rig):
  rig.has_room = False
  session = rig.open(0, 1)
  waiting = rig.ask(session, message())
  while not rig.batcher._pending:
    pass
  session.close()
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(waiting.result(GUARD_S))
  rig.has_room = True
  assert rig.batcher.next_batch(0.01) == []


def test_a_session_closed_between_taking_and_submitting_leaves_nothing_behind(rig):
  """The old stream must not put a request beside the repeated one of the new stream."""
  session = rig.open(0, 1)
  original = rig.batcher.submit
  closer: list[threading.Thread] = []

  def submit_after_close(pending: batching.PendingRequest) -> None:
    closer.append(threading.Thread(target=session.close))
    closer[0].start()
    closer[0].join(0.2)  # either it waits for this request, or it came first
    original(pending)

  rig.batcher.submit = submit_after_close
  rig.has_room = False
  reply = rig.ask(session, message())
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(reply.result(GUARD_S))
  closer[0].join()
  assert rig.batcher._pending == []


@pytest.mark.parametrize(
  'token, is_admitted',
  [
    ('secret', True),
    ('', False),
    ('Secret', False),
    ('secret ', False),
    ('geheim', False),
    ('sécret', False),
  ],
)
def test_only_the_token_of_the_run_is_admitted(rig, token, is_admitted):
  assert rig.desk.is_admitted(token) is is_admitted


def test_a_hello_that_does_not_fit_opens_nothing(rig):
  with pytest.raises(ValueError, match='env_ids'):
    rig.open(0, 10)
  assert rig.batcher._num_callers == 0
