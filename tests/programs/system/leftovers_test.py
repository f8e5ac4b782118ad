"""Threads and programs left by environments do not delay the end of a process."""

import subprocess
import sys
import time

import pytest

from seed_acme.programs.system import processes

_CODE = """
import subprocess, sys, threading, time
from seed_acme.programs.system import leftovers
threading.Thread(target=time.sleep, args=(600,), name='simulator').start()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()  # holds up nothing
child = subprocess.Popen(['sh', '-c', 'sleep 600 & echo $!; wait'], stdout=subprocess.PIPE)
grandchild = int(child.stdout.readline())
while open(f'/proc/{grandchild}/comm').read() != 'sleep\\n':
  time.sleep(0.01)  # it bears its parent's name until it runs its own program
print(child.pid, grandchild)
print(leftovers.describe())
leftovers.leave(7)
"""


def test_threads_and_programs_are_named_and_ended(tmp_path):
  # A file, because a program that survived would hold a pipe open.
  with open(tmp_path / 'said', 'w') as said:
    done = subprocess.run([sys.executable, '-c', _CODE], stdout=said, timeout=60, check=False)
  pids, words = (tmp_path / 'said').read_text().splitlines()
  assert done.returncode == 7
  assert words == '1 thread (simulator) and 2 programs (sh, sleep)'
  give_up = time.monotonic() + 30  # a killed process ends a moment later
  while any(processes.is_alive(int(pid)) for pid in pids.split()):
    assert time.monotonic() < give_up
    time.sleep(0.02)


def test_nothing_is_said_of_nothing():
  code = 'from seed_acme.programs.system import leftovers; print(repr(leftovers.describe()))'
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout == "''\n"


def test_what_python_keeps_beside_spawned_processes_is_not_named():
  """A vector of gymnasium with a process for each environment starts such a tracker."""
  code = """
import multiprocessing, time
from seed_acme.programs.system import leftovers
child = multiprocessing.get_context('spawn').Process(target=time.sleep, args=(0,))
child.start()
child.join()
print(len(leftovers._programs()), repr(leftovers.describe()))
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout == "1 ''\n"


def test_what_was_registered_for_the_end_is_called_where_nothing_is_left():
  code = """
import atexit
from seed_acme.programs.system import leftovers
atexit.register(print, 'recordings are written')
leftovers.end(7)
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
  assert (done.returncode, done.stdout) == (7, 'recordings are written\n')


@pytest.mark.timeout(60)
def test_a_thread_that_is_left_does_not_hold_up_an_end():
  code = """
import threading, time
from seed_acme.programs.system import leftovers
threading.Thread(target=time.sleep, args=(600,)).start()
leftovers.end(7)
"""
  assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 7
