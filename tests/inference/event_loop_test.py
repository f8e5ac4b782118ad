"""Waking, calls from other threads, and handlers that remove each other."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import event_loop
from tests.inference import blocking_request

pytestmark = pytest.mark.timeout(60)
_LONG_S = 1000.0  # longer than a test may take: only a wake ends this wait


@pytest.fixture(name='loop')
def _loop():
  loop = event_loop.EventLoop()
  yield loop
  loop.close()


@pytest.fixture(name='pipe')
def _pipe():
  """`pipe()`: (end to read, end to write)."""
  opened = []

  def make():
    opened.extend(ends := os.pipe())
    return ends

  yield make
  for fd in opened:
    os.close(fd)


def _in_background(function):
  thread = threading.Thread(target=function)
  thread.start()
  return thread


def test_a_wait_ends_with_its_time_and_calls_nobody(loop, pipe):
  reading, _ = pipe()
  loop.add(reading, lambda events: pytest.fail('nothing was written'))
  loop.wait(0.01)


def test_a_wake_of_another_thread_is_not_lost_before_the_wait(loop):
  loop.wait(0.0)  # this thread is the waiting one from now on
  _in_background(loop.wake).join()
  loop.wait(_LONG_S)


def test_calls_of_other_threads_run_on_the_waiting_one_in_their_order(loop):
  loop.wait(0.0)
  ran = []

  def call():
    for number in range(3):
      loop.call(lambda number=number: ran.append((number, threading.get_ident())))

  _in_background(call).join()
  assert ran == []
  loop.wait(_LONG_S)
  assert ran == [(number, threading.get_ident()) for number in range(3)]


def test_a_call_of_the_waiting_thread_runs_at_once(loop):
  loop.wait(0.0)
  ran = []
  loop.call(lambda: ran.append(1))
  assert ran == [1]


def test_a_handler_that_was_removed_in_the_same_round_is_not_called(loop, pipe):
  ends = [pipe(), pipe()]
  called = []

  def remove_both(_):
    called.append(1)
    for reading, _ in ends:
      loop.remove(reading)

  for reading, writing in ends:
    loop.add(reading, remove_both)
    os.write(writing, b'x')
  loop.wait(_LONG_S)
  assert called == [1]


def test_writable_is_told_only_while_it_is_expected(loop, pipe):
  _, writing = pipe()
  told = []
  loop.add(writing, told.append)
  loop.wait(0.01)
  loop.expect(writing, writable=True)
  loop.wait(_LONG_S)
  loop.expect(writing, writable=False)
  loop.wait(0.01)
  assert len(told) == 1


def test_what_a_handler_submits_is_in_the_next_batch(pipe):
  batcher = batching.Batcher(4, _LONG_S, lambda: True, lambda _: False)
  batcher.add_caller()
  reading, writing = pipe()
  one = blocking_request.BlockingRequest(
    types.ActorRequest(0, np.zeros(1, np.int32), np.ones(1, np.int64), None), True
  )

  def submit(_):
    os.read(reading, 1)
    batcher.submit(one)

  batcher.loop.add(reading, submit)
  os.write(writing, b'x')
  assert batcher.next_batch(_LONG_S) == [one]
  batcher.loop.close()


def test_close_may_be_called_twice_and_a_late_wake_harms_nobody():
  loop = event_loop.EventLoop()
  loop.close()
  loop.close()
  loop.wake()
