"""An actor's worker is killed, or its environment fails: on the data, and on the screen."""

import json
import os
import signal

import numpy as np
import pytest
import reverb

from seed_acme import run_directory
from seed_acme import types

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]
_PID_SCALE = 2.0**-22  # as in drill_environments.py
_FORBIDDEN = ('tensorflow', 'reverb', 'sonnet', 'launchpad', 'matplotlib', 'psutil')


class _Rows:
  """Looks at the unrolls of a live run, taking them from under its learner."""

  def __init__(self, run):
    addresses = run_directory.read_json(run.run_dir.addresses)
    self._client = reverb.Client(addresses['replay'])

  def pids(self, num_items):
    """Process ids in `num_items` items, `[unrolls, rows]`; 0 where a row is padding."""
    found = []
    for sample in self._client.sample('unrolls', num_items, emit_timesteps=False):
      data = sample.data
      # Leaves in the order of `types.Unroll` (no recurrent state): inputs come first.
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
  message, where = run.stderr.splitlines()
  assert message == (
    'error in actor/0: the worker failed 3 times in a row (actor.max_failures), '
    'the last time with killed by SIGKILL'
  )
  assert where == f'log: {run.run_dir.logs / "actor" / "0"}'


@pytest.mark.parametrize(
  'launch, node, log',
  [
    ('local_mp', 'actor/0', 'actor/0'),
    ('local_mt', 'actor/0', 'launcher'),
    ('single_process', 'single_process', 'launcher'),
  ],
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
