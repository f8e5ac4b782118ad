"""Many real actors with one learner; scripts/load_actors.py uses a thousand."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.scale, pytest.mark.timeout(900)]
_SCRIPT = pathlib.Path(__file__).parent.parent / 'scripts' / 'load_actors.py'


def _load(*options):
  command = (sys.executable, str(_SCRIPT), '--processes=2', *options)
  return subprocess.run(command, capture_output=True, text=True, timeout=800)


def test_a_hundred_actors_are_answered_while_the_learner_trains():
  done = _load('--actors=100', '--environments=2', '--seconds=2', '--json')
  assert done.returncode == 0, done.stderr
  record = json.loads(done.stdout)
  assert record['connected'] == record['actors'] == 100
  assert record['updates'] > 0 and record['steps_per_s'] > 0
  assert 0 < record['inference_latency_s']['mean'] < 30
  assert record['learner_mib'] < 2 * record['learner_mib_before']


def test_a_learner_that_cannot_start_is_told():
  done = _load('--actors=2', '--config=catsh')
  assert done.returncode != 0 and 'Traceback' not in done.stderr
  assert 'catsh' in done.stderr
