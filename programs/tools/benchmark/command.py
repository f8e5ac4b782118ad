"""`seed-acme bench`: measures throughput, or with --soak_steps memory growth."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated, Any, Literal

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.configs import registry
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.system import processes
from seed_acme.programs.tools.benchmark import bench as bench_lib
from seed_acme.programs.tools.benchmark import description
from seed_acme.programs.tools.benchmark import side_by_side
from seed_acme.programs.tools.benchmark import soak

_ROUNDS = 3


@dataclasses.dataclass(frozen=True)
class BenchArguments:
  """Measure throughput and account for it.

  launch: as for `train`; not with --soak_steps.
  seconds: length of the measured window; it is extended automatically if it proves too short.
  warmup_seconds: training before the window.
  no_bounds: do not measure environment, inference and training alone, as with --against.
  against: a second configuration, by name or path. The two are measured alternately, and their
    steps per CPU-second are compared. --config.FIELD options apply to the first only.
  against_launch: how the second is launched, by default as the first; without --against the second
    is the first configuration, launched like this.
  rounds: how often each of the two is measured; 0 = 3.
  soak_steps: instead of throughput, watch the resident memory of all processes over this many agent
    steps; exit code 1 if the learner's grows. 0 = measure throughput.
  json: print JSON.
  """

  launch: Literal['local_mp', 'single_process'] = 'local_mp'
  seconds: Annotated[float, bounds.above(0)] = 30.0
  warmup_seconds: Annotated[float, bounds.at_least(0)] = 8.0
  no_bounds: bool = False
  against: str = ''
  against_launch: Literal['', 'local_mp', 'single_process'] = ''
  rounds: Annotated[int, bounds.at_least(0)] = 0
  soak_steps: Annotated[int, bounds.at_least(0)] = 0
  json: bool = False


def bench(arguments: BenchArguments, given: given_lib.Given) -> command_lib.Answer:
  """Runs the measurement that the options ask for; raises `UserError` for several."""
  compares = bool(arguments.against or arguments.against_launch)
  if arguments.soak_steps and (others := _of_throughput(arguments)):
    raise types.UserError(
      f'--soak_steps watches the memory of Launchpad processes and takes no {", ".join(others)}, '
      'which are for throughput: leave one side out'
    )
  if arguments.rounds and not compares:
    raise types.UserError(
      f'--rounds={arguments.rounds} is for --against: add it, or leave --rounds out'
    )
  config = given.config()
  if compares:
    return _against(arguments, config)
  if arguments.soak_steps:
    return _soak(config, arguments.soak_steps)
  result = _measured(arguments, config, arguments.launch, not arguments.no_bounds)
  return command_lib.Answer(result, description.describe(result))


def _of_throughput(arguments: BenchArguments) -> list[str]:
  """Returns the options that differ from their defaults and do not concern `--soak_steps`."""
  changed = {
    field.name: getattr(arguments, field.name)
    for field in dataclasses.fields(arguments)
    if field.name not in ('soak_steps', 'json') and getattr(arguments, field.name) != field.default
  }
  return [f'--{name}' if value is True else f'--{name}={value}' for name, value in changed.items()]


def _soak(config: config_lib.ExperimentConfig, num_steps: int) -> command_lib.Answer:
  result = soak.soak(config, num_steps, _tell)
  exit_code = 0 if result['is_within_limit'] else processes.FAILURE_EXIT
  return command_lib.Answer(result, soak.describe(result), exit_code)


def _against(arguments: BenchArguments, config: config_lib.ExperimentConfig) -> command_lib.Answer:
  other = registry.load(arguments.against) if arguments.against else config
  record = side_by_side.measure(
    (
      side_by_side.Contender(config, arguments.launch),
      side_by_side.Contender(other, arguments.against_launch or arguments.launch),
    ),
    arguments.rounds or _ROUNDS,
    lambda contender: _measured(arguments, contender.config, contender.launch, bounds=False),
    tell=_tell,
  )
  return command_lib.Answer(record, side_by_side.describe(record))


def _measured(
  arguments: BenchArguments, config: config_lib.ExperimentConfig, launch: str, bounds: bool
) -> dict[str, Any]:
  return bench_lib.bench(
    config,
    arguments.seconds,
    arguments.warmup_seconds,
    measures_bounds=bounds,
    launch=launch,
    tell=_tell,
  )


def _tell(line: str) -> None:
  print(line, file=sys.stderr, flush=True)
