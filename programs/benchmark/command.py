"""`seed-acme bench`: throughput, with --soak_steps memory, or where inference is cheaper."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Literal

import tyro

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import numbers
from seed_acme.configs import registry
from seed_acme.programs.benchmark import actor_inference
from seed_acme.programs.benchmark import bench as bench_lib
from seed_acme.programs.benchmark import description
from seed_acme.programs.benchmark import side_by_side
from seed_acme.programs.benchmark import soak

_ROUNDS = 3


@dataclasses.dataclass(frozen=True)
class BenchArguments:
  """Measure throughput and account for it.

  launch: as of `train`.
  seconds: length of the measured window; longer by itself where it proves too short.
  warmup_seconds: training before it.
  bounds: also measure environment, inference and training alone; not with --against.
  against: a second configuration, by name or path. Both are measured in turn, and their steps per
    CPU-second are compared. Options of the command line concern the first only.
  against_launch: how the second is launched, by default as the first; without --against the
    second is the first configuration, launched like this.
  rounds: how often each of the two is measured; 0 = 3.
  soak_steps: instead of throughput, watch the resident memory of all processes over so many agent
    steps; exit code 1 if the learner's grows. 0 = measure throughput.
  soak_plot: with --soak_steps, the picture to write.
  compare_actor_inference: instead of throughput, measure inference in the server and in the actors,
    each cost alone, over several sizes of the network.
  network_factors: with --compare_actor_inference, by which the units of its layers are multiplied.
  compare_plot: with --compare_actor_inference, the picture to write; the figures go beside it, as
    .json.
  json: print JSON.
  """

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  launch: Literal['local_mp', 'local_mt', 'single_process'] = 'local_mp'
  seconds: float = 30.0
  warmup_seconds: float = 8.0
  bounds: bool = True
  against: str = ''
  against_launch: Literal['', 'local_mp', 'local_mt', 'single_process'] = ''
  rounds: int = 0
  soak_steps: int = 0
  soak_plot: str = ''
  compare_actor_inference: bool = False
  network_factors: tuple[float, ...] = actor_inference.FACTORS
  compare_plot: str = ''
  json: bool = False


def bench(arguments: BenchArguments) -> int:
  """Returns the exit code; raises `UserError`."""
  numbers.check_above_zero({'--seconds': arguments.seconds})
  numbers.check_at_least_zero(
    {
      '--warmup_seconds': arguments.warmup_seconds,
      '--soak_steps': arguments.soak_steps,
      '--rounds': arguments.rounds,
    }
  )
  compares = bool(arguments.against or arguments.against_launch)
  if arguments.rounds and not compares:
    raise types.UserError(
      f'--rounds={arguments.rounds} is for two in turn: add --against=CONFIG or '
      '--against_launch=TYPE'
    )
  if arguments.compare_actor_inference:
    return _compare(arguments, compares)
  if arguments.compare_plot or arguments.network_factors != actor_inference.FACTORS:
    raise types.UserError(
      '--compare_plot and --network_factors are for --compare_actor_inference: add it, or leave '
      'them out'
    )
  if arguments.soak_steps:
    if compares:
      raise types.UserError('--against compares throughput: leave it or --soak_steps out')
    return soak.command(arguments.config, arguments.soak_steps, arguments.soak_plot, arguments.json)
  if arguments.soak_plot:
    raise types.UserError('--soak_plot is for --soak_steps=N: add it, or leave it out')
  if compares:
    return _against(arguments)
  result = bench_lib.bench(
    arguments.config,
    arguments.seconds,
    arguments.warmup_seconds,
    measures_bounds=arguments.bounds,
    launch=arguments.launch,
  )
  print(json.dumps(result) if arguments.json else description.describe(result))
  return 0


def _compare(arguments: BenchArguments, compares: bool) -> int:
  if compares or arguments.soak_steps or arguments.soak_plot:
    raise types.UserError(
      '--compare_actor_inference trains nothing: leave --against, --against_launch, --soak_steps '
      'and --soak_plot out'
    )
  return actor_inference.command(
    arguments.config, arguments.network_factors, arguments.compare_plot, arguments.json
  )


def _against(arguments: BenchArguments) -> int:
  other = registry.load(arguments.against) if arguments.against else arguments.config
  record = side_by_side.measure(
    (
      side_by_side.Contender(arguments.config, arguments.launch),
      side_by_side.Contender(other, arguments.against_launch or arguments.launch),
    ),
    arguments.rounds or _ROUNDS,
    lambda contender: bench_lib.bench(
      contender.config,
      arguments.seconds,
      arguments.warmup_seconds,
      measures_bounds=False,
      launch=contender.launch,
    ),
    tell=lambda line: print(line, file=sys.stderr, flush=True),
  )
  print(json.dumps(record) if arguments.json else side_by_side.describe(record))
  return 0
