"""A run that makes no progress is reported, with a simulated clock."""

import pytest

from seed_acme.programs.front_end import stall


class _Run:
  """A stall detector that is polled ten times a second."""

  def __init__(self, limit_s=60.0):
    self.now = 1000.0
    self._stall = stall.Stall(limit_s, clock=lambda: self.now)
    self._time_s = 0.0

  def spend(self, seconds, is_silent=False, **status):
    """Lets time pass; returns the last message."""
    said = ''
    for tenth in range(round(10 * seconds)):
      self.now += 0.1
      if tenth % 10 == 0 and not is_silent:
        self._time_s += 1.0
      said = self._stall.look({'time_s': self._time_s, **status})
    return said


def test_a_run_that_goes_on_is_nobodys_trouble():
  run = _Run()
  for updates in range(100):
    assert run.spend(30, updates=updates, agent_steps=7) == ''


def test_steps_without_updates_are_progress_as_a_memory_fills():
  run = _Run()
  for steps in range(100):
    assert run.spend(30, updates=0, agent_steps=steps) == ''


def test_after_the_limit_it_names_whom_it_waits_for():
  run = _Run()
  assert run.spend(59, updates=3, agent_steps=7, waits_for='a batch of 16 unrolls') == ''
  assert run.spend(40, updates=3, agent_steps=7, waits_for='a batch of 16 unrolls') == (
    'no progress for 1:38: waiting for a batch of 16 unrolls'
  )
  assert run.spend(1, updates=4, agent_steps=7) == ''


@pytest.mark.parametrize('phase', ['building the network', 'saving the replay memory'])
def test_a_phase_names_itself(phase):
  assert _Run().spend(100, phase=phase).endswith(f': {phase}')


def test_a_learner_that_hangs_cannot_say_so_itself():
  run = _Run()
  run.spend(1, updates=3, agent_steps=7)
  assert 'the learner says nothing any more' in run.spend(100, True, updates=3, agent_steps=7)


def test_time_in_which_nobody_looked_does_not_count():
  run = _Run()
  run.spend(1, updates=3)
  run.now += 10_000  # the host was suspended
  assert run.spend(1, updates=3) == ''


def test_who_looks_seldom_says_so():
  """A learner in a container looks only as often as it copies its run."""
  now = [0.0]
  watch = stall.Stall(60.0, longest_gap_s=20.0, clock=lambda: now[0])
  said = []
  for _ in range(8):
    now[0] += 10.0
    said.append(watch.look({'updates': 3, 'time_s': now[0], 'waits_for': 'data'}))
  assert said[5] == '' and said[-1] == 'no progress for 1:10: waiting for data'


def test_0_turns_it_off():
  assert _Run(limit_s=0.0).spend(1000, updates=3) == ''
