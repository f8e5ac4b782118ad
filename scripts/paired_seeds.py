"""Holds two ways of running one configuration against each other, by the steps they need to learn.

`python scripts/paired_seeds.py catch_vtrace --other=learner.training_devices=cpu:0,cpu:1` trains
the configuration as it is and with the changed fields, in turn, once for each seed, to a return of
0.9 over the last 100 episodes. Prints the agent steps of each run and the medians. Ends with 1 if
the median of the changed one is more than 1.1 times that of the other, or a run did not get there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import csv
import math
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

_LOOK_S = 0.5
_RETURN = 'episode/return_last_100'


def steps_to(metrics: pathlib.Path, goal: float) -> float:
  """Agent steps at the first row of a log with that return; infinite where there is none."""
  if not metrics.exists():
    return math.inf
  with open(metrics, encoding='utf-8', newline='') as file:
    for row in csv.DictReader(file):
      if row.get(_RETURN) and float(row[_RETURN]) >= goal:
        return float(row['agent_steps'])
  return math.inf


def run(config: str, overrides: Sequence[str], seed: int, goal: float) -> float:
  """Trains until the goal is reached, or to the end of the budget. Returns the agent steps."""
  with tempfile.TemporaryDirectory() as folder:
    run_dir = pathlib.Path(folder) / 'run'
    command = (
      *(sys.executable, '-m', 'seed_acme.programs.cli', 'train', f'--config={config}'),
      *(f'--run_dir={run_dir}', f'--config.seed={seed}', '--config.learner.log_period_s=0.1'),
      *(f'--config.{override}' for override in overrides),
    )
    with subprocess.Popen(
      command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
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
    return needed


def describe(base: Sequence[float], other: Sequence[float], most: float) -> tuple[str, bool]:
  """The last line, and whether the changed runs need at most `most` times the steps."""
  medians = statistics.median(base), statistics.median(other)
  solved = math.inf not in (*base, *other)
  ratio = medians[1] / medians[0] if solved else math.nan
  text = f'median | {medians[0]:,.0f} | {medians[1]:,.0f} | {ratio:.2f}'
  return text, solved and ratio <= most


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('config')
  parser.add_argument('--base', nargs='*', default=[], metavar='FIELD=VALUE', help='of all runs')
  parser.add_argument('--other', nargs='+', required=True, metavar='FIELD=VALUE')
  parser.add_argument('--seeds', type=int, default=10)
  parser.add_argument('--goal', type=float, default=0.9)
  parser.add_argument('--most', type=float, default=1.1, help='greatest ratio of the medians')
  arguments = parser.parse_args(argv)
  print('seed | steps as it is | steps changed | ratio', flush=True)
  base: list[float] = []
  other: list[float] = []
  for seed in range(1, arguments.seeds + 1):
    base.append(run(arguments.config, arguments.base, seed, arguments.goal))
    both = [*arguments.base, *arguments.other]
    other.append(run(arguments.config, both, seed, arguments.goal))
    ratio = other[-1] / base[-1]
    print(f'{seed} | {base[-1]:,.0f} | {other[-1]:,.0f} | {ratio:.2f}', flush=True)
  text, is_held = describe(base, other, arguments.most)
  print(text)
  return 0 if is_held else 1


if __name__ == '__main__':
  sys.exit(main())
