"""`seed-acme bench`: measures throughput, or with --soak_steps memory growth."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import pathlib
import sys
from typing import Annotated, Any, Literal

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.configs import registry
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.pictures import drawing
from seed_acme.programs.tools.benchmark import bench as bench_lib
from seed_acme.programs.tools.benchmark import description
from seed_acme.programs.tools.benchmark import side_by_side
from seed_acme.programs.tools.benchmark import soak
from seed_acme.programs.tools.benchmark import sweep

_ROUNDS = 3
_Result = int | command_lib.Answer


@dataclasses.dataclass(frozen=True)
class BenchArguments:
  """Measure throughput and account for it.

  launch: as for `train`.
  seconds: length of the measured window; it is extended automatically if it proves too short.
  warmup_seconds: training before the window.
  bounds: also measure environment, inference and training alone; not with --against.
  against: a second configuration, by name or path. The two are measured alternately, and their
    steps per CPU-second are compared. --config.FIELD options apply to the first only.
  against_launch: how the second is launched, by default as the first; without --against the second
    is the first configuration, launched like this.
  rounds: how often each of the two is measured; 0 = 3.
  sweep: measure several shapes instead of one, given as 1x32,4x32: actors x environments per actor.
    default = 1x32,1x512,2x256,4x32,8x32. Without bounds. Exit code 1 if one fails.
  sweep_batches: with --sweep, measure each shape with each of these batch sizes in unrolls, as
    64,256; '' = as configured.
  sweep_out: with --sweep, the folder for the record and figure; shapes already recorded in it are
    not measured again.
  soak_steps: instead of throughput, watch the resident memory of all processes over this many agent
    steps; exit code 1 if the learner's grows. 0 = measure throughput.
  soak_plot: with --soak_steps, the picture to write.
  json: print JSON.
  """

  launch: Literal['local_mp', 'single_process'] = 'local_mp'
  seconds: Annotated[float, bounds.above(0)] = 30.0
  warmup_seconds: Annotated[float, bounds.at_least(0)] = 8.0
  bounds: bool = True
  against: str = ''
  against_launch: Literal['', 'local_mp', 'single_process'] = ''
  rounds: Annotated[int, bounds.at_least(0)] = 0
  sweep: str = ''
  sweep_batches: str = ''
  sweep_out: str = 'bench_sweep'
  soak_steps: Annotated[int, bounds.at_least(0)] = 0
  soak_plot: str = ''
  json: bool = False


def bench(arguments: BenchArguments, given: given_lib.Given) -> _Result:
  """Runs the measurement that the options ask for; raises `UserError` for several."""
  asked = [name for name, is_asked in _asked(arguments).items() if is_asked]
  if len(asked) > 1:
    raise types.UserError(
      f'{" and ".join(asked)} ask for different measurements: leave all but one out'
    )
  mode = asked[0] if asked else ''
  for name, owner in _BELONGS_TO.items():
    value = getattr(arguments, name)
    if value != getattr(BenchArguments, name) and mode != owner:
      raise types.UserError(f'--{name}={value} is for {owner}: add it, or leave --{name} out')
  return _MODES[mode](arguments, given.config())


def _asked(arguments: BenchArguments) -> dict[str, bool]:
  """Returns which measurements other than the plain throughput are asked for, by option."""
  return {
    '--against': bool(arguments.against or arguments.against_launch),
    '--sweep': bool(arguments.sweep),
    '--soak_steps': bool(arguments.soak_steps),
  }


def _throughput(
  arguments: BenchArguments, config: config_lib.ExperimentConfig
) -> command_lib.Answer:
  result = _measured(arguments, config, arguments.launch, arguments.bounds)
  return command_lib.Answer(result, description.describe(result))


def _soak(arguments: BenchArguments, config: config_lib.ExperimentConfig) -> int:
  return soak.command(config, arguments.soak_steps, arguments.soak_plot, arguments.json)


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


def _sweep(arguments: BenchArguments, config: config_lib.ExperimentConfig) -> command_lib.Answer:
  folder = pathlib.Path(arguments.sweep_out)
  record = sweep.measure(
    sweep.points(config, arguments.sweep, arguments.sweep_batches),
    sweep.Window(arguments.seconds, arguments.warmup_seconds, arguments.launch),
    folder,
    tell=_tell,
  )
  figure = drawing.or_notice(lambda: sweep.draw(record, folder), 'Notice: the figure', _tell)
  text = sweep.describe(record) + (f'\nFigure: {figure}' if figure else '')
  return command_lib.Answer(record, text, 0 if sweep.is_whole(record) else 1)


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


_MODES: dict[str, Callable[[BenchArguments, config_lib.ExperimentConfig], _Result]] = {
  '': _throughput,
  '--against': _against,
  '--sweep': _sweep,
  '--soak_steps': _soak,
}
# Options that apply to one measurement only: the option that selects that measurement.
_BELONGS_TO = {
  'rounds': '--against',
  'sweep_batches': '--sweep',
  'sweep_out': '--sweep',
  'soak_plot': '--soak_steps',
}
