"""Compares two ways of running one configuration by the steps that they need to learn.

`python scripts/paired_seeds.py catch_vtrace --other=learner.training_devices=cpu:0,cpu:1` trains
the configuration unchanged and with the changed fields alternately, once per seed, to a return of
0.9 over the last 100 episodes. `--other_python=PATH` runs the changed one under another
interpreter, such as that of another version's environment. It prints the agent steps of each run,
and the median of their ratios with its 95 % bootstrap interval. A run that misses the goal counts
with all steps of its budget. The exit code is 1 if the median ratio is more than 1.1, or if more of
the changed runs than of the others missed the goal.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import csv
import math
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

_LOOK_S = 0.5
_RETURN = 'episode/return_last_100'
_RESAMPLES = 10_000
_MISSED = ' (not reached)'


class Result(NamedTuple):
  """The result of a run. steps: agent steps to the goal, or of the whole run if it was missed."""

  steps: float
  is_reached: bool


def steps_to(metrics: pathlib.Path, goal: float) -> float:
  """Returns the agent steps at the first row with that return; infinity if there is none."""
  if not metrics.exists():
    return math.inf
  with open(metrics, encoding='utf-8', newline='') as file:
    for row in csv.DictReader(file):
      if row.get(_RETURN) and float(row[_RETURN]) >= goal:
        return float(row['agent_steps'])
  return math.inf


def _last_steps(metrics: pathlib.Path) -> float:
  with open(metrics, encoding='utf-8', newline='') as file:
    return max(float(row['agent_steps']) for row in csv.DictReader(file))


def run(
  config: str, overrides: Sequence[str], seed: int, goal: float, python: str = sys.executable
) -> Result:
  """Trains until the goal is reached, or to the end of the budget."""
  with tempfile.TemporaryDirectory() as folder:
    run_dir = pathlib.Path(folder) / 'run'
    command = (
      *(python, '-m', 'seed_acme.programs.cli', 'train', f'--config={config}'),
      *(f'--run_dir={run_dir}', f'--config.seed={seed}', '--config.learner.log_period_s=0.1'),
      *(f'--config.{override}' for override in overrides),
    )
    with subprocess.Popen(
      command,
      cwd=folder,  # otherwise a checkout would take precedence over the interpreter's packages
      stdout=subprocess.DEVNULL,
      stderr=subprocess.PIPE,
      text=True,
    ) as training:
      while training.poll() is None:
        if steps_to(run_dir / 'metrics.csv', goal) < math.inf:
          training.send_signal(signal.SIGINT)
          break
        time.sleep(_LOOK_S)
      _, complaint = training.communicate()
    needed = steps_to(run_dir / 'metrics.csv', goal)
    if needed == math.inf and training.returncode:
      raise RuntimeError(f'seed {seed} ended with {training.returncode}: {complaint.strip()}')
    if needed == math.inf:
      return Result(_last_steps(run_dir / 'metrics.csv'), False)
    return Result(needed, True)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
  """Returns the interval that has 95 % of the medians of resampled ratios."""
  draw = random.Random(0)
  medians = sorted(
    statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES)
  )
  return medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES)]


def describe(base: Sequence[Result], other: Sequence[Result], most: float) -> tuple[str, bool]:
  """Returns the last line, and whether the changed runs need at most `most` times the steps."""
  medians = [statistics.median(result.steps for result in results) for results in (base, other)]
  ratios = [changed.steps / plain.steps for plain, changed in zip(base, other)]
  low, high = interval(ratios)
  missed = [sum(not result.is_reached for result in results) for results in (base, other)]
  ratio = statistics.median(ratios)
  text = (
    f'median | {medians[0]:,.0f} | {medians[1]:,.0f} | {ratio:.2f} ({low:.2f} to {high:.2f}), '
    f'not reached: {missed[0]} and {missed[1]} of {len(base)}'
  )
  return text, missed[1] <= missed[0] and ratio <= most


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('config')
  parser.add_argument('--base', nargs='*', default=[], metavar='FIELD=VALUE', help='of all runs')
  parser.add_argument('--other', nargs='+', default=[], metavar='FIELD=VALUE')
  parser.add_argument('--other_python', default='', metavar='PATH', help='of the changed runs')
  parser.add_argument('--seeds', type=int, default=10)
  parser.add_argument('--goal', type=float, default=0.9)
  parser.add_argument('--most', type=float, default=1.1, help='greatest median ratio')
  arguments = parser.parse_args(argv)
  if not (arguments.other or arguments.other_python):
    parser.error('say what is different: --other=FIELD=VALUE or --other_python=PATH')
  print('seed | steps as it is | steps changed | ratio', flush=True)
  base: list[Result] = []
  other: list[Result] = []
  python = arguments.other_python or sys.executable
  for seed in range(1, arguments.seeds + 1):
    base.append(run(arguments.config, arguments.base, seed, arguments.goal))
    both = [*arguments.base, *arguments.other]
    other.append(run(arguments.config, both, seed, arguments.goal, python))
    ratio = other[-1].steps / base[-1].steps
    told = [f'{one.steps:,.0f}{_MISSED * (not one.is_reached)}' for one in (base[-1], other[-1])]
    print(f'{seed} | {told[0]} | {told[1]} | {ratio:.2f}', flush=True)
  text, is_held = describe(base, other, arguments.most)
  print(text)
  return 0 if is_held else 1


if __name__ == '__main__':
  sys.exit(main())
