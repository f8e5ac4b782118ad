"""Throughput of a configuration, with its CPU account and the lower bound on its cost."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.files import local
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.system import cpu_account
from seed_acme.programs.system import processes
from seed_acme.programs.tools.benchmark import measured_run
from seed_acme.programs.tools.benchmark import window_means
from seed_acme.programs.trial import specification
from seed_acme.progress import timing
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_POLL_S = 0.02
_ALONE_S = 1800.0  # longest measurement of the bound, which takes a minute or two
_MAX_DISAGREEMENT = 0.02  # between rows trained and rows inserted
_LONGEST = 4  # the window is extended to this multiple of its length at most


class _Reading(NamedTuple):
  """A snapshot of the run: status, CPU-seconds by kind of process, actors' phase times."""

  status: dict[str, Any]
  cpu_s: dict[str, float]
  actor_s: dict[str, float]


class _Disagreement(measured_run.BenchFailed):
  """Trained and acted steps do not agree within tolerance. A longer window may fix that."""


def bench(
  config: config_lib.ExperimentConfig,
  seconds: float,
  warmup_seconds: float,
  measures_bounds: bool,
  launch: str = launches.LOCAL_MP,
  tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
  """Trains as `launch` says, measures a window of `seconds`, and returns a JSON record.

  Rows trained and rows inserted (times the replay ratio) have to agree within 2 %. The queue holds
  an unknown number of rows when the window opens and closes, which matters less in a longer window,
  so the window is extended, to four times `seconds` at most, until they agree. Raises `BenchFailed`
  if they still differ then. A bound that cannot be measured is told, and the record, which the run
  has already paid for, then lacks `bound` and `calls`.
  tell: called with a line of text as each part of the work begins.
  """
  config = dataclasses.replace(
    config,
    total_steps=measured_run.ENDLESS,
    max_wall_s=0.0,
    num_evaluation_environments=0,
    record_every=0,
    checkpoint=dataclasses.replace(config.checkpoint, period_s=1e9),
    learner=dataclasses.replace(config.learner, log_period_s=0.5),
  )
  with tempfile.TemporaryDirectory(prefix='seed_acme_bench_') as folder:
    tell(f'{config.name}: trying the environment')
    config, run_dir = lifecycle.prepare(config, os.path.join(folder, 'run'))
    saved_config.save(config, run_dir.config)
    with measured_run.launched(run_dir, folder, launch) as launcher:
      account = cpu_account.CpuAccount(launcher.pid)
      tell(
        f'{config.name}: starting the run, up to {measured_run.START_S:g} s until its first update'
      )
      measured_run.wait_for_updates(config, run_dir, launcher)
      tell(f'{config.name}: warming up for {warmup_seconds:g} s')
      progress = measured_run.Progress(config, run_dir, launcher)
      progress.watch(warmup_seconds)
      before = _read(config, run_dir, progress, account)
      for end in range(1, _LONGEST + 1):
        more = ' more, because a longer window is needed' if end > 1 else ''
        tell(f'{config.name}: measuring for {seconds:g} s{more}')
        progress.watch(seconds)
        after = _read(config, run_dir, progress, account)
        try:
          result = _result(config, before, after)
          break
        except _Disagreement:
          if end == _LONGEST:
            raise
    spec = specification.of_run(config, run_dir)
    result['setting'] = _setting(config, spec.frames_per_step)
    result['launch'] = launch
    result['window_asked_s'] = seconds
    if measures_bounds:
      tell(f'{config.name}: measuring environment, inference and training alone (a minute or two)')
      try:
        alone = _measured_alone(run_dir, result)
      except measured_run.BenchFailed as error:
        tell(f'{config.name}: {error}. The measurement of the run follows without it')
      else:
        result['bound'] = _bound(alone['bound'], result)
        result['calls'] = alone['calls']
    return result


def _read(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  progress: measured_run.Progress,
  account: cpu_account.CpuAccount,
) -> _Reading:
  """Takes a snapshot of the run at the moment that a new status appears."""
  last = lifecycle.read_status(run_dir)['time_s']
  while True:
    status = progress.status()
    if status['time_s'] != last:
      account.sample()
      return _Reading(status, account.seconds(), _actor_seconds(config, run_dir))
    time.sleep(_POLL_S)


def _actor_seconds(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory
) -> dict[str, float]:
  paths = [run_dir.logs / f'actor_{i}_seconds.json' for i in range(config.num_actors)]
  return timing.merge(*[local.read_json(path) for path in paths if path.exists()])


def _result(
  config: config_lib.ExperimentConfig, before: _Reading, after: _Reading
) -> dict[str, Any]:
  change = {
    name: after.status[name] - before.status[name]
    for name in ('trained_steps', 'agent_steps', 'updates', 'unrolls_confirmed', 'time_s')
  }
  cpu_s = {kind: after.cpu_s[kind] - before.cpu_s.get(kind, 0.0) for kind in after.cpu_s}
  total_cpu_s, steps = sum(cpu_s.values()), change['agent_steps']
  ratio = config.agent.replay_spec().ratio
  batch_rows = config.agent.batch_size * config.agent.unroll_length
  rows = change['updates'] * batch_rows
  inserted = change['unrolls_confirmed'] * config.agent.unroll_length
  _check_agreement('rows', rows, 'inserted', inserted, ratio, batch_rows)
  _check_agreement('agent steps', change['trained_steps'], 'acted', steps, ratio, batch_rows)
  return {
    'config': config.name,
    'window_s': change['time_s'],
    'agent_steps': steps,
    'steps_per_s': steps / change['time_s'],
    'steps_per_cpu_s': steps / total_cpu_s,
    'cores_in_use': total_cpu_s / change['time_s'],
    'cpu_s': cpu_s,
    'cpu_s_per_million_steps': {k: 1e6 * s / steps for k, s in cpu_s.items()},
    'phase_shares': {
      'actor': timing.shares(timing.difference(after.actor_s, before.actor_s)),
      **{
        thread: timing.shares(timing.difference(seconds, before.status['seconds'][thread]))
        for thread, seconds in after.status['seconds'].items()
      },
    },
    **window_means.between(before.status, after.status),
    'updates': change['updates'],
    'rows_trained': rows,
    'rows_inserted': inserted,
    'replay_ratio': ratio,
    # LAST rows count no step; > 1 can occur if the window cuts a burst
    'steps_per_row': min(1.0, steps / inserted),
  }


def _setting(config: config_lib.ExperimentConfig, frames_per_step: int) -> dict[str, Any]:
  """Returns the settings of the run that `seed-acme plan` needs for its model."""
  return {
    'actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'groups_per_actor': config.actor.environment_groups,
    'frames_per_step': frames_per_step,
    'unroll_length': config.agent.unroll_length,
    'unrolls_per_update': config.agent.batch_size,
    'inference_rows': layout_lib.Layout.of(config).batch_rows(0, 1)[0],
    'inference_timeout_s': config.inference.timeout_ms / 1e3,
    'queued_unrolls': config.replay.queue_size,
    'prefetched_updates': config.replay.prefetch_batches,
    'cores': len(os.sched_getaffinity(0)),
  }


def _check_agreement(
  what: str, trained: int, verb: str, other: int, ratio: float, batch_rows: int
) -> None:
  """Checks that every acted step was also trained, `ratio` times, so that no untrained step counts.

  Raises `_Disagreement` if the counts differ by more than 2 % and two batches.
  """
  expected = ratio * other
  allowed = max(_MAX_DISAGREEMENT * expected, 2 * batch_rows)
  if not trained or trained < 2 * batch_rows or abs(trained - expected) > allowed:
    times = '' if ratio == 1 else f', {ratio:g} of which are to be trained for each'
    raise _Disagreement(
      f'{trained:,} {what} were trained and {other:,} {verb} in the window{times}; they must '
      f'agree within {_MAX_DISAGREEMENT:.0%}: choose a longer window (--seconds)'
    )


def _bound(seconds: dict[str, float], result: dict[str, Any]) -> dict[str, Any]:
  """Returns the lower bound, CPU-seconds per million steps, and the efficiency of the run.

  seconds: CPU-seconds per agent step by kind of work, from `lower_bound.measure`.
  """
  total = sum(seconds.values())
  return {
    'cpu_s_per_million_steps': {name: 1e6 * value for name, value in seconds.items()},
    'steps_per_cpu_s': 1 / total,
    'efficiency': total * result['steps_per_cpu_s'],
  }


def _measured_alone(run_dir: run_directory.RunDirectory, result: dict[str, Any]) -> dict[str, Any]:
  """Runs `lower_bound` in a process of its own and returns its `bound` and `calls`.

  Raises `BenchFailed` if it fails or takes too long.
  """
  variables = {**os.environ, **processes.environment('bounds', os.getpid())}
  rows = max(1, round(result['inference_batch_size']['mean']))
  arguments = [run_dir.path, rows, result['steps_per_row'], result['replay_ratio']]
  module = 'seed_acme.programs.tools.benchmark.lower_bound'
  try:
    measured = subprocess.run(
      [sys.executable, '-m', module, *map(str, arguments)],
      env=variables,
      capture_output=True,
      text=True,
      errors='replace',
      timeout=_ALONE_S,
    )
  except subprocess.TimeoutExpired:
    raise measured_run.BenchFailed(
      f'the bound took over {_ALONE_S:g} s; --no_bounds leaves it out'
    ) from None
  if measured.returncode:
    lines = measured.stderr.strip().splitlines()
    reason = lines[-1] if lines else processes.describe_exit(measured.returncode)
    raise measured_run.BenchFailed(
      f'the bound could not be measured: {reason}; --no_bounds leaves it out'
    )
  return json.loads(measured.stdout)
