"""The command line: `seed-acme COMMAND ...`. The only place that reads it."""
from __future__ import annotations

from collections.abc import Callable
import dataclasses
import json
import os
import shutil
import signal
import sys
from typing import Any, Literal

import tyro

from seed_acme import config as config_lib
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.configs import registry as configs
from seed_acme.programs import parsing
from seed_acme.programs import processes

_DEFAULT_CONFIG = 'catch_vtrace'
_MAX_ERROR_LINES = 4


@dataclasses.dataclass(frozen=True)
class TrainArguments:
  """Train. `--config=NAME_OR_PATH` chooses the configuration (`seed-acme list`).

  config: overrides, `--config.FIELD=VALUE`.
  run_dir: folder of the run; one that holds a run is resumed. '' = runs/<config>/<time>.
  launch: local_mp = Launchpad processes, local_mt = Launchpad threads, single_process.
  max_restarts: times that a failed run is resumed from its newest checkpoint by itself.
  json: print the summary as JSON.
  """
  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  run_dir: str = ''
  launch: Literal['local_mp', 'local_mt', 'single_process'] = 'local_mp'
  max_restarts: int = 0
  json: bool = False


@dataclasses.dataclass(frozen=True)
class PlotArguments:
  """Draw return against steps and against wall time, several runs on one figure.

  out: the picture to write.
  """
  run_dirs: tyro.conf.Positional[tuple[str, ...]]
  out: str = 'plot.png'


@dataclasses.dataclass(frozen=True)
class BenchArguments:
  """Measure throughput and account for it. `--config=NAME_OR_PATH` chooses what is run.

  seconds: length of the measured window. warmup_seconds: training before it.
  bounds: also measure environment, inference and training alone. json: print JSON.
  """
  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  seconds: float = 30.0
  warmup_seconds: float = 8.0
  bounds: bool = True
  json: bool = False


@dataclasses.dataclass(frozen=True)
class ListArguments:
  """Show configurations, agents and environments, and what is installed.

  json: print JSON.
  """
  json: bool = False


@dataclasses.dataclass(frozen=True)
class DoctorArguments:
  """Say what of the stack is right or wrong on this machine, and how to mend it.

  json: print JSON.
  """
  json: bool = False


def train(argv: list[str]) -> int:
  from seed_acme.loggers import terminal
  from seed_acme.programs import summary as summary_lib
  from seed_acme.programs import training_run
  name, rest = parsing.take_config(argv)
  run_dir = parsing.peek(rest, '--run_dir')
  if not name and run_dir and run_directory.RunDirectory(_path(run_dir)).holds_run():
    base = saved_config.load(run_directory.RunDirectory(_path(run_dir)).config)
  else:
    base = configs.load(name or _DEFAULT_CONFIG)
  arguments = parsing.parse(TrainArguments, rest, 'train', TrainArguments(config=base))
  folder = training_run.prepare(arguments.config, arguments.run_dir or None)
  resumes = folder.holds_run()
  if not arguments.json:
    print(f'{"Resuming" if resumes else "Run"}: {_shown(folder.path)}\n'
          f'TensorBoard: {_command("tensorboard")} --logdir={_shown(folder.tensorboard)}',
          flush=True)
  progress = None if arguments.json else terminal.Progress()
  outcome = training_run.run(
      arguments.config, folder, launch=arguments.launch, max_restarts=arguments.max_restarts,
      show=lambda text: print(text, file=sys.stderr), progress=progress)
  if progress is not None:
    progress.finish()
  if outcome.failure is not None or outcome.exit_code in (
      processes.FAILURE_EXIT, processes.USER_ERROR_EXIT):
    print(summary_lib.failure_text(outcome.failure, folder), file=sys.stderr, flush=True)
  if outcome.exit_code == processes.USER_ERROR_EXIT:
    return outcome.exit_code
  if arguments.json:
    print(json.dumps(outcome.summary))
  else:
    _print_summary(outcome.summary, folder)
  return outcome.exit_code


def _print_summary(summary: dict[str, Any], folder: run_directory.RunDirectory) -> None:
  mean_return = summary['episode_return_last_100']
  shown_return = '-' if mean_return is None else f'{mean_return:.3g}'
  print(f'{summary["status"].capitalize()}: {summary["agent_steps"]:,} steps, '
        f'{summary["updates"]:,} updates, {summary["episodes"]:,} episodes, '
        f'return of the last 100: {shown_return}')
  print(f'{summary["steps_per_s"]:,.0f} steps/s, {summary["steps_per_cpu_s"]:,.0f} steps per '
        'CPU-second (all processes, start-up included)')
  if folder.plot.exists():
    print(f'Plot: {_shown(folder.plot)}')
  program, path = _command('seed-acme'), _shown(folder.path)
  print(f'Evaluate: {program} evaluate {path}')
  if summary['status'] == 'finished':
    print(f'Extend: {program} train --run_dir={path} '
          f'--config.total_steps={2 * summary["agent_steps"]}')
  else:
    print(f'Resume: {program} train --run_dir={path}')


def evaluate(argv: list[str]) -> int:
  from seed_acme.programs import evaluate_command
  return evaluate_command.evaluate(parsing.parse(
      evaluate_command.EvaluateArguments, argv, 'evaluate'))


def plot(argv: list[str]) -> int:
  from seed_acme import plot as plot_lib
  arguments = parsing.parse(PlotArguments, argv, 'plot')
  if not arguments.run_dirs:
    raise types.UserError('plot needs at least one run folder: seed-acme plot runs/latest')
  plot_lib.plot(list(arguments.run_dirs), arguments.out)
  print(f'Plot: {arguments.out}')
  return 0


def bench(argv: list[str]) -> int:
  from seed_acme.programs import bench as bench_lib
  name, rest = parsing.take_config(argv)
  arguments = parsing.parse(BenchArguments, rest, 'bench',
                     BenchArguments(config=configs.load(name or 'bench_catch_mlp')))
  result = bench_lib.bench(arguments.config, arguments.seconds, arguments.warmup_seconds,
                           measures_bounds=arguments.bounds)
  print(json.dumps(result) if arguments.json else bench_lib.describe(result))
  return 0


def list_everything(argv: list[str]) -> int:
  from seed_acme.envs import registry as environments
  arguments = parsing.parse(ListArguments, argv, 'list')
  loaded = {name: configs.load(name) for name in configs.names()}
  agents = sorted({config.agent.agent for config in loaded.values()})
  known = environments.known_environments()
  if arguments.json:
    print(json.dumps({'configs': list(loaded), 'agents': agents,
                      'environments': [environment._asdict() for environment in known]}))
    return 0
  print('Configurations (seed-acme train --config=NAME):')
  for name, config in loaded.items():
    print(f'  {name:24} {config.agent.agent} on {config.environment.id}, '
          f'{config.total_steps:,} steps')
  print(f'Agents:\n  {", ".join(agents)}\nEnvironments (--config.environment.id=ID):')
  for environment in known:
    state = 'installed' if environment.is_available else f'missing: {environment.install}'
    settings = f' (settings: {", ".join(environment.settings)})' if environment.settings else ''
    print(f'  {environment.id:24} {environment.description}{settings} [{state}]')
  return 0


def doctor(argv: list[str]) -> int:
  from seed_acme import doctor as doctor_lib
  arguments = parsing.parse(DoctorArguments, argv, 'doctor')
  checks = doctor_lib.run()
  print(doctor_lib.to_json(checks) if arguments.json else doctor_lib.to_text(checks))
  return processes.FAILURE_EXIT if doctor_lib.is_wrong(checks) else 0


def inspect(argv: list[str]) -> int:
  from seed_acme.programs import inspect_command
  return inspect_command.inspect(parsing.parse(
      inspect_command.InspectArguments, inspect_command.with_watch_period(argv), 'inspect'))


_COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    'train': (train, 'train, or resume, a run'),
    'evaluate': (evaluate, 'play greedy episodes from checkpoints, on video too'),
    'plot': (plot, 'draw learning curves of one or more runs'),
    'inspect': (inspect, 'look into a replay server: sizes, rates, who waits, items'),
    'bench': (bench, 'measure throughput and account for it'),
    'list': (list_everything, 'configurations, agents, environments'),
    'doctor': (doctor, 'check this machine and installation'),
}


def main(argv: list[str] | None = None) -> int:
  """Exit code: 0, 1 after a failure, 2 after wrong input, 130 or 143 after a signal."""
  argv = sys.argv[1:] if argv is None else argv
  if not argv or argv[0] in ('-h', '--help', 'help'):
    print('usage: seed-acme COMMAND [--help] ...\n')
    print('\n'.join(f'  {name:10} {text}' for name, (_, text) in _COMMANDS.items()))
    return 0 if argv else processes.USER_ERROR_EXIT
  if argv[0] not in _COMMANDS:
    print(f'error: unknown command {argv[0]!r}; known: {", ".join(_COMMANDS)}', file=sys.stderr)
    return processes.USER_ERROR_EXIT
  sys.path.append(os.getcwd())  # where a user's own environment or network may lie
  signal.signal(signal.SIGTERM, _terminated)  # a run that is under way has a better answer
  try:
    return _COMMANDS[argv[0]][0](argv[1:])
  except types.UserError as error:
    lines = f'error: {error}'.splitlines()[:_MAX_ERROR_LINES]
    print('\n'.join(lines), file=sys.stderr)
    return processes.USER_ERROR_EXIT
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  except BrokenPipeError:  # `seed-acme list | head`
    sys.stderr.close()
    return 128 + signal.SIGPIPE


def _terminated(*_: object) -> None:
  raise SystemExit(128 + signal.SIGTERM)


def _path(text: str) -> Any:
  return run_directory.pathlib.Path(text).absolute()


def _command(name: str) -> str:
  """How this installation's `name` is called from here: by name only if that finds it."""
  installed = os.path.join(os.path.dirname(sys.executable), name)
  return name if shutil.which(name) == installed else _shown(installed)


def _shown(path: Any) -> str:
  """Relative to the working folder where that is shorter."""
  relative = os.path.relpath(path)
  return relative if len(relative) < len(str(path)) else str(path)


if __name__ == '__main__':
  sys.exit(main())
