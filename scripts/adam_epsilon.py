"""A check that Adam's epsilon is small against the gradients: `scripts/adam_epsilon.py NAME ...`

Adam divides a step by s + epsilon, where s is the root mean square of a weight's gradient. If
epsilon is not small compared with s, the step shrinks with the gradient, and the effective learning
rate is not the configured one. The script computes the median of s / (s + epsilon) in every
variable.

Each NAME is a configuration, which is trained for --steps agent steps, or the folder of a run,
whose newest checkpoint is read. The exit code is 1 if the median of any variable is below --least.
"""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.storage import opening
from seed_acme.storage import saved_config

_MOMENT = re.compile(r'optimizer/(?P<objective>[^/]+)/\d+/adam/v/(?P<variable>.+):0')


class Measured(NamedTuple):
  """The measurements of one run.

  shares: by variable, the median of s / (s + epsilon) over the weights that had a gradient.
  clipping: mean gradient norm before clipping, divided by `max_gradient_norm`; 0 if that is off.
  penalties: mean size of the penalties in the loss, divided by that of its other terms.
  """

  epsilon: float
  shares: dict[str, float]
  clipping: float
  penalties: float


def measure(run_dir: pathlib.Path) -> Measured:
  """Measures a run's newest checkpoint and metrics. Raises `types.UserError` without Adam."""
  config = saved_config.load(run_dir / 'config.json')
  optimizer = getattr(config.agent, 'optimizer', None)
  if not isinstance(optimizer, config_lib.OptimizerConfig) or optimizer.name != 'adam':
    raise types.UserError(f'{config.name} has no agent.optimizer that is Adam: name another')
  arrays = opening.load_checkpoint(str(run_dir)).arrays
  metrics = _mean_metrics(run_dir / 'metrics.csv')
  size = lambda name: abs(metrics.get(name, 0.0))
  other = size('loss/policy') + size('loss/value')
  return Measured(
    epsilon=optimizer.epsilon,
    shares=shares(arrays, optimizer.adam_beta2, optimizer.epsilon),
    clipping=(
      metrics['learner/gradient_norm'] / optimizer.max_gradient_norm
      if optimizer.max_gradient_norm
      else 0.0
    ),
    penalties=size('loss/penalties') / other if other else 0.0,
  )


def shares(arrays: dict[str, np.ndarray], beta2: float, epsilon: float) -> dict[str, float]:
  """Returns the median of s / (s + epsilon) by variable.

  arrays: of a checkpoint. Weights that never had a gradient, such as those of an input that is
    always 0, are left out, because no epsilon moves them.
  """
  steps = {
    name.split('/')[1]: float(array)
    for name, array in arrays.items()
    if name.startswith('optimizer/') and name.endswith('/adam/t:0')
  }
  result = {}
  for name, moment in arrays.items():
    match = _MOMENT.fullmatch(name)
    if match is None:
      continue
    unbiased = moment.astype(np.float64) / (1 - beta2 ** max(steps[match['objective']], 1.0))
    scale = np.sqrt(unbiased[unbiased > 0])
    # A variable without any gradient cannot be judged.
    result[match['variable']] = float(np.median(scale / (scale + epsilon))) if scale.size else 1.0
  return result


def _mean_metrics(path: pathlib.Path) -> dict[str, float]:
  """Returns the mean of each metric over the rows that have it."""
  values: dict[str, list[float]] = {}
  with open(path, encoding='utf-8', newline='') as file:
    for row in csv.DictReader(file):
      for name, value in row.items():
        if value:
          values.setdefault(name, []).append(float(value))
  return {name: float(np.mean(of_rows)) for name, of_rows in values.items()}


def _train(name: str, steps: int, settings: list[str], folder: str) -> pathlib.Path:
  """Trains in a separate process, which frees TensorFlow's memory; returns the run folder."""
  run_dir = pathlib.Path(folder) / 'run'
  subprocess.run(
    [
      sys.executable,
      '-m',
      'seed_acme.programs.cli',
      'train',
      f'--config={name}',
      '--launch=single_process',
      f'--run_dir={run_dir}',
      f'--config.total_steps={steps}',
      '--config.learner.log_period_s=1',
      '--config.checkpoint.replay=False',
      *settings,
    ],
    check=True,
    stdout=subprocess.DEVNULL,
  )
  return run_dir


def report(name: str, measured: Measured, least: float) -> bool:
  """Prints a table; returns whether all shares are large enough."""
  worst = min(measured.shares, key=lambda variable: measured.shares[variable])
  is_well = measured.shares[worst] >= least
  print(
    f'{name}: epsilon {measured.epsilon:g}, least share {measured.shares[worst]:.3f}, {worst}'
    + ('' if is_well else f' (< {least:g}: lower agent.optimizer.epsilon)')
  )
  for variable, share in measured.shares.items():
    print(f'  {share:.3f}{" " if share >= least else "!"} {variable}')
  print(
    f'  gradient norm / max_gradient_norm {measured.clipping:.3g}, '
    f'penalties / other loss {measured.penalties:.3g}',
    flush=True,
  )
  return is_well


def main(arguments: list[str]) -> int:
  """Returns the exit code."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('names', nargs='+', metavar='NAME')
  parser.add_argument('--steps', type=int, default=20_000, help='agent steps of a training')
  parser.add_argument('--least', type=float, default=0.9, help='share that is asked for')
  parser.epilog = 'Other options, such as --config.FIELD=VALUE, are those of `seed-acme train`.'
  options, settings = parser.parse_known_args(arguments)
  try:
    # All are reported, even after one that fails.
    are_well = [_judge(name, options.steps, settings, options.least) for name in options.names]
    return 0 if all(are_well) else 1
  except types.UserError as error:
    parser.error(str(error))


def _judge(name: str, steps: int, settings: list[str], least: float) -> bool:
  if os.path.isdir(name):
    return report(name, measure(pathlib.Path(name)), least)
  with tempfile.TemporaryDirectory(prefix='adam_epsilon_') as folder:
    return report(name, measure(_train(name, steps, settings, folder)), least)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
