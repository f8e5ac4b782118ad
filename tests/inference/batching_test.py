"""Batcher scenarios, padded sizes, and refusals within a batch."""

from __future__ import annotations

from concurrent import futures
import threading

import numpy as np
import pytest

from seed_acme import types
from seed_acme.inference import batching
from tests.inference import blocking_request

pytestmark = pytest.mark.timeout(60)

NEVER_S = 1000.0  # a time-out that no test waits for
GIVE_UP_S = 0.01  # how long to wait for a batch that must not come
COMES_S = 30.0  # guard against a hang, not a deadline


def request(env_ids: list[int], number: int = 0) -> types.ActorRequest:
  return types.ActorRequest(
    number, np.array(env_ids, np.int32), np.ones(len(env_ids), np.int64), None
  )


def pending(*env_ids: int, is_training: bool = True) -> blocking_request.BlockingRequest:
  return blocking_request.BlockingRequest(request(list(env_ids)), is_training)


class Rig:
  """A batcher with `num_callers` open callers and a switch for training requests."""

  def __init__(self, batch_size: int = 4, timeout_s: float = NEVER_S, num_callers: int = 100):
    self.has_room = True
    self.looks = threading.Semaphore(0)  # released at each look at waiting requests
    self.batcher = batching.Batcher(batch_size, timeout_s, self._accepts_training, lambda _: False)
    for _ in range(num_callers):
      self.batcher.add_caller()

  def _accepts_training(self) -> bool:
    self.looks.release()
    return self.has_room

  def submit(self, *env_ids: int, is_training: bool = True) -> blocking_request.BlockingRequest:
    one = pending(*env_ids, is_training=is_training)
    self.batcher.submit(one)
    return one

  def batch(self, wait_s: float = GIVE_UP_S) -> list[blocking_request.BlockingRequest]:
    return self.batcher.next_batch(wait_s)


def test_a_full_batch_runs_at_once_in_order_of_arrival():
  rig = Rig(batch_size=4)
  waiting = [rig.submit(i) for i in range(3)]
  assert rig.batch() == []
  waiting.append(rig.submit(3))
  assert rig.batch() == waiting
  assert rig.batch() == []


def test_the_limit_counts_rows():
  rig = Rig(batch_size=4)
  first, second, third = rig.submit(0, 1), rig.submit(2), rig.submit(3, 4)
  assert rig.batch() == [first, second]  # five rows do not fit
  assert rig.batch() == []
  fourth = rig.submit(5, 6)
  assert rig.batch() == [third, fourth]


def test_a_request_larger_than_a_batch_goes_alone():
  rig = Rig(batch_size=2)
  large, small = rig.submit(0, 1, 2), rig.submit(3, 4)
  assert rig.batch() == [large]
  assert rig.batch() == [small]
  small, large = rig.submit(3), rig.submit(0, 1, 2)
  assert rig.batch() == [small]
  assert rig.batch() == [large]


def test_one_row_of_eight_runs_after_the_time_out():
  rig = Rig(batch_size=8, timeout_s=0.02, num_callers=8)
  alone = rig.submit(0)
  assert rig.batch(COMES_S) == [alone]


def test_a_batch_that_nobody_else_can_join_does_not_wait():
  rig = Rig(batch_size=100, num_callers=3)
  first, second = rig.submit(0), rig.submit(1)
  assert rig.batch() == []
  third = rig.submit(2)
  assert rig.batch() == [first, second, third]


def test_a_caller_that_leaves_is_not_waited_for():
  rig = Rig(batch_size=100, num_callers=3)
  first, dead, third = rig.submit(0), rig.submit(1), rig.submit(2)
  rig.batcher.remove_caller(dead)
  assert isinstance(dead.wait(), batching.Stopped)
  assert rig.batch() == [first, third]
  fourth = rig.submit(0)
  rig.batcher.remove_caller(None)  # it had no request
  assert rig.batch() == [fourth]


def test_removing_a_caller_whose_request_was_taken_leaves_the_request_alone():
  rig = Rig(batch_size=1)
  one = rig.submit(0)
  assert rig.batch() == [one]
  rig.batcher.remove_caller(one)
  one.answer('actions')
  assert one.wait() == 'actions'


def test_training_is_held_back_while_evaluation_passes():
  rig = Rig(batch_size=2)
  rig.has_room = False
  held = [rig.submit(i) for i in range(4)]
  assert rig.batch() == []
  played = [rig.submit(8, is_training=False), rig.submit(9, is_training=False)]
  assert rig.batch() == played
  assert rig.batch() == []
  rig.has_room = True
  assert rig.batch() == held[:2]
  assert rig.batch() == held[2:]


def test_all_callers_wait_and_some_are_held_back():
  rig = Rig(batch_size=100, num_callers=2)
  rig.has_room = False
  held, played = rig.submit(0), rig.submit(1, is_training=False)
  assert rig.batch() == [played]
  rig.has_room = True
  assert rig.batch() == []  # the other caller may still come
  again = rig.submit(1, is_training=False)
  assert rig.batch() == [held, again]


def test_an_evaluation_request_wakes_a_batcher_that_holds_training_back(in_background):
  rig = Rig(batch_size=8, timeout_s=0.01)
  rig.has_room = False
  for i in range(3):
    rig.submit(i)
  background = in_background(rig.batcher, rig.looks)
  played = rig.submit(9, is_training=False)
  assert background.result() == [played]


def test_wake_lets_held_requests_go(in_background):
  rig = Rig(batch_size=1)
  rig.has_room = False
  held = rig.submit(0)
  background = in_background(rig.batcher, rig.looks)
  rig.has_room = True
  rig.batcher.wake()
  assert background.result() == [held]


def test_the_last_rows_of_a_batch_wake_the_waiting_thread(in_background):
  rig = Rig(batch_size=3)
  background = in_background(rig.batcher, rig.looks)
  waiting = [rig.submit(0), rig.submit(1), rig.submit(2)]
  assert background.result() == waiting


def test_close_answers_all_that_wait_and_all_that_come(in_background):
  rig = Rig(batch_size=8)
  background = in_background(rig.batcher, rig.looks)
  waiting = [rig.submit(0), rig.submit(1)]
  rig.batcher.close()
  waiting.append(rig.submit(2))
  assert all(isinstance(one.wait(), batching.Stopped) for one in waiting)
  assert background.result() == []
  assert rig.batch(NEVER_S) == []
  rig.batcher.remove_caller(waiting[0])


def test_many_callers_are_all_answered_with_their_own_reply():
  num_callers, num_rounds = 12, 40
  rig = Rig(batch_size=8, timeout_s=0.001, num_callers=num_callers)
  stop = threading.Event()

  def serve() -> None:
    while not stop.is_set():
      for one in rig.batch(0.05):
        one.answer(one.request.env_ids.sum())

  def call(caller: int) -> list[int]:
    return [rig.submit(caller, 100 * number).wait() for number in range(num_rounds)]

  server = threading.Thread(target=serve)
  server.start()
  with futures.ThreadPoolExecutor(num_callers) as pool:
    replies = list(pool.map(call, range(num_callers)))
  stop.set()
  server.join()
  assert replies == [[c + 100 * n for n in range(num_rounds)] for c in range(num_callers)]


@pytest.mark.parametrize(
  'num_rows, batch_size, expected',
  [
    (1, 256, 8),
    (8, 256, 8),
    (9, 256, 16),
    (129, 256, 256),
    (256, 256, 256),
    (257, 256, 512),
    (5, 6, 6),
    (3, 1, 8),
    (7, 6, 8),
    (100, 200, 128),
    (150, 200, 200),
    (201, 200, 256),
    (1, 1, 1),
    (33, 40, 40),
    (20, 40, 32),
  ],
)
def test_padded_size(num_rows, batch_size, expected):
  assert batching.padded_size(num_rows, batch_size) == expected


@pytest.mark.parametrize('batch_size', [1, 7, 32, 96, 500])
def test_there_are_few_padded_sizes_and_all_hold_their_rows(batch_size):
  sizes = [batching.padded_size(n, batch_size) for n in range(1, 1001)]
  assert all(size >= n for n, size in enumerate(sizes, start=1))
  assert len(set(sizes)) <= 9


def refusals(*requests: list[int], num_environments: int = 10) -> list[str | None]:
  found = batching.refuse_repeated_environments(
    [request(ids) for ids in requests], num_environments
  )
  return [None if refusal is None else refusal.reason for refusal in found]


def test_a_repeated_environment_is_refused_to_the_later_caller_alone():
  assert refusals([0, 1], [5, 4, 1], [2, 3], [4, 5]) == [
    None,
    'environment 1 is in this batch twice: two actors use the same env_id',
    None,
    None,
  ]


def test_an_environment_repeated_within_one_request_is_named():
  found = refusals([3, 7, 8, 7], [7])
  assert found[0] is not None and 'environment 7 ' in found[0]
  assert found[1] is None


@pytest.mark.parametrize('env_ids', [[-1], [10], [3, 10], [2**31 - 1]])
def test_environments_out_of_range_are_refused(env_ids):
  found = refusals(env_ids, [3])
  assert found[0] is not None and '0 ... 9' in found[0]
  assert found[1] is None
