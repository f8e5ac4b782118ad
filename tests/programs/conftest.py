"""Real runs of the command line, for the tests of this folder.

`start(...)` returns a `Run` at once. Tests wait for states, never for times; `HANG_S` only
ends a test that would otherwise hang.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest

from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

HANG_S = 150.0
_DRILL_VARIABLE = 'SEED_ACME_DRILL'  # distinguishes the processes of one run from all others
_HERE = pathlib.Path(__file__).parent
_COMMAND = pathlib.Path(sys.executable).with_name('seed-acme')
SMALL = (
  '--config.num_actors=1',
  '--config.environments_per_actor=8',
  '--config.network.mlp_sizes',
  '16',
  '--config.agent.unroll_length=9',
  '--config.agent.batch_size=8',
  '--config.replay.unrolls_per_item=8',
  '--config.replay.queue_size=16',
  '--config.learner.log_period_s=0.1',
  '--config.checkpoint.period_s=0.5',
)
ENDLESS = '--config.total_steps=1000000000'


def wait_until(is_so, what, timeout_s=HANG_S):
  """Polls until `is_so()` is true, and returns its result."""
  give_up = time.monotonic() + timeout_s
  while True:
    value = is_so()
    if value:
      return value
    assert time.monotonic() < give_up, f'{what} did not come about within {timeout_s:g} s'
    time.sleep(0.05)


class Run:
  """A `seed-acme` command in a session and process group of its own."""

  def __init__(self, arguments, folder):
    self.folder = pathlib.Path(folder)
    self._mark = uuid.uuid4().hex
    self._stdout = self.folder / f'{self._mark}.stdout'
    self._stderr = self.folder / f'{self._mark}.stderr'
    with open(self._stdout, 'w') as out, open(self._stderr, 'w') as err:
      self.process = subprocess.Popen(
        [_COMMAND, *map(str, arguments)],
        cwd=self.folder,
        stdout=out,
        stderr=err,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, _DRILL_VARIABLE: self._mark},
      )
    given = [str(a).partition('=')[2] for a in arguments if str(a).startswith('--run_dir=')]
    self.run_dir = run_directory.RunDirectory(self.folder / given[0]) if given else None

  @property
  def stdout(self):
    return self._stdout.read_text()

  @property
  def stderr(self):
    """Standard error, without the progress of a trial that is slow on a busy machine."""
    lines = self._stderr.read_text().splitlines(keepends=True)
    return ''.join(line for line in lines if not line.startswith('Trying environment '))

  def wait(self, timeout_s=HANG_S):
    """Waits for the end; returns the exit code."""
    return self.process.wait(timeout_s)

  def nodes(self, kind=None):
    """Returns its live processes below the front end, or those of one kind of node."""
    found = []
    for process in psutil.process_iter():
      try:
        variables = process.environ()
        if (
          variables.get(_DRILL_VARIABLE) == self._mark
          and processes.is_alive(process.pid)
          and process.pid != self.process.pid
          and kind in (None, variables.get(processes.NODE_VARIABLE))
        ):
          found.append(process)
      except (psutil.NoSuchProcess, psutil.AccessDenied):
        continue
    return found

  def wait_for_node(self, kind):
    return wait_until(lambda: self.nodes(kind) or self.check_runs(), f'a process of {kind}')[0]

  def check_runs(self):
    code = self.process.poll()
    assert code is None, f'the run ended with {code}: {self.stdout}{self.stderr}'

  def status(self):
    path = self.run_dir.status
    return local.read_json(path) if path.exists() else {}

  def wait_for_updates(self, number=1, since=0):
    """Waits until the training loop has made this many updates more than `since`."""
    wait_until(
      lambda: self.status().get('updates', 0) >= since + number or self.check_runs(),
      f'update {since + number}',
    )

  def failure(self):
    return processes.read_failure(self.run_dir)

  def summary(self):
    return local.read_json(self.run_dir.summary)

  def expect_finished(self, steps):
    """Waits for the end; checks the steps and that no process is left; returns the summary."""
    assert self.wait() == 0, self.stderr
    assert self.nodes() == []
    summary = self.summary()
    assert summary['status'] == 'finished'
    assert steps <= summary['agent_steps'] < 2 * steps
    return summary

  def metrics(self):
    return csv_file.read(self.run_dir.metrics)

  def log(self, name):
    return (self.run_dir.logs / name).read_text()

  def kill_everything(self):
    for process in [*self.nodes(), self.process]:
      try:
        process.send_signal(signal.SIGKILL)
      except (psutil.NoSuchProcess, ProcessLookupError):
        continue
    self.process.wait()


class Runs:
  """A starter of runs that also ends them, so that none outlives the tests."""

  small = SMALL
  # Two actors or hosts, each of which contributes half of an update of 8 unrolls.
  strictly_on_policy = (
    '--config=cartpole_ppo',
    '--config.learner.xla=False',
    '--config.environments_per_actor=4',
    '--config.inference.strictly_on_policy=True',
    '--config.agent.batch_size=8',
    '--config.agent.minibatch_size=0',
    '--config.agent.minibatch_of=unrolls',
    '--config.replay.queue_size=8',
  )
  endless = ENDLESS

  def __init__(self, factory):
    self._factory = factory
    self._started = []

  def folder(self):
    """Makes a working folder, with the drills' environments and networks as a user's files."""
    folder = self._factory.mktemp('work')
    for path in _HERE.glob('drill_*.py'):
      shutil.copy(path, folder)
    return folder

  def start(self, *arguments, folder=None):
    run = Run(arguments, folder or self.folder())
    self._started.append(run)
    return run

  def train(self, *arguments, run_dir='run', folder=None):
    """Starts a small training run in `folder/run_dir`."""
    return self.start('train', *SMALL, f'--run_dir={run_dir}', *arguments, folder=folder)

  def stop(self):
    while self._started:
      self._started.pop().kill_everything()


@pytest.fixture(scope='session')
def all_runs(tmp_path_factory):
  started = Runs(tmp_path_factory)
  yield started
  started.stop()


@pytest.fixture(scope='session')
def runs(all_runs):
  return all_runs


@pytest.fixture(scope='module', autouse=True)
def _end_runs(all_runs):
  """Ends runs that a module's tests have left, because they would slow down later ones."""
  yield
  all_runs.stop()


@pytest.fixture(scope='session')
def until():
  return wait_until


def _digest(folder):
  """Returns a digest of all files in a folder, by name and content."""
  digest = hashlib.sha256()
  for path in sorted(pathlib.Path(folder).rglob('*')):
    digest.update(str(path.relative_to(folder)).encode())
    if path.is_file():
      digest.update(path.read_bytes())
  return digest.hexdigest()


@pytest.fixture(scope='session')
def digest():
  return _digest


def _one_json(text):
  lines = text.strip().splitlines()
  assert len(lines) == 1, text
  return json.loads(lines[0])


@pytest.fixture(scope='session')
def one_json():
  """Parses an output that must be one line of JSON."""
  return _one_json
