"""Phase timers with a simulated clock; latency summaries against exact values."""

import threading

import numpy as np
import pytest

from seed_acme.progress import timing


class _Clock:
  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now

  def pass_s(self, seconds):
    self.now += seconds


@pytest.fixture(name='clock')
def _clock():
  return _Clock()


def test_phases_and_the_rest_add_up_to_the_elapsed_time(clock):
  timer = timing.PhaseTimer(clock)
  clock.pass_s(1)
  with timer.phase('step'):
    clock.pass_s(2)
  timer.start('wait')
  clock.pass_s(4)
  timer.stop()
  clock.pass_s(1)
  assert timer.snapshot() == {'other': 2.0, 'step': 2.0, 'wait': 4.0}
  assert timer.shares() == {'other': 0.25, 'step': 0.25, 'wait': 0.5}


def test_an_inner_phase_interrupts_the_outer_one(clock):
  timer = timing.PhaseTimer(clock)
  with timer.phase('outer'):
    clock.pass_s(1)
    with timer.phase('inner'):
      clock.pass_s(10)
    clock.pass_s(2)
  clock.pass_s(5)
  assert timer.snapshot() == {'outer': 3.0, 'inner': 10.0, 'other': 5.0}


def test_the_same_phase_within_itself(clock):
  timer = timing.PhaseTimer(clock)
  with timer.phase('a'):
    clock.pass_s(1)
    with timer.phase('a'):
      clock.pass_s(1)
    clock.pass_s(1)
  clock.pass_s(7)
  assert timer.snapshot() == {'a': 3.0, 'other': 7.0}


def test_an_exception_ends_its_phase(clock):
  timer = timing.PhaseTimer(clock)
  with pytest.raises(KeyError):
    with timer.phase('a'):
      clock.pass_s(1)
      raise KeyError
  clock.pass_s(2)
  assert timer.snapshot() == {'a': 1.0, 'other': 2.0}


def test_a_phase_under_way_is_seen(clock):
  timer = timing.PhaseTimer(clock)
  timer.start('wait')
  clock.pass_s(3)
  assert timer.snapshot()['wait'] == 3.0
  clock.pass_s(2)
  assert timer.snapshot()['wait'] == 5.0


def test_reset_keeps_the_running_phase(clock):
  timer = timing.PhaseTimer(clock)
  timer.start('wait')
  clock.pass_s(3)
  timer.reset()
  clock.pass_s(1)
  assert timer.snapshot() == {'other': 0.0, 'wait': 1.0}


def test_merge_difference_and_shares():
  first, second = {'a': 1.0, 'b': 2.0}, {'a': 3.0, 'c': 4.0}
  assert timing.merge(first, second) == {'a': 4.0, 'b': 2.0, 'c': 4.0}
  assert timing.merge() == {}
  assert timing.difference({'a': 5.0, 'b': 1.0}, {'a': 2.0}) == {'a': 3.0, 'b': 1.0}
  assert timing.shares({'a': 0.0}) == {'a': 0.0}


def test_a_phase_that_changes_while_a_snapshot_is_taken():
  """The owner changes the phase while the reader reads the clock."""
  interruptions = iter([lambda: None, lambda: None, lambda: timer.start('b')])
  clock = _Clock()

  def read_clock():
    clock.pass_s(1)
    now = clock.now
    next(interruptions, lambda: None)()
    return now

  timer = timing.PhaseTimer(read_clock)
  timer.start('a')
  seconds = timer.snapshot()
  assert sum(seconds.values()) == clock.now - 1.0  # all time since construction, counted once


class _SlowName(str):
  """The name of a phase, which lets a reader run while the owner is changing it."""

  reader = None

  def __hash__(self):
    if self.reader is not None and not self.reader.ident:
      self.reader.start()
      self.reader.join(timeout=0.2)
    return super().__hash__()


def test_a_reader_in_the_middle_of_a_change_waits_for_its_end(clock):
  timer = timing.PhaseTimer(clock)
  snapshots, name = [], _SlowName('a')
  name.reader = threading.Thread(target=lambda: snapshots.append(timer.snapshot()))
  clock.pass_s(5)
  timer.start(name)
  name.reader.join()
  assert snapshots == [{'other': 5.0, 'a': 0.0}]


def test_latencies_of_few_values_are_exact():
  latencies = timing.Latencies(num_newest=100)
  for value in range(1, 101):
    latencies.add(value)
  summary = latencies.summary()
  assert summary['count'] == 100 and summary['mean'] == 50.5 and summary['max'] == 100.0
  assert summary['p95'] == pytest.approx(np.percentile(np.arange(1, 101), 95))


def test_mean_and_maximum_cover_everything_and_the_percentile_the_newest():
  latencies = timing.Latencies(num_newest=1000)
  latencies.add(1e6)
  for value in range(20000):
    latencies.add(float(value))
  summary = latencies.summary()
  assert summary['count'] == 20001 and summary['max'] == 1e6
  assert summary['mean'] == pytest.approx((1e6 + np.arange(20000).sum()) / 20001)
  assert summary['p95'] == pytest.approx(np.percentile(np.arange(19000, 20000), 95))


def test_latencies_empty_and_reset():
  latencies = timing.Latencies()
  zeros = {'count': 0, 'mean': 0.0, 'p95': 0.0, 'max': 0.0}
  assert latencies.summary() == zeros
  latencies.add(-2.0)
  assert latencies.summary()['max'] == -2.0
  latencies.reset()
  assert latencies.summary() == zeros
