"""`seed-acme bench`: throughput, or with --soak_steps memory."""

from __future__ import annotations

import dataclasses
import json
import sys

import tyro

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import numbers
from seed_acme.configs import registry
from seed_acme.programs.benchmark import bench as bench_lib
from seed_acme.programs.benchmark import side_by_side
from seed_acme.programs.benchmark import soak


@dataclasses.dataclass(frozen=True)
class BenchArguments:
  """Measure throughput and account for it.

  seconds: length of the measured window.
  warmup_seconds: training before it.
  bounds: also measure environment, inference and training alone; not with --against.
  against: a second configuration, by name or path. Both are measured in turn, and their steps per
    CPU-second are compared. Options of the command line concern the first only.
  rounds: with --against, how often each is measured.
  soak_steps: instead of throughput, watch the resident memory of all processes over so many agent
    steps; exit code 1 if the learner's grows. 0 = measure throughput.
  soak_plot: with --soak_steps, the picture to write.
  json: print JSON.
  """

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  seconds: float = 30.0
  warmup_seconds: float = 8.0
  bounds: bool = True
  against: str = ''
  rounds: int = 3
  soak_steps: int = 0
  soak_plot: str = ''
  json: bool = False


def bench(arguments: BenchArguments) -> int:
  """Returns the exit code; raises `UserError`."""
  numbers.check_above_zero({'--seconds': arguments.seconds, '--rounds': arguments.rounds})
  numbers.check_at_least_zero(
    {'--warmup_seconds': arguments.warmup_seconds, '--soak_steps': arguments.soak_steps}
  )
  if arguments.soak_steps:
    if arguments.against:
      raise types.UserError('--against compares throughput: leave it or --soak_steps out')
    return soak.command(arguments.config, arguments.soak_steps, arguments.soak_plot, arguments.json)
  if arguments.soak_plot:
    raise types.UserError('--soak_plot is for --soak_steps=N: add it, or leave it out')
  if arguments.against:
    return _against(arguments)
  result = bench_lib.bench(
    arguments.config, arguments.seconds, arguments.warmup_seconds, measures_bounds=arguments.bounds
  )
  print(json.dumps(result) if arguments.json else bench_lib.describe(result))
  return 0


def _against(arguments: BenchArguments) -> int:
  record = side_by_side.measure(
    (arguments.config, registry.load(arguments.against)),
    arguments.rounds,
    lambda config: bench_lib.bench(
      config, arguments.seconds, arguments.warmup_seconds, measures_bounds=False
    ),
    tell=lambda line: print(line, file=sys.stderr, flush=True),
  )
  print(json.dumps(record) if arguments.json else side_by_side.describe(record))
  return 0
