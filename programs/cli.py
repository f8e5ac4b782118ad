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
from seed_acme.programs.vertex import cloud

_DEFAULT_CONFIG = 'catch_vtrace'
_MAX_ERROR_LINES = 4


@dataclasses.dataclass(frozen=True)
class TrainArguments:
  """Train. `--config=NAME_OR_PATH` chooses the configuration (`seed-acme list`).

  config: overrides, `--config.FIELD=VALUE`.
  run_dir: folder of the run, gs://BUCKET/FOLDER too; one that holds a run is resumed.
  '' = runs/<config>/<time>, of vertex_ai the same in its bucket.
  launch: local_mp = Launchpad processes, local_mt = Launchpad threads, single_process,
  vertex_ai = a job on Google's Vertex AI (docs/scaling.md).
  max_restarts: times that a failed run is resumed from its newest checkpoint by itself.
  json: print the summary as JSON.
  dry_run: of vertex_ai, write what would be sent to the folder --out and start nothing.
  """

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  run_dir: str = ''
  launch: Literal['local_mp', 'local_mt', 'single_process', 'vertex_ai'] = 'local_mp'
  max_restarts: int = 0
  json: bool = False
  dry_run: bool = False
  out: str = ''
  cloud: cloud.CloudConfig = cloud.CloudConfig()


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
  from seed_acme.programs import bucket_run
  from seed_acme.programs.vertex import command as vertex_command

  name, rest = parsing.take_config(argv)
  run_dir = parsing.peek(rest, '--run_dir')
  if parsing.peek(rest, '--launch') == vertex_command.LAUNCH:  # its run is not worked on here
    return _train(name, rest, run_dir, None)
  with bucket_run.opened(run_dir) as run:
    return _train(name, rest, run_dir, run)


def _train(name: str, rest: list[str], run_dir: str, run: run_directory.RunDirectory | None) -> int:
  from seed_acme.programs import train_command
  from seed_acme.programs.vertex import command as vertex_command

  if not name and run is not None and run.holds_run():
    base = saved_config.load(run.config)
  else:
    base = configs.load(name or _DEFAULT_CONFIG)
  arguments = parsing.parse(TrainArguments, rest, 'train', TrainArguments(config=base))
  if arguments.launch == vertex_command.LAUNCH:
    if arguments.max_restarts or arguments.json:
      raise types.UserError(
        '--max_restarts and --json are not for --launch=vertex_ai, which '
        'restarts nodes by itself: leave them out'
      )
    if run_dir and not name:
      raise types.UserError(
        '--launch=vertex_ai with --run_dir needs --config=NAME_OR_PATH, the same as before'
      )
    return vertex_command.train(
      vertex_command.Request(
        arguments.config,
        arguments.cloud,
        arguments.run_dir,
        arguments.dry_run,
        arguments.out,
        _command('seed-acme'),
        (f'--config={name or _DEFAULT_CONFIG}', *rest),
      )
    )
  if arguments.dry_run or arguments.out or arguments.cloud != cloud.CloudConfig():
    raise types.UserError(
      '--dry_run, --out and --cloud.… are for --launch=vertex_ai: add it, or leave them out'
    )
  return train_command.train(
    arguments.config,
    run,
    train_command.Options(arguments.launch, arguments.max_restarts, arguments.json, _command),
  )


def evaluate(argv: list[str]) -> int:
  from seed_acme.programs import evaluate_command

  return evaluate_command.evaluate(
    parsing.parse(evaluate_command.EvaluateArguments, argv, 'evaluate')
  )


def plot(argv: list[str]) -> int:
  from seed_acme import plot as plot_lib

  arguments = parsing.parse(PlotArguments, argv, 'plot')
  if not arguments.run_dirs:
    raise types.UserError('plot needs at least one run folder: seed-acme plot runs/latest')
  plot_lib.plot(list(arguments.run_dirs), arguments.out)
  print(f'Plot: {arguments.out}')
  return 0


def sweep(argv: list[str]) -> int:
  from seed_acme.programs.sweep import command as sweep_command

  name, rest = parsing.take_config(argv)
  saved = sweep_command.saved_plan(parsing.peek(rest, '--out'))
  base = configs.load(name or _DEFAULT_CONFIG) if name or saved is None else saved.base
  arguments = parsing.parse(
    sweep_command.SweepArguments, rest, 'sweep', sweep_command.SweepArguments(config=base)
  )
  if not name and saved is None and not arguments.report:
    raise types.UserError('sweep needs --config=NAME_OR_PATH, or --out=DIR with a sweep to resume')
  return sweep_command.sweep(arguments, parsing.overridden(rest), saved, _command('seed-acme'))


def bench(argv: list[str]) -> int:
  from seed_acme.programs import bench as bench_lib

  name, rest = parsing.take_config(argv)
  arguments = parsing.parse(
    BenchArguments, rest, 'bench', BenchArguments(config=configs.load(name or 'bench_catch_mlp'))
  )
  result = bench_lib.bench(
    arguments.config, arguments.seconds, arguments.warmup_seconds, measures_bounds=arguments.bounds
  )
  print(json.dumps(result) if arguments.json else bench_lib.describe(result))
  return 0


def node(argv: list[str]) -> int:
  from seed_acme.programs.cluster import node_command

  name, rest = parsing.take_config(argv)
  base = configs.load(name or _DEFAULT_CONFIG)
  arguments = parsing.parse(
    node_command.NodeArguments,
    rest,
    'node',
    node_command.NodeArguments(role=tyro.MISSING, config=base),
  )
  if not name:
    raise types.UserError('node needs --config=NAME_OR_PATH, the same on every host')
  return node_command.node(arguments, parsing.overridden(rest))


def manifest(argv: list[str]) -> int:
  from seed_acme.programs.cluster import manifest_command

  name, rest = parsing.take_config(argv)
  base = configs.load(name or _DEFAULT_CONFIG)
  arguments = parsing.parse(
    manifest_command.ManifestArguments,
    rest,
    'manifest',
    manifest_command.ManifestArguments(config=base),
  )
  if not name:
    raise types.UserError('manifest needs --config=NAME_OR_PATH')
  return manifest_command.manifest(arguments)


def list_everything(argv: list[str]) -> int:
  from seed_acme.envs import registry as environments

  arguments = parsing.parse(ListArguments, argv, 'list')
  loaded = {name: configs.load(name) for name in configs.names()}
  agents = sorted({config.agent.agent for config in loaded.values()})
  known = environments.known_environments()
  if arguments.json:
    print(
      json.dumps(
        {
          'configs': list(loaded),
          'agents': agents,
          'environments': [environment._asdict() for environment in known],
        }
      )
    )
    return 0
  print('Configurations (seed-acme train --config=NAME):')
  for name, config in loaded.items():
    print(
      f'  {name:24} {config.agent.agent} on {config.environment.id}, {config.total_steps:,} steps'
    )
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
  from seed_acme.programs.inspection import command as inspect_command

  return inspect_command.inspect(
    parsing.parse(
      inspect_command.InspectArguments, inspect_command.with_watch_period(argv), 'inspect'
    )
  )


_COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
  'train': (train, 'train, or resume, a run'),
  'evaluate': (evaluate, 'play greedy episodes from checkpoints, on video too'),
  'sweep': (sweep, 'run combinations of settings over several seeds: one table, two figures'),
  'plot': (plot, 'draw learning curves of one or more runs'),
  'node': (node, 'run one node of a run on this host, the others on other hosts'),
  'manifest': (manifest, 'write the Kubernetes objects that start all nodes of a run'),
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
