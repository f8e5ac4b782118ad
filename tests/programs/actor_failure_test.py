"""An actor's worker is killed, or its environment fails: the effects on data and output."""

import json
import os
import signal

import numpy as np
import pytest
import reverb

from seed_acme import types
from seed_acme.files import local

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
  assert set(json.loads(report.read_text())).isdisjoint(_FORBIDDEN)
  log = run.log('actor/0')
  assert 'worker failed (killed by SIGKILL), failure 1 of 3 in a row' in log
  assert 'worker failed (exit code 143), failure 2 of 3 in a row' in log
  os.kill(seen[-1], signal.SIGKILL)
  assert run.wait() == 1
  assert run.nodes() == []
  notices = [line for line in run.stderr.splitlines() if line.startswith('Notice: ')]
  message, where = [line for line in run.stderr.splitlines() if line not in notices]
  # The learner misses the unrolls that this test has taken out of its queue, and the environment's
  # program was left to the worker that was ended by SIGTERM.
  assert all(
    'unrolls are lost' in notice or '1 program (sleep) still ran' in notice for notice in notices
  )
  assert message == (
    'error in actor/0: the worker failed 3 times in a row (actor.max_failures), '
    'the last time with killed by SIGKILL'
  )
  assert where == f'log: {run.run_dir.logs / "actor" / "0"}'


def test_actors_and_learner_wait_for_nodes_that_start_slower_than_the_limit(runs):
  run = runs.train(
    '--config.total_steps=2000',
    '--config.actor.connect_timeout_s=0.1',
    '--config.replay.separate_process=True',
  )
  assert run.wait() == 0, run.stderr
  assert run.summary()['status'] == 'finished'


@pytest.mark.parametrize(
  'launch, node, log',
  [('local_mp', 'actor/0', 'actor/0'), ('single_process', 'single_process', 'launcher')],
)
def test_an_environment_that_raises_ends_the_run_with_one_short_message(runs, launch, node, log):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:Raising',
    '--config.environment.settings',
    'at_step',
    '30',
    f'--launch={launch}',
  )
  assert run.wait() == 1
  assert run.nodes() == []
  message, where = run.stderr.splitlines()
  assert message.startswith(f'error in {node}: ')
  assert message.endswith('RuntimeError: the ball fell off the board')
  assert where == f'log: {run.run_dir.logs / log}'
  assert run.log(log).count('Traceback (most recent call last)') >= 1
  assert 'Traceback' not in run.stdout
  assert run.summary()['status'] == 'failed'


def test_an_environment_that_hangs_costs_its_worker_and_not_the_run(runs):
  folder = runs.folder()
  run = runs.train(
    '--config.total_steps=3000',
    '--config.environment.id=drill_environments:Hanging',
    '--config.environment.settings',
    'mark',
    str(folder / 'mark'),
    '--config.actor.step_timeout_s=4',
    folder=folder,
  )
  assert run.wait() == 0, run.stderr
  slow, hung = [line for line in run.stderr.splitlines() if line.startswith('Notice: ')]
  assert slow.startswith(
    'Notice: actor/0: environment drill_environments:Hanging is slow: step() '
    'of environments 0 ... 7 took '
  )
  assert hung == (
    'Notice: actor/0: environment drill_environments:Hanging hangs: step() of environments '
    '0 ... 7 has not returned for 4 s (actor.step_timeout_s): its worker was ended, failure 1 '
    'of 3 in a row; the log says where it stood'
  )
  assert (folder / 'mark.left').read_text() == 'False'
  stack = run.log('actor/0').partition('most recent call first')[2]
  assert 'drill_environments.py", line' in stack and 'in _hang' in stack
  assert run.nodes() == []


def test_an_environment_that_always_hangs_ends_the_run_with_its_name(runs):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:never_made',
    '--config.actor.reset_timeout_s=2',
    '--config.actor.max_failures=2',
  )
  assert run.wait() == 1
  assert run.nodes() == []
  message, where = run.stderr.splitlines()[-2:]
  assert message == (
    'error in actor/0: the worker failed 2 times in a row (actor.max_failures), the last time '
    'with environment drill_environments:never_made hangs: the making of environments 0 ... 7 '
    'has not returned for 2 s (actor.reset_timeout_s)'
  )
  assert where == f'log: {run.run_dir.logs / "actor" / "0"}'


def test_of_a_thread_that_hangs_the_user_is_told(runs, until):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:Hanging',
    '--config.environment.settings',
    'slow_s',
    '5',
    '--config.actor.step_timeout_s=2',
    '--launch=single_process',
  )
  until(lambda: 'is slow: ' in run.stderr or run.check_runs(), 'the second notice')
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130, run.stderr
  hung, slow = [line for line in run.stderr.splitlines() if line.startswith('Notice: ')]
  assert hung == (
    'Notice: actor/0: environment drill_environments:Hanging hangs: step() of environments '
    '0 ... 7 has not returned for 2 s (actor.step_timeout_s): a thread cannot be ended, a '
    'worker of --launch=local_mp would be started anew; Ctrl-C ends the run'
  )
  assert 'is slow: step() of environments 0 ... 7 took ' in slow


def _expect_wrong_input(run, *words):
  assert run.wait() == 2, run.stderr
  assert run.failure()['is_user_error'] is True
  assert run.nodes() == []
  [message] = run.stderr.splitlines()
  for word in words:
    assert word in message


def test_a_reward_that_is_nan_costs_its_worker_and_at_last_the_run(runs):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:WrongReward',
    '--config.actor.max_failures=2',
  )
  words = 'environment 0 of drill_environments:WrongReward: reward: expected a finite scalar, got '
  _expect_wrong_input(
    run,
    'error: actor/0: the worker failed 2 times in a row (actor.max_failures), the last time with ',
    words + 'nan',
  )
  log = run.log('actor/0')
  assert f'worker failed ({words}nan), failure 1 of 2 in a row' in log
  assert 'Traceback' not in log


def test_a_reward_of_another_type_ends_the_run_at_once(runs):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:WrongReward',
    '--config.environment.settings',
    'reward',
    '[1.0]',
  )
  words = (
    'error: environment 0 of drill_environments:WrongReward: reward: expected a finite scalar, got '
  )
  _expect_wrong_input(run, words + '[1.0]')
  assert 'failure 1 of' not in run.log('actor/0')


def test_without_workers_a_reward_that_is_nan_ends_the_run_at_once(runs):
  run = runs.train(
    runs.endless,
    '--config.environment.id=drill_environments:WrongReward',
    '--launch=single_process',
  )
  words = 'environment 0 of drill_environments:WrongReward: reward: expected a finite scalar, got '
  _expect_wrong_input(run, words + 'nan')
