"""Long waits are reported once, with what they wait for."""

import time
import types as python_types

import pytest

from seed_acme.progress import waiting


@pytest.fixture(name='clock')
def _clock(monkeypatch):
  clock = python_types.SimpleNamespace(now=100.0)
  monkeypatch.setattr(waiting, 'time', python_types.SimpleNamespace(monotonic=lambda: clock.now))
  monkeypatch.setattr(waiting, '_waits', {})
  return clock


def test_a_wait_that_lasts_is_told_once_and_the_next_one_again(clock):
  told = []
  watch = waiting.Watch(told.append)
  for _ in range(2):
    with waiting.on('a sample'):
      clock.now += 59
      watch.look()
      assert not told
      clock.now += 1
      watch.look()
      watch.look()
    assert told == ['waiting for a sample, for 60 s by now']
    told.clear()


def test_waits_that_follow_each_other_are_not_one(clock):
  told = []
  watch = waiting.Watch(told.append)
  for _ in range(10):
    with waiting.on('a sample'):
      clock.now += 30
      watch.look()
  assert not told


def test_each_of_several_waits_says_what_it_has_come_to(clock):
  told = []
  watch = waiting.Watch(told.append)
  items = 3
  with pytest.raises(KeyError), waiting.on(lambda: f'samples ({items} items)'):
    with waiting.on('room'):
      clock.now += 60
      items = 5
      watch.look()
    raise KeyError
  assert sorted(told) == [
    'waiting for room, for 60 s by now',
    'waiting for samples (5 items), for 60 s by now',
  ]
  watch.look()
  assert len(told) == 2


def test_its_thread_tells(clock):
  clock.now, told = 1000.0, []
  watch = waiting.Watch(told.append)
  with waiting.on('a sample'):
    clock.now += 60
    watch.start()
    while not told:
      time.sleep(0.001)
  watch.stop()
