"""Compares plans with runs on this machine: `python scripts/validate_plan.py`.

In each round `seed-acme bench` measures three settings of one configuration, to which a plan is
fitted, and eight others. The table compares the medians of the eight with the plan. All processes
share the cores, and a plan assumes that other programs use as much CPU as they did while the three
were measured; steps per CPU-second depend less on that. The exit code is 1 if a rate differs from
its plan by more than --tolerance.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any, NamedTuple

from seed_acme.programs.tools.planning import costs as costs_lib
from seed_acme.programs.tools.planning import model


class Setting(NamedTuple):
  """A setting: actors, environments per actor, unrolls per update."""

  actors: int
  environments: int
  unrolls: int


FITTED = (Setting(2, 256, 512), Setting(8, 16, 64), Setting(1, 64, 64))
OTHERS = (
  Setting(1, 256, 256),
  Setting(2, 32, 64),
  Setting(2, 128, 256),
  Setting(2, 512, 512),
  Setting(3, 64, 128),
  Setting(4, 32, 128),
  Setting(4, 128, 256),
  Setting(6, 64, 128),
)

_HEAD = (
  'actors x environments, unrolls | steps/s, plan | deviation | steps per CPU-second, plan | '
  'deviation | bottleneck'
)


def bench(setting: Setting, seconds: float, measures_costs: bool) -> dict[str, Any]:
  """Returns a record of `seed-acme bench`."""
  command = (
    *(sys.executable, '-m', 'seed_acme.programs.cli', 'bench', '--config=bench_catch_mlp'),
    f'--config.num_actors={setting.actors}',
    f'--config.environments_per_actor={setting.environments}',
    f'--config.agent.batch_size={setting.unrolls}',
    '--config.replay.unrolls_per_item=16',
    *(f'--seconds={seconds}', '--warmup_seconds=2', '--json'),
    *(() if measures_costs else ('--no_bounds',)),
  )
  done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
  return json.loads(done.stdout)


def plan(costs: costs_lib.Costs, setting: Setting) -> tuple[model.Plan, float]:
  """Returns the plan for all cores of this machine, and its steps per CPU-second."""
  cores = costs.setting.cores
  planned = model.central(
    costs,
    model.Scale(
      learners=1,
      actors=setting.actors,
      environments_per_actor=setting.environments,
      groups_per_actor=costs.setting.groups_per_actor,
      unrolls_per_update=setting.unrolls,
      inference_rows=max(1, setting.actors * setting.environments // 2),
      cores=cores,
    ),
  )
  in_use = (1 - planned.idle['cores']) * cores / costs.contention
  return planned, planned.steps_per_s / in_use


def table(costs: costs_lib.Costs, measured: dict[Setting, list[dict[str, Any]]]) -> list[str]:
  """Returns a line for each setting: medians, plans, deviations."""
  lines = [_HEAD]
  for setting, records in measured.items():
    planned, per_cpu_s = plan(costs, setting)
    rate = statistics.median(record['steps_per_s'] for record in records)
    of_cpu = statistics.median(record['steps_per_cpu_s'] for record in records)
    lines.append(
      f'{setting.actors} x {setting.environments}, {setting.unrolls} | '
      f'{rate:,.0f}, {planned.steps_per_s:,.0f} | {planned.steps_per_s / rate - 1:+.0%} | '
      f'{of_cpu:,.0f}, {per_cpu_s:,.0f} | {per_cpu_s / of_cpu - 1:+.0%} | {planned.bottleneck}'
    )
  return lines


def worst(costs: costs_lib.Costs, measured: dict[Setting, list[dict[str, Any]]]) -> float:
  """Returns the largest relative deviation of a planned rate from the measured median."""
  return max(
    abs(plan(costs, s)[0].steps_per_s / statistics.median(r['steps_per_s'] for r in records) - 1)
    for s, records in measured.items()
  )


def measure(
  num_rounds: int, seconds: float
) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
  """Returns records of `FITTED`, and those of each of `OTHERS`."""
  fitted: list[dict[str, Any]] = []
  others: list[list[dict[str, Any]]] = [[] for _ in OTHERS]
  for round_number in range(num_rounds):
    for setting in FITTED:
      fitted.append(bench(setting, seconds, measures_costs=not fitted))
    for records, setting in zip(others, OTHERS):
      records.append(bench(setting, seconds, measures_costs=False))
    print(f'round {round_number + 1} of {num_rounds} is done', file=sys.stderr, flush=True)
  return fitted, others


def main(argv: list[str]) -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--rounds', type=int, default=3)
  parser.add_argument('--seconds', type=float, default=5.0, help='of a measured window')
  parser.add_argument('--tolerance', type=float, default=0.2)
  parser.add_argument('--out', default='', help='JSON file of all records; again = read, not run')
  arguments = parser.parse_args(argv)
  out = pathlib.Path(arguments.out) if arguments.out else None
  if out and out.is_file():
    fitted, others = json.loads(out.read_text())
  else:
    fitted, others = measure(arguments.rounds, arguments.seconds)
    if out:
      out.write_text(json.dumps([fitted, others]))
  costs = costs_lib.fit(fitted)
  measured = dict(zip(OTHERS, others))
  print('\n'.join(table(costs, measured)))
  return int(worst(costs, measured) > arguments.tolerance)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
