"""Sessions between transport and batcher: admission, answers, refusals, replacement."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
import threading
import time

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.transport import sessions
from seed_acme.transport import wire

pytestmark = pytest.mark.timeout(60)

SPEC = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(4, dtype=np.int32)
)
CODEC = wire.GroupCodec(SPEC, 2)
GUARD_S = 30.0
NEVER_S = 1000.0  # a time-out that no test waits for


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
  """A desk over a batcher; environments 0 ... 5 train, 6 ... 9 do not."""

  def __init__(self, batch_size: int = 1, timeout_s: float = 0.0) -> None:
    self.has_room = True
    self.holds = False
    self._seen = threading.Event()  # set when a request waits
    self.batcher = batching.Batcher(batch_size, timeout_s, lambda: self.has_room, self._hold_back)
    self.desk = sessions.SessionDesk(lambda env_id: self.batcher, SPEC, 10, 6, 'secret')
    self._pool = futures.ThreadPoolExecutor(8)

  def _hold_back(self, _: types.ActorRequest) -> bool:
    self._seen.set()
    return self.holds

  def open(self, *env_ids: int, start: wire.Start = wire.FIRST_START) -> sessions.Session:
    return self.desk.open(CODEC.hello(np.array(env_ids, np.int32), start))

  def ask(self, session: sessions.Session, request: bytes) -> futures.Future[bytes]:
    return self._pool.submit(session.answer, request)

  def take(self) -> batching.PendingRequest:
    batch = self.batcher.next_batch(GUARD_S)
    assert len(batch) == 1
    return batch[0]

  def until_a_request_waits(self) -> None:
    """Waits until a request is held, while `holds`."""
    give_up = time.monotonic() + GUARD_S
    while not self._seen.is_set():
      assert self.batcher.next_batch(0.0) == [] and time.monotonic() < give_up

  def stop(self) -> None:
    self.batcher.close()
    self._pool.shutdown()


@pytest.fixture
def rig() -> Iterator[Rig]:
  one = Rig()
  yield one
  one.stop()


@pytest.fixture
def waiting_rig() -> Iterator[Rig]:
  """A rig whose batches wait for every open session."""
  one = Rig(batch_size=100, timeout_s=NEVER_S)
  yield one
  one.stop()


def answer_alone(rig: Rig, session: sessions.Session, env_ids: tuple[int, int]) -> None:
  """Answers a request of this session, without waiting for other sessions."""
  reply = rig.ask(session, message(env_ids))
  rig.take().answer(np.zeros(2, np.int32))
  assert CODEC.decode_reply(reply.result(GUARD_S)).tolist() == [0, 0]


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
  with pytest.raises(core.Refused, match='because'):
    CODEC.decode_reply(reply.result(GUARD_S))


def test_environments_of_another_stream_are_refused(rig):
  session = rig.open(0, 1)
  with pytest.raises(core.Refused, match='did not open'):
    CODEC.decode_reply(session.answer(message((0, 2))))


def test_rubbish_is_refused_and_the_session_goes_on(rig):
  session = rig.open(0, 1)
  random = np.random.default_rng(1)
  length = len(message())
  sizes = [0, 1, length - 1, length + 1, *random.integers(0, 2 * length, 100), *[length] * 100]
  for size in sizes:
    with pytest.raises(core.Refused):
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
  rig.has_room = False  # so that no request is taken
  old, other = rig.open(0, 1), rig.open(2, 3)
  waiting, untouched = rig.ask(old, message()), rig.ask(other, message((2, 3)))
  new = rig.open(1, 4)
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(waiting.result(GUARD_S))
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(old.answer(message()))
  old.close()  # its stream ends later, and closing twice is harmless
  rig.has_room = True
  rig.batcher.wake()
  pending = rig.take()
  assert pending.request.env_ids.tolist() == [2, 3]
  pending.answer(np.zeros(2, np.int32))
  untouched.result(GUARD_S)
  reply = rig.ask(new, message((1, 4)))
  rig.take().answer(np.ones(2, np.int32))
  assert CODEC.decode_reply(reply.result(GUARD_S)).tolist() == [1, 1]


def test_an_earlier_start_opens_nothing_even_if_the_later_one_is_cut_off(waiting_rig):
  rig = waiting_rig
  rig.open(0, 1, start=wire.Start(0, 5)).close()
  stale = rig.open(1, 2, start=wire.Start(0, 4))
  assert not stale.is_open and not rig.desk.is_connected().any()
  with pytest.raises(core.ChannelTaken):
    CODEC.decode_reply(stale.answer(message((1, 2))))
  assert rig.open(0, 1, start=wire.Start(0, 5)).is_open  # the actor comes back
  newest = rig.open(0, 1, start=wire.Start(1, 0))
  assert newest.is_open
  answer_alone(rig, newest, (0, 1))


def test_closing_a_session_takes_its_waiting_request_with_it(rig):
  rig.holds = True
  session = rig.open(0, 1)
  waiting = rig.ask(session, message())
  rig.until_a_request_waits()
  session.close()
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(waiting.result(GUARD_S))
  rig.holds = False
  assert rig.batcher.next_batch(0.01) == []


def test_a_session_closed_between_taking_and_submitting_leaves_nothing_behind(rig):
  """The old stream must not add its request to the repeated one of the new stream."""
  session = rig.open(0, 1)
  original = rig.batcher.submit
  closer: list[threading.Thread] = []

  def submit_after_close(pending: batching.PendingRequest) -> None:
    closer.append(threading.Thread(target=session.close))
    closer[0].start()
    closer[0].join(0.2)  # it either waits for this request, or came first
    original(pending)

  rig.batcher.submit = submit_after_close
  rig.has_room = False
  reply = rig.ask(session, message())
  with pytest.raises(core.ChannelClosed):
    CODEC.decode_reply(reply.result(GUARD_S))
  closer[0].join()
  rig.has_room = True
  assert rig.batcher.next_batch(0.01) == []


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


@pytest.mark.parametrize(
  'env_ids, said',
  [
    ((5, 6), r'has 2 env_ids, 5 \.\.\. 6, but that of environment 5 in this run has 3 env_ids, 3'),
    (
      (0, 2),
      r'2 env_ids, 0 \.\.\. 2, .* environment 0 in this run has 2 env_ids, 0 \.\.\. 1: .*groups',
    ),
    ((3, 4), r'2 env_ids, 3 \.\.\. 4, .* has 3 env_ids, 3 \.\.\. 5'),
  ],
)
def test_what_is_no_group_of_the_run_opens_nothing(waiting_rig, env_ids, said):
  rig, groups = waiting_rig, (range(2), range(2, 3), range(3, 6), range(6, 8), range(8, 10))
  rig.desk = sessions.SessionDesk(lambda _: rig.batcher, SPEC, 10, 6, 'secret', groups=groups)
  with pytest.raises(ValueError, match=said):
    rig.open(*env_ids)
  assert not rig.desk.is_connected().any()
  answer_alone(rig, rig.open(8, 9), (8, 9))


def test_a_hello_that_does_not_fit_opens_nothing(waiting_rig):
  with pytest.raises(ValueError, match='env_ids'):
    waiting_rig.open(0, 10)
  answer_alone(waiting_rig, waiting_rig.open(0, 1), (0, 1))
