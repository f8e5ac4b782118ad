"""The tests in DeepMind's wheel for courier and Launchpad pass without changes."""

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# Modules by process, and their numbers of tests. Those that launch programs leave signal handlers.
_PROCESSES = (
  {'courier.python.client_test': 17},
  {'launchpad.examples.consumer_producers.launch_test': 1},
  {'launchpad.launch.test_multi_processing.launch_test': 7},
  {'launchpad.launch.test_multi_threading.launch_test': 6},
  {'launchpad.launch.worker_manager_test': 11},
  {'launchpad.nodes.multi_threading_colocation.node_test': 7},
  {
    'launchpad.launch.run_locally.decorate_output_test': 1,
    'launchpad.launch.serialization_test': 4,
    'launchpad.launch.signal_handling_test': 3,
    'launchpad.nodes.multi_processing_colocation.node_test': 4,
    'launchpad.program_test': 9,
    'launchpad.nodes.courier.node_test': 2,
    'launchpad.nodes.reverb.node_test': 1,
  },
)


@pytest.mark.parametrize('numbers', _PROCESSES, ids=lambda numbers: next(iter(numbers)))
def test_they_pass(tmp_path, numbers):
  done = subprocess.run(
    [sys.executable, '-m', 'tests.launchpad_wheel.own_runner', *numbers],
    # Launchpad starts processes with `_`, the last program that a shell called, which not every
    # test launcher sets.
    env={**os.environ, 'TMPDIR': str(tmp_path), '_': sys.executable},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=250,
    check=False,
  )
  assert done.returncode == 0, done.stdout[-5000:]
  ran = [int(number) for number in re.findall(r'^Ran (\d+) tests? in', done.stdout, re.MULTILINE)]
  assert ran == list(numbers.values()), done.stdout[-5000:]
