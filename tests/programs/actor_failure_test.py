"""An actor's worker is killed, or its environment fails: the effects on data and output."""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading

import numpy as np
import psutil
import pytest
import reverb

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.inference import batching
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.transport import sessions
from seed_acme.transport import transports

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_PID_SCALE = 2.0**-22  # as in drill_environments.py
_FORBIDDEN = ('tensorflow', 'reverb', 'sonnet', 'launchpad', 'matplotlib', 'psutil')


class _Rows:
  """A reader of a live run's unrolls, which takes them from the queue before its learner does.

  The run has a replay process, because a learner that serves the table itself keeps its unrolls.
  """

  def __init__(self, run):
    addresses = local.read_json(run.run_dir.addresses)
    self._client = reverb.Client(addresses['replay'])

  def pids(self, num_items):
    """Returns process ids in `num_items` items, `[unrolls, rows]`; 0 in padding rows."""
    found = []
    for sample in self._client.sample('unrolls', num_items, emit_timesteps=False):
      data = sample.data
      # Leaves are in the order of `types.Unroll` (no recurrent state): inputs come first.
      step_type, observation = data[0], data[4]
      assert step_type.dtype == np.uint8
      pids = np.rint(observation[..., -1] / _PID_SCALE).astype(np.int64)
      is_padding = (step_type == types.LAST) & (observation == 0).all(axis=-1)
      found.append(np.where(is_padding, 0, pids))
    return np.concatenate(found)


def _processes_of(unroll):
  return set(unroll.tolist()) - {0}


def test_a_killed_worker_is_started_anew_and_no_unroll_mixes_its_runs(runs, until):
  folder = runs.folder()
  report = folder / 'modules.json'
  run = runs.train(
    runs.endless,
    '--config.replay.separate_process=True',
    # All nodes start slower than this, and actors and learner wait for them all the same.
    '--config.actor.connect_timeout_s=0.1',
    '--config.environment.id=drill_environments:Marked',
    '--config.environment.settings',
    'report',
    str(report),
    folder=folder,
  )
  run.wait_for_updates(20)
  rows = _Rows(run)
  seen = [run.wait_for_node('actor').pid]
  unrolls = [rows.pids(20)]
  for number in (signal.SIGKILL, signal.SIGTERM):
    updates = run.status()['updates']
    os.kill(seen[-1], number)
    until(lambda: [p for p in run.nodes('actor') if p.pid not in seen], 'a new worker')
    seen.append(run.nodes('actor')[0].pid)
    until(lambda: unrolls.append(rows.pids(1)) or seen[-1] in unrolls[-1], 'rows of the new worker')
    unrolls.append(rows.pids(20))
    run.wait_for_updates(10, since=updates)
  sources = [_processes_of(unroll) for group in unrolls for unroll in group]
  assert set().union(*sources) == set(seen)
  assert all(len(pids) == 1 for pids in sources)
  *of_ended, of_last = map(int, report.with_suffix('.programs').read_text().split())
  assert psutil.pid_exists(of_last) and not any(map(psutil.pid_exists, of_ended))
  assert set(json.loads(report.read_text())).isdisjoint(_FORBIDDEN)
  log = run.log('actor/0')
  assert 'worker failed (killed by SIGKILL), failure 1 of 3 in a row' in log
  assert 'worker failed (exit code 143), failure 2 of 3 in a row' in log
  # The second one is in the log alone.
  failures = [line for line in run.stderr.splitlines() if 'worker failed' in line]
  assert failures == [
    'Notice: actor/0: worker failed (killed by SIGKILL), failure 1 of 3 in a row, 1 in all'
  ]
  report.with_suffix('.nan').touch()  # the third time it is a reward that is NaN
  assert run.wait() == 2
  assert run.nodes() == []
  assert run.failure()['is_user_error'] is True
  # Notices: the learner misses the unrolls that this test has taken out of its queue, and the
  # environment's program was left to the worker that was ended by SIGTERM.
  [message] = [line for line in run.stderr.splitlines() if not line.startswith('Notice: ')]
  assert message == (
    'error: actor/0: the worker failed 3 times in a row (actor.max_failures), the last time with '
    'environment 0 of drill_environments:Marked: reward: expected a finite scalar, got nan'
  )


@contextlib.contextmanager
def _answered(node):
  """Serves an actor's node as its learner would, with action 0 for everyone."""
  batcher = batching.Batcher(8, 0.0, lambda: True, lambda request: False)
  desk = sessions.SessionDesk(lambda env_id: batcher, None, 8, 8, node.links.token)
  transport, path = node.sections.transport, node.folder.path
  [server] = transports.serve_beside(transport, desk, batcher.loop, path, 1 << 20)
  server.start()
  ended = threading.Event()

  def answer():
    while not ended.is_set():
      for pending in batcher.next_batch(0.1):
        pending.answer(np.zeros(pending.request.env_ids.size, np.int32))

  thread = threading.Thread(target=answer, daemon=True)
  thread.start()
  try:
    yield
  finally:
    server.stop()
    ended.set()
    thread.join()
    batcher.loop.close()


def _config(environment, settings, **actor):
  config = registry.load('catch_vtrace')
  return dataclasses.replace(
    config,
    num_actors=1,
    environments_per_actor=8,
    num_evaluation_environments=0,
    environment=config_lib.EnvironmentConfig(f'drill_environments:{environment}', settings),
    network=dataclasses.replace(config.network, mlp_sizes=(8,)),
    actor=dataclasses.replace(config.actor, **actor),
  )


@pytest.fixture
def folder(runs, monkeypatch):
  """The working folder of this process."""
  folder = runs.folder()
  monkeypatch.chdir(folder)
  monkeypatch.syspath_prepend(folder)
  yield folder
  sys.modules.pop('drill_environments', None)


@pytest.fixture
def fail(folder):
  """`fail(environment, settings, ...)`: lets an actor's node run, without the other nodes, until it
  fails; returns its exit code, the record of its failure and the notices."""

  def fail(environment, settings, **actor):
    run = run_directory.create(folder / 'run')
    node = node_lib.Node(
      sections_lib.split(_config(environment, settings, **actor)).actors[0],
      node_lib.Links('token', 'localhost:1'),
      run,
      lives.OnThisMachine(threading.Event()),
    )
    with _answered(node), pytest.raises(SystemExit) as ended:
      node.life.actor(node)
    notices = run.notices.read_text().splitlines() if run.notices.exists() else []
    return ended.value.code, processes.read_failure(run), notices

  return fail


def test_an_environment_that_raises_ends_the_run_with_one_short_message(fail, capfd):
  code, failure, _ = fail('Raising', {'at_step': 30})
  assert code == 1 and failure['node'] == 'actor/0'
  assert failure['message'] == (
    'the worker failed 3 times in a row (actor.max_failures), the last time with '
    'RuntimeError: the ball fell off the board'
  )
  assert 'Traceback (most recent call last)' in capfd.readouterr().err


def test_an_environment_that_hangs_costs_its_worker(fail, folder, capfd):
  code, failure, notices = fail(
    'Hanging', {'mark': str(folder / 'mark')}, step_timeout_s=4.0, max_failures=1
  )
  assert code == 1 and failure['message'].endswith('(actor.step_timeout_s)')
  slow, hung = notices
  assert slow.startswith(
    'actor/0: environment drill_environments:Hanging is slow: step() of environments 0 ... 7 took '
  )
  assert hung == (
    'actor/0: environment drill_environments:Hanging hangs: step() of environments '
    '0 ... 7 has not returned for 4 s (actor.step_timeout_s): its worker was ended, failure 1 '
    'of 1 in a row, 1 in all; the log says where it stood'
  )
  assert not processes.is_alive(int((folder / 'mark').read_text()))
  stack = capfd.readouterr().err.partition('most recent call first')[2]
  assert 'drill_environments.py", line' in stack and 'in _hang' in stack


def test_an_environment_that_always_hangs_ends_the_run_with_its_name(fail):
  code, failure, _ = fail('never_made', {}, reset_timeout_s=2.0, max_failures=2)
  assert code == 1 and failure['message'] == (
    'the worker failed 2 times in a row (actor.max_failures), the last time '
    'with environment drill_environments:never_made hangs: the making of environments 0 ... 7 '
    'has not returned for 2 s (actor.reset_timeout_s)'
  )


_WRONG = 'environment 0 of drill_environments:WrongReward: reward: expected a finite scalar, got '


def test_a_reward_that_is_nan_costs_its_worker_and_at_last_the_run(fail, capfd):
  code, failure, _ = fail('WrongReward', {}, max_failures=2)
  assert code == 2 and failure['is_user_error']
  assert failure['message'] == (
    'actor/0: the worker failed 2 times in a row (actor.max_failures), '
    f'the last time with {_WRONG}nan'
  )
  said = capfd.readouterr()
  assert f'worker failed ({_WRONG}nan), failure 1 of 2 in a row' in said.out
  assert 'Traceback' not in said.out + said.err


def test_a_reward_of_another_type_ends_the_run_at_once(fail, capfd):
  code, failure, _ = fail('WrongReward', {'reward': '[1.0]'})
  assert code == 2 and failure['is_user_error']
  assert failure['message'] == _WRONG + '[1.0]'
  assert 'failure 1 of' not in capfd.readouterr().out


def test_without_workers_a_reward_that_is_nan_ends_the_run_at_once(folder):
  config = _config('WrongReward', {})
  with pytest.raises(types.UserError) as error:
    single_process.run(config, run_directory.create(folder / 'run'))
  assert str(error.value) == _WRONG + 'nan'


def test_an_error_of_close_is_told_once_and_the_run_has_finished(runs):
  """In one process: `single_process_test.py`."""
  environment = 'drill_environments:Unclosable'
  run = runs.train('--config.total_steps=3000', f'--config.environment.id={environment}')
  run.expect_finished(3000)
  assert run.failure() is None
  [notice] = run.stderr.splitlines()
  assert f'environment {environment}: close() raised RuntimeError: the window is gone (' in notice


def test_of_a_thread_that_hangs_the_user_is_told(folder):
  run = run_directory.create(folder / 'run')
  config = _config('Hanging', {'slow_s': 2.5}, step_timeout_s=1.0)
  is_told = lambda: run.notices.exists() and 'is slow: ' in run.notices.read_text()
  assert single_process.run(config, run, is_told) == training_loop.STOPPED
  hung, slow = run.notices.read_text().splitlines()
  assert hung == (
    'actor/0: environment drill_environments:Hanging hangs: step() of environments '
    '0 ... 7 has not returned for 1 s (actor.step_timeout_s): a thread cannot be ended, a '
    'worker of --launch=local_mp would be started anew; Ctrl-C ends the run'
  )
  assert 'is slow: step() of environments 0 ... 7 took ' in slow
