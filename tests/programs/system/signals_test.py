"""The signals that ask a program to end, and the handlers that are called."""

import signal
import subprocess
import sys
import threading

import pytest

from seed_acme.programs.system import signals

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers():
  """Sets the default handlers, and restores the previous ones afterwards."""
  before = {number: signal.getsignal(number) for number in _ENDING}
  for number in _ENDING:
    signal.signal(number, signal.SIG_DFL)
  yield
  for number, handler in before.items():
    signal.signal(number, handler)


@pytest.mark.parametrize('number', _ENDING)
def test_each_is_handed_on_within_and_only_there(number):
  heard = []
  with signals.signals_to(heard.append):
    signal.raise_signal(number)
  assert heard == [number]
  assert [signal.getsignal(one) for one in _ENDING] == [signal.SIG_DFL] * 3


def test_a_hangup_that_is_ignored_from_the_start_stays_ignored():
  signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
  heard = []
  signals.leave_hangup_to_parent()
  with signals.signals_to(heard.append):
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGTERM)
  assert heard == [signal.SIGTERM]
  assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_hangup_is_never_the_second_signal_that_kills():
  heard = []
  with signals.signals_to(heard.append):
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
      signal.raise_signal(number)
  assert heard == [signal.SIGHUP, signal.SIGTERM, signal.SIGTERM]


def test_what_is_left_out_is_left_as_it_is():
  heard = []
  signals.answer(heard.append, signal.SIGINT)
  assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
  signal.raise_signal(signal.SIGHUP)
  assert heard == [signal.SIGHUP]


def test_a_process_whose_parent_tells_it_outlives_a_hangup_and_what_it_starts_does_not():
  signals.leave_hangup_to_parent()
  signal.raise_signal(signal.SIGHUP)
  code = 'import os, signal; os.kill(os.getpid(), signal.SIGHUP)'
  assert subprocess.run([sys.executable, '-c', code]).returncode == -signal.SIGHUP


def test_a_handler_of_c_code_stays_and_the_others_are_put_back(monkeypatch):
  """As in a program in C++ that has handlers of its own when it starts Python."""
  getsignal = signal.getsignal
  of_c = {signal.SIGINT, signal.SIGQUIT}
  monkeypatch.setattr(
    signals.signal, 'getsignal', lambda number: None if number in of_c else getsignal(number)
  )
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # stands for the handler in C
  heard = []
  with signals.signals_to(heard.append):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
  with signals.replaced(signal.SIGINT, lambda: heard.append('replaced')):
    signal.raise_signal(signal.SIGINT)
  with signals.kept(signal.SIGQUIT, signal.SIGTERM):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
  assert heard == [signal.SIGTERM]
  assert [getsignal(number) for number in _ENDING] == [signal.SIG_IGN] + 2 * [signal.SIG_DFL]


@pytest.mark.parametrize('is_lost', [False, True])
def test_a_process_leaves_even_if_a_library_loses_the_exception(is_lost):
  code = f"""
import ctypes, signal, time
from seed_acme.programs.system import signals
signals.LOST_S = 1

def call():
  signal.raise_signal(signal.SIGTERM)

with signals.signals_to(lambda number: signals.leave(100 + number)):
  (ctypes.CFUNCTYPE(None)(call) if {is_lost} else call)()
  print('went on', flush=True)
  time.sleep(60)
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=50)
  assert done.returncode == 100 + signal.SIGTERM, done.stderr
  assert done.stdout == ('went on\n' if is_lost else '')


def test_an_event_is_set_though_the_interrupted_thread_holds_its_lock():
  """As it does for a moment in `event.wait`."""
  lock = threading.Lock()

  class Event(threading.Event):
    def set(self):
      with lock:
        super().set()

  event = Event()
  with signals.replaced(signal.SIGTERM, lambda: signals.set_event(event)), lock:
    signal.raise_signal(signal.SIGTERM)
  assert event.wait(60)
