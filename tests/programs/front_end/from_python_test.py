"""`seed_acme.train` in a user's script: its output, callbacks, and how it ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

import seed_acme
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs.front_end import from_python
from seed_acme.programs.front_end import launches
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]

_SETUP = """
import dataclasses, json, os, signal, sys
import seed_acme
from seed_acme.configs import registry

config = registry.load('catch_vtrace')
config = dataclasses.replace(
    config, num_actors=1, environments_per_actor=8, total_steps={steps},
    replay=dataclasses.replace(config.replay, queue_size=32),
    learner=dataclasses.replace(config.learner, log_period_s=0.1),
    checkpoint=dataclasses.replace(config.checkpoint, period_s=1000.0))
"""
_ENDLESS = _SETUP.format(steps=1_000_000_000)


def _python(folder, script):
  path = folder / 'script.py'
  path.write_text(script)
  return subprocess.run(
    [sys.executable, str(path)],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=300,
    env=os.environ,
  )


def _expect_stopped(folder, name, at_least):
  """Checks for an orderly end after `at_least` steps; returns the counts."""
  run = run_directory.RunDirectory(folder / name)
  assert local.read_json(run.summary)['status'] == 'stopped'
  assert not run.failure.exists()
  counts = checkpoint.load(checkpoint.newest(run.checkpoints)).meta['counts']
  assert counts['agent_steps'] >= at_least
  return counts


_LOGGER = """
import json

class Logger:
  def __init__(self, config, run_dir):
    self._file = open(run_dir.parent / f'{config.name}.jsonl', 'a')

  def write(self, agent_steps, metrics):
    print(json.dumps([agent_steps, metrics['updates']]), file=self._file)

  def close(self):
    print(json.dumps('closed'), file=self._file)
    self._file.close()
"""


def test_a_callback_gets_every_row_and_stops_the_run_as_ctrl_c_does(runs):
  """A logger of the user's own, in the learner's process, gets them, too.

  Ctrl-C ends the continuation, and then reaches the caller.
  """
  folder = runs.folder()
  (folder / 'my_logger.py').write_text(_LOGGER)
  result = _python(
    folder,
    _ENDLESS
    + """
import psutil
from seed_acme.loggers import csv_file

config = dataclasses.replace(
    config, learner=dataclasses.replace(config.learner, logger='my_logger:Logger'))

def stop_late(row):
  rows.append(row)
  return row['updates'] >= 5 and len(rows) >= 4

def interrupt_late(row):
  if stop_late(row):
    os.kill(os.getpid(), signal.SIGINT)

def train(on_log):
  return seed_acme.train(config, 'run', launch='single_process', progress=False, on_log=on_log)

handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
for attempt in range(2):  # a run, and its continuation
  rows = []
  before = csv_file.read('run/metrics.csv')['agent_steps'] if attempt else []
  if attempt:
    try:
      train(interrupt_late)
    except KeyboardInterrupt:
      print('KeyboardInterrupt')
  else:
    summary = train(stop_late)
    assert summary['status'] == 'stopped' and summary['run_dir'] == os.path.abspath('run')
  assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
  assert not psutil.Process().children(recursive=True)
  columns = csv_file.read('run/metrics.csv')
  num_new = len(columns['agent_steps']) - len(before)
  assert num_new == len(rows) >= 4, (num_new, len(rows))
  for name in ('agent_steps', 'updates', 'episode/return', 'loss/total'):
    read = [value for value in columns[name][len(before):] if value == value]
    assert read == [row[name] for row in rows if name in row] != [], name
  print(json.load(open('run/summary.json'))['agent_steps'])
""",
  )
  assert result.returncode == 0, result.stderr
  # Nothing else is printed, and nothing at all when the callback stops it.
  assert result.stderr == 'Stopping with a checkpoint; a second signal kills at once.\n'
  first, interrupted, steps = result.stdout.splitlines()
  assert int(first) < int(steps) and interrupted == 'KeyboardInterrupt'
  assert _expect_stopped(folder, 'run', int(steps))['agent_steps'] == int(steps)
  logged = [json.loads(line) for line in (folder / 'catch_vtrace.jsonl').read_text().splitlines()]
  columns = csv_file.read(folder / 'run' / 'metrics.csv')
  assert [row for row in logged if row != 'closed'] == [
    list(row) for row in zip(columns['agent_steps'], columns['updates'])
  ]
  assert logged.count('closed') == 2 and logged[-1] == 'closed'  # once for each start


def test_what_a_callback_raises_ends_the_run_first_and_shows(runs):
  folder = runs.folder()
  result = _python(
    folder,
    _ENDLESS
    + """
calls = []

def fail(row):
  calls.append(row)
  raise LookupError('no such column')

try:
  seed_acme.train(config, 'run', max_restarts=3, on_log=fail)
except LookupError as error:
  print(error, len(calls), os.path.exists('run/summary.json'))
try:
  seed_acme.train(dataclasses.replace(config, seed=7), 'run')
except seed_acme.UserError as error:
  print('refused', 'seed: 1 -> 7' in str(error))
""",
  )
  assert result.returncode == 0, result.stderr
  lines = result.stdout.splitlines()
  assert lines[0] == 'Run: run' and lines[-2:] == ['no such column 1 True', 'refused True']
  assert any(' of 1G steps (0%)' in line for line in lines), 'no line of progress'
  _expect_stopped(folder, 'run', 0)  # the first row may come before the first step


@pytest.mark.parametrize('number', [signal.SIGHUP, signal.SIGTERM])
def test_the_caller_hears_of_the_other_signals_too(tmp_path, number):
  heard = []
  before = signal.signal(number, lambda number, _: heard.append(number))
  try:
    outcome = launches.Outcome(128 + number, {}, None)
    from_python._raise_what_ended_it(outcome, run_directory.RunDirectory(tmp_path))
  finally:
    signal.signal(number, before)
  assert heard == [number]


def test_the_caller_hears_what_failed_and_where(tmp_path):
  run = run_directory.RunDirectory(tmp_path)
  failure = {
    'node': 'single_process',
    'message': 'RuntimeError: the ball fell off the board',
    'log': str(run.logs / 'launcher'),
    'is_user_error': False,
  }
  with pytest.raises(seed_acme.TrainingFailed) as failed:
    from_python._raise_what_ended_it(launches.Outcome(1, {}, failure), run)
  assert str(failed.value).splitlines() == [
    'error in single_process: RuntimeError: the ball fell off the board',
    f'log: {run.logs / "launcher"}',
  ]


def test_wrong_types_are_refused_before_anything_is_made(runs):
  folder = runs.folder()
  result = _python(
    folder,
    _SETUP.format(steps="'many'")
    + """
try:
  seed_acme.train(config, 'run')
except seed_acme.UserError as error:
  print(json.dumps([str(error), os.path.exists('run')]))
""",
  )
  assert result.returncode == 0, result.stderr
  assert json.loads(result.stdout) == ["total_steps ('many') is of type str; expected int", False]
