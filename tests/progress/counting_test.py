"""Counters: adding, reading, restoring, many threads."""

import threading
import time

import numpy as np
import pytest

from seed_acme.progress import counting


class _Clock:
  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


def test_adds_and_reads_every_counter():
  clock = _Clock()
  counters = counting.Counters(clock)
  counters.add(agent_steps=3, frames=12)
  counters.add(agent_steps=2, updates=1, episodes=4, trained_steps=5)
  clock.now += 7.5
  assert counters.snapshot() == counting.Counts(5, 12, 1, 4, 5, 7.5)


def test_restore_continues_and_does_not_count_the_time_between():
  clock = _Clock()
  counters = counting.Counters(clock)
  clock.now += 50.0
  counters.restore(counting.Counts(agent_steps=10, frames=20, wall_s=30.0))
  clock.now += 2.0
  counters.add(agent_steps=1)
  assert counters.snapshot() == counting.Counts(agent_steps=11, frames=20, wall_s=32.0)


def test_restoring_a_snapshot_is_exact():
  clock = _Clock()
  first, second = counting.Counters(clock), counting.Counters(clock)
  first.add(agent_steps=1, frames=2, updates=3, episodes=4, trained_steps=5)
  clock.now += 1.25
  second.restore(first.snapshot())
  assert second.snapshot() == counting.Counts(1, 2, 3, 4, 5, 1.25)


def test_a_clock_that_goes_back_does_not_decrease_wall_s():
  clock = _Clock()
  counters = counting.Counters(clock)
  counters.restore(counting.Counts(wall_s=5.0))
  clock.now -= 3.0
  assert counters.snapshot().wall_s == 5.0


def test_refuses_to_decrease():
  counters = counting.Counters()
  with pytest.raises(ValueError, match='never decrease'):
    counters.add(agent_steps=5, frames=-1)
  assert counters.snapshot().agent_steps == 0


def test_numpy_counts_become_python_integers():
  counters = counting.Counters()
  counters.add(agent_steps=np.int32(2**31 - 1))
  counters.add(agent_steps=np.int32(1))
  steps = counters.snapshot().agent_steps
  assert steps == 2**31 and type(steps) is int


def test_two_adds_at_once_are_both_counted(monkeypatch):
  def slow_counts(*values):
    time.sleep(0.005)  # between reading the old counts and storing the new ones
    return real(*values)

  real = counting.Counts
  counters = counting.Counters()
  monkeypatch.setattr(counting, 'Counts', slow_counts)
  threads = [threading.Thread(target=lambda: counters.add(updates=1)) for _ in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert counters.snapshot().updates == 8


def test_adds_of_many_threads_are_all_counted_and_never_seen_apart():
  counters = counting.Counters()
  torn = []

  def add():
    for _ in range(3000):
      counters.add(agent_steps=1, frames=4)
      counts = counters.snapshot()
      if counts.frames != 4 * counts.agent_steps:
        torn.append(counts)

  threads = [threading.Thread(target=add) for _ in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert counters.snapshot().agent_steps == 12000
  assert not torn


def test_agreed_counters_say_what_was_agreed_and_count_for_themselves():
  clock = _Clock()
  counters = counting.AgreedCounters(clock)
  counters.add(agent_steps=3, frames=12, episodes=1, updates=2, trained_steps=9)
  assert counters.agent_steps == 0
  counters.agree(counting.Counts(agent_steps=10, frames=40, episodes=4, wall_s=8.0))
  clock.now += 5.0
  counters.add(agent_steps=1)
  assert counters.agent_steps == 10
  assert counters.snapshot() == counting.Counts(10, 40, 2, 4, 9, 8.0)
  assert counters.own() == counting.Counts(4, 12, 2, 1, 9, 5.0)


def test_agreed_counters_begin_with_what_is_restored():
  """A checkpoint is saved before the hosts have exchanged counts."""
  counters = counting.AgreedCounters(_Clock())
  counts = counting.Counts(10, 40, 2, 4, 9, 8.0)
  counters.restore(counts)
  assert counters.snapshot() == counters.own() == counts
