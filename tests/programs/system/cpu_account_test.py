"""CPU-seconds of a tree of processes, by kind of node."""

import types as python_types

import psutil
import pytest

from seed_acme.programs.system import cpu_account
from seed_acme.programs.system import processes


class _Process:
  """A made-up process. user, system: its CPU-seconds. below: processes that it started."""

  def __init__(self, pid, kind, user, system, below=()):
    self.pid, self.kind, self.user, self.system, self.below = pid, kind, user, system, list(below)
    self.is_alive = True

  def create_time(self):
    return 100.0 + self.pid

  def environ(self):
    return {} if self.kind is None else {processes.NODE_VARIABLE: self.kind}

  def cpu_times(self):
    if not self.is_alive:
      raise psutil.NoSuchProcess(self.pid)
    return python_types.SimpleNamespace(user=self.user, system=self.system)

  def children(self, recursive=False):
    return [
      found
      for child in self.below
      for found in (child, *(child.children(True) if recursive else ()))
    ]


@pytest.fixture(name='account')
def _account(monkeypatch):
  """`account(root)`: the account of made-up processes."""

  def make(root):
    monkeypatch.setattr(cpu_account.psutil, 'Process', lambda pid: root)
    return cpu_account.CpuAccount(root.pid)

  return make


def test_user_and_system_time_of_all_below_are_added_up_by_kind(account):
  worker = _Process(4, 'actor', 16.0, 0.5)
  root = _Process(
    1,
    'launcher',
    1.0,
    0.25,
    [_Process(2, 'actor', 2.0, 0.5, [worker]), _Process(3, 'learner', 4.0, 1.0)],
  )
  found = account(root)
  assert found.seconds() == {}
  found.sample()
  assert found.seconds() == {'launcher': 1.25, 'actor': 2.5 + 16.5, 'learner': 5.0}
  worker.user = 17.0
  found.sample()  # the last sample counts, not the sum of samples
  assert found.seconds()['actor'] == 2.5 + 17.5


def test_what_a_process_used_stays_when_it_has_ended(account):
  actor = _Process(2, 'actor', 2.0, 0.0)
  root = _Process(1, 'launcher', 1.0, 0.0, [actor])
  found = account(root)
  found.sample()
  actor.is_alive = False
  found.sample()
  root.below = [_Process(3, 'actor', 3.0, 0.0)]
  found.sample()
  assert found.seconds() == {'launcher': 1.0, 'actor': 5.0}


def test_a_process_that_becomes_a_node_later_is_counted_as_that(account):
  child = _Process(2, None, 1.0, 0.0)
  found = account(_Process(1, 'launcher', 0.0, 0.0, [child]))
  found.sample()
  assert found.seconds()['other'] == 1.0
  child.kind, child.user = 'learner', 2.0
  found.sample()
  assert found.seconds() == {'launcher': 0.0, 'learner': 2.0}
