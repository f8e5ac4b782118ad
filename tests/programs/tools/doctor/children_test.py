"""Interrupted checks in child processes."""

import subprocess
import sys
import threading

import pytest

from seed_acme.programs.tools.doctor import children


def test_an_interruption_kills_the_children_and_starts_no_more(tmp_path):
  begun = tmp_path / 'begun'
  begun.write_text('')
  started = threading.Event()

  def check(number):
    with begun.open('a') as file:
      file.write(f'{number}\n')
    with subprocess.Popen(
      [sys.executable, '-c', 'import time; print(flush=True); time.sleep(600)'],
      stdout=subprocess.PIPE,
    ) as process:
      process.stdout.readline()
      started.set()
      return process.wait()

  with pytest.raises(KeyboardInterrupt), children.pool(1) as pool:
    results = [pool.submit(check, number) for number in range(3)]
    started.wait()
    raise KeyboardInterrupt
  assert results[0].result() == -9
  assert all(result.cancelled() for result in results[1:])
  assert begun.read_text() == '0\n'


def test_all_checks_end_without_an_interruption():
  with children.pool(2) as pool:
    results = [pool.submit(pow, 2, n) for n in range(5)]
  assert [result.result() for result in results] == [1, 2, 4, 8, 16]
