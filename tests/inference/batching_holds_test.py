"""Batcher with requests that have to wait for the learner: `holds`."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from seed_acme import types
from seed_acme.inference import batching
from tests.inference import blocking_request

pytestmark = pytest.mark.timeout(120)

NEVER_S = 1000.0  # a time-out that no test waits for
GIVE_UP_S = 0.01  # how long to wait for a batch that must not come
GUARD_S = 30.0  # guard against a hang


class Rig:
  """A batcher that holds the requests of the environments in `held`."""

  def __init__(self, batch_size: int, num_callers: int, timeout_s: float = NEVER_S):
    self.has_room = True
    self.held: set[int] = set()
    self.asked: list[int] = []  # the environments for which `holds` was called
    self.looks = threading.Semaphore(0)  # released at each look at waiting requests
    self.batcher = batching.Batcher(batch_size, timeout_s, self._accepts_training, self._holds)
    for _ in range(num_callers):
      self.batcher.add_caller()

  def _accepts_training(self) -> bool:
    self.looks.release()
    return self.has_room

  def _holds(self, request: types.ActorRequest) -> bool:
    [env_id] = request.env_ids.tolist()
    self.asked.append(env_id)
    return env_id in self.held

  def until_asked(self, *env_ids: int) -> None:
    give_up = time.monotonic() + GUARD_S
    while self.asked != list(env_ids):
      assert time.monotonic() < give_up, self.asked
      time.sleep(0.001)

  def submit(self, env_id: int, is_training: bool = True) -> blocking_request.BlockingRequest:
    request = types.ActorRequest(0, np.array([env_id], np.int32), np.ones(1, np.int64), None)
    one = blocking_request.BlockingRequest(request, is_training)
    self.batcher.submit(one)
    return one

  def batch(self) -> list[blocking_request.BlockingRequest]:
    return self.batcher.next_batch(GIVE_UP_S)


def test_held_requests_do_not_stop_the_others():
  rig = Rig(batch_size=2, num_callers=100)
  rig.held = {0, 1}
  held = [rig.submit(0), rig.submit(1)]
  assert rig.batch() == []  # their two rows do not fill a batch
  others = [rig.submit(2), rig.submit(3)]
  assert rig.batch() == others
  rig.held = {1}
  again = rig.submit(2)
  assert rig.batch() == [held[0], again]
  rig.held = set()
  last = rig.submit(3)
  assert rig.batch() == [held[1], last]


def test_where_all_callers_wait_the_batch_is_what_is_not_held():
  rig = Rig(batch_size=100, num_callers=3)
  rig.held = {0}
  held, second, third = rig.submit(0), rig.submit(1), rig.submit(2)
  assert rig.batch() == [second, third]
  rig.held = set()
  assert rig.batch() == []  # the two others may still come
  others = [rig.submit(1), rig.submit(2)]
  assert rig.batch() == [held, *others]


def test_wake_after_a_publication_lets_held_requests_go(in_background):
  rig = Rig(batch_size=2, num_callers=2)
  rig.held = {0, 1}
  held = [rig.submit(0), rig.submit(1)]
  background = in_background(rig.batcher, rig.looks)
  rig.held = set()
  rig.batcher.wake()
  assert background.result() == held


def test_one_that_is_not_held_waits_no_longer_than_the_time_out(in_background):
  """The thread waits with only a held request in the queue, so another request has to wake it."""
  rig = Rig(batch_size=8, num_callers=3, timeout_s=0.01)
  rig.held = {0}
  rig.submit(0)
  background = in_background(rig.batcher, rig.looks)
  other = rig.submit(1)  # the third caller is slow
  assert background.result() == [other]


def test_a_request_is_looked_at_at_once_though_all_before_it_are_held(in_background):
  """The server passes on finished unrolls when it is asked about a request."""
  rig = Rig(batch_size=8, num_callers=3)
  rig.held = {0, 1}
  rig.submit(0)
  in_background(rig.batcher, rig.looks)
  rig.until_asked(0)
  rig.submit(1)
  rig.until_asked(0, 0, 1)


@pytest.mark.parametrize('batch_size, num_callers', [(32, 100), (100, 32)])
def test_a_look_asks_about_the_oldest_alone_until_all_may_be_a_batch(batch_size, num_callers):
  """The cost of a message would otherwise grow with the number of actors."""
  rig = Rig(batch_size, num_callers)
  one = rig.submit(0)
  for env_id in range(1, 31):
    assert rig.batcher.next_batch(0.0) == []
    rig.submit(env_id)
  assert set(rig.asked) == {0}
  last = rig.submit(31)
  found = rig.batch()
  assert (found[0], found[-1], len(found)) == (one, last, 32)
  assert rig.asked[-32:] == list(range(32)) and len(rig.asked) <= 70


def test_evaluation_passes_those_that_are_held(in_background):
  rig = Rig(batch_size=8, num_callers=3, timeout_s=0.01)
  rig.held = {0, 1}
  rig.submit(0), rig.submit(1)
  background = in_background(rig.batcher, rig.looks)
  played = rig.submit(9, is_training=False)
  assert background.result() == [played]


def test_nobody_is_asked_while_replay_is_full():
  """The unrolls that a request finishes would not fit."""
  rig = Rig(batch_size=1, num_callers=1)
  rig.has_room = False
  one = rig.submit(0)
  assert rig.batch() == [] and rig.asked == []
  rig.has_room = True
  assert rig.batch() == [one] and rig.asked == [0]


def test_close_answers_held_requests(in_background):
  rig = Rig(batch_size=1, num_callers=2)
  rig.held = {0, 1}
  held = [rig.submit(0), rig.submit(1)]
  background = in_background(rig.batcher, rig.looks)
  rig.batcher.close()
  assert [one.wait() for one in held] == [batching.STOPPED] * 2
  assert background.result() == []


def test_a_held_request_is_dropped_with_its_caller():
  rig = Rig(batch_size=1, num_callers=1)
  rig.held = {0}
  held = rig.submit(0)
  rig.batcher.remove_caller(held)
  rig.held = set()
  assert held.wait() is batching.STOPPED
  assert rig.batch() == []
