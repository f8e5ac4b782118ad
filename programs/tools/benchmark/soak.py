"""Resident memory of every process of a long run, and how fast each one grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import os
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
import psutil

from seed_acme import config as config_lib
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import replay_size
from seed_acme.programs.system import processes
from seed_acme.programs.tools.benchmark import measured_run
from seed_acme.programs.trial import specification
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

LIMIT = 0.2  # MB per million steps, the fastest growth of the learner that passes
_LEARNER = 'learner'  # kind of node
_WARMUP = 0.1  # share of the steps in which buffers fill and first checkpoints are saved
_NUM_ROWS = 20  # rows of the printed table
_POLL_S = 0.2
_REPORT_S = 10.0


class Sample(NamedTuple):
  """A snapshot of the run. resident_mb: by process, 1 MB = 10^6 bytes."""

  steps: int
  resident_mb: dict[str, float]


def soak(
  config: config_lib.ExperimentConfig, num_steps: int, report: Callable[[str], None]
) -> dict[str, Any]:
  """Trains in Launchpad processes for `num_steps` agent steps; returns a record of their memory.

  It logs, evaluates and saves as `train` does, because these could leak memory, too.
  report: called with a line of text every ten seconds.
  """
  config = dataclasses.replace(config, total_steps=measured_run.ENDLESS, max_wall_s=0.0)
  with tempfile.TemporaryDirectory(prefix='seed_acme_soak_') as folder:
    report(f'starting {config.name}')
    config, run_dir = lifecycle.prepare(config, os.path.join(folder, 'run'))
    saved_config.save(config, run_dir.config)
    with measured_run.launched(run_dir, folder) as launcher:
      measured_run.wait_for_updates(config, run_dir, launcher)
      progress = measured_run.Progress(config, run_dir, launcher, _pause_s(config, run_dir))
      samples = _watch(progress, launcher.pid, num_steps, report)
  return record(config.name, samples)


def _pause_s(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory) -> float:
  """Returns how long the replacement of a hanging worker and saving the replay memory may take."""
  replacing_s = config.actor.step_timeout_s + config.actor.reset_timeout_s
  if not config.checkpoint.replay:
    return replacing_s
  spec_of = lambda: specification.of_run(config, run_dir)
  size = replay_size.replay_bytes(config, spec_of)
  return replacing_s + replay_size.saving_seconds(size)


def _watch(
  progress: measured_run.Progress, launcher_pid: int, num_steps: int, report: Callable[[str], None]
) -> list[Sample]:
  """Takes a sample with each status that the learner writes."""
  samples = []
  next_report_s = 0.0
  for sample in _samples(progress, launcher_pid, num_steps):
    samples.append(sample)
    if time.monotonic() >= next_report_s:
      next_report_s = time.monotonic() + _REPORT_S
      report(
        f'{sample.steps / 1e6:.2f}M of {num_steps / 1e6:g}M steps, the learner has '
        f'{sample.resident_mb.get(_LEARNER, 0.0):.1f} MB'
      )
  return samples


def _samples(
  progress: measured_run.Progress, launcher_pid: int, num_steps: int
) -> Iterator[Sample]:
  tree = _ProcessTree(launcher_pid)
  steps: int | None = None
  while steps is None or steps < num_steps:
    time.sleep(_POLL_S)
    before, steps = steps, progress.status()['agent_steps']
    if steps != before:
      yield Sample(steps, tree.resident_mb())


class _ProcessTree:
  """The processes of a run by name: the kind of node, with a number from the second one on."""

  def __init__(self, root_pid: int):
    self._root = psutil.Process(root_pid)
    self._names: dict[tuple[int, float], str] = {}

  def resident_mb(self) -> dict[str, float]:
    """Returns the resident memory of all processes that are alive."""
    found = {}
    for process in [self._root, *self._root.children(recursive=True)]:
      try:
        found[self._name(process)] = process.memory_info().rss / 1e6
      except (psutil.NoSuchProcess, psutil.AccessDenied):
        continue
    return found

  def _name(self, process: psutil.Process) -> str:
    key = (process.pid, process.create_time())
    if key not in self._names:
      kind = process.environ().get(processes.NODE_VARIABLE, 'other')
      number = 1 + sum(name.split()[0] == kind for name in self._names.values())
      self._names[key] = kind if number == 1 else f'{kind} {number}'
    return self._names[key]


def record(name: str, samples: Sequence[Sample]) -> dict[str, Any]:
  """Returns the record of `soak`. Raises `BenchFailed` if samples are too few for a slope."""
  since = int(_WARMUP * samples[-1].steps)
  names = dict.fromkeys(process for sample in samples for process in sample.resident_mb)
  grown = {process: slope(samples, process, since) for process in names}
  learner = _of_learner(grown, samples)
  return {
    'config': name,
    'agent_steps': samples[-1].steps,
    'slope_since_steps': since,
    'learner_mb_per_million_steps': learner,
    'limit_mb_per_million_steps': LIMIT,
    'is_within_limit': learner <= LIMIT,
    'mb_per_million_steps': grown,
    'samples': [
      {'agent_steps': sample.steps, 'resident_mb': sample.resident_mb} for sample in samples
    ],
  }


def _of_learner(grown: Mapping[str, float | None], samples: Sequence[Sample]) -> float:
  learner = grown.get(_LEARNER)
  if learner is None:
    raise measured_run.BenchFailed(
      f'the learner was seen too rarely within {samples[-1].steps:,} steps to tell whether its '
      'memory grows: choose more (--soak_steps)'
    )
  return learner


def slope(samples: Sequence[Sample], process: str, since: int) -> float | None:
  """Returns MB per million steps, a least-squares fit through the samples from step `since` on.

  None if the process is in less than half of them, because it started late or ended.
  """
  rows = [sample for sample in samples if sample.steps >= since]
  seen = [(row.steps / 1e6, row.resident_mb[process]) for row in rows if process in row.resident_mb]
  if len(seen) < max(3, len(rows) / 2):
    return None
  steps, mb = np.array(seen).T
  steps = steps - steps.mean()
  return float(steps @ mb / (steps @ steps))


def describe(result: Mapping[str, Any]) -> str:
  """Returns the record as a table: about twenty rows over the steps, a column for each process."""
  grown = result['mb_per_million_steps']
  interval = result['agent_steps'] / _NUM_ROWS
  rows: list[list[str]] = []
  for sample in result['samples']:
    if sample['agent_steps'] >= len(rows) * interval:
      cells = [_number(sample['resident_mb'].get(name), '.1f') for name in grown]
      rows.append([f'{sample["agent_steps"] / 1e6:.2f}', *cells])
  slopes = [_number(value, '.3f') for value in grown.values()]
  rows = [['M steps', *grown], *rows, ['slope', *slopes]]
  verdict = (
    f'slope: MB per million steps since {result["slope_since_steps"] / 1e6:.2f}M; '
    f'of the learner {result["learner_mb_per_million_steps"]:.3f}, at most '
    f'{result["limit_mb_per_million_steps"]:g} allowed'
  )
  title = f'{result["config"]}: resident memory by process, MB'
  return '\n'.join([title, *terminal.aligned(rows), verdict])


def _number(value: float | None, form: str) -> str:
  return '-' if value is None else f'{value:{form}}'
