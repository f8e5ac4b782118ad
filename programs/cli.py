"""The command line: `seed-acme COMMAND ...`. The only place that reads it."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, Literal

import tyro

import seed_acme
from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import distribution
from seed_acme.checks import numbers
from seed_acme.configs import registry as configs
from seed_acme.programs.command_line import own_name
from seed_acme.programs.command_line import parsing
from seed_acme.programs.front_end import launches
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.system import streams
from seed_acme.programs.trial import door
from seed_acme.programs.vertex import cloud
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib
from seed_acme.utils import matplotlib_loading

_DEFAULT_CONFIG = 'catch_vtrace'
_MAX_ERROR_LINES = 4

if TYPE_CHECKING:
  LaunchName = str
else:
  LaunchName = Literal[launches.choices()]


@dataclasses.dataclass(frozen=True)
class TrainArguments:
  """Train, or resume, a run.

  run_dir: folder of the run, gs://BUCKET/FOLDER too; one that holds a run is resumed.
    '' = runs/<config>/<time>, of vertex_ai the same in its bucket.
  launch: {launches}.
  max_restarts: times that a failed run is resumed from its newest checkpoint by itself.
  json: print the summary as JSON, or the layout.
  show_layout: print who acts for whom, where and with which replay, and start nothing.
  trust_run_dir: import the code outside seed_acme that config.json in run_dir names.
  dry_run: of vertex_ai, write what would be sent to the folder --out and start nothing.
  out: of vertex_ai with --dry_run, the folder to write.
  cloud: of vertex_ai.
  """

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  run_dir: str = ''
  launch: LaunchName = 'local_mp'
  max_restarts: int = 0
  json: bool = False
  show_layout: bool = False
  trust_run_dir: bool = False
  dry_run: bool = False
  out: str = ''
  cloud: cloud.CloudConfig = cloud.CloudConfig()


TrainArguments.__doc__ = (TrainArguments.__doc__ or '').format(launches=launches.summaries())


def train(argv: list[str]) -> int:
  from seed_acme.programs.front_end import bucket_folder

  name, rest = parsing.take_config(argv)
  if not launches.is_here(parsing.peek(rest, '--launch')):
    return _train(name, rest, None)
  with bucket_folder.opened(parsing.peek(rest, '--run_dir')) as run:
    return _train(name, rest, run)


def _train(name: str, rest: list[str], run: run_directory.RunDirectory | None) -> int:
  from seed_acme.programs.front_end import train_command

  if not name and run is not None and run.holds_run():
    base = saved_config.load(run.config, _trust(rest))
  else:
    base = configs.load(name or _DEFAULT_CONFIG)
  arguments = parsing.parse(TrainArguments, rest, 'train', TrainArguments(config=base))
  numbers.check_at_least_zero({'--max_restarts': arguments.max_restarts})
  launch = launches.load(arguments.launch)
  if arguments.show_layout:
    return train_command.show_layout(arguments.config, launch, arguments.json)
  if not launches.is_here(arguments.launch):
    layout = layout_lib.Layout.of(arguments.config)
    launch.refuse(layout)
    program = own_name.command('seed-acme')
    words = (f'--config={name or _DEFAULT_CONFIG}', *rest)
    command = launches.Command(arguments, bool(name), words, program)
    given = launches.Run(arguments.config, None, command)
    return launch.start(given, layout, launches.Life(arguments.max_restarts)).exit_code
  if arguments.dry_run or arguments.out or arguments.cloud != cloud.CloudConfig():
    raise types.UserError(
      '--dry_run, --out and --cloud.… are for --launch=vertex_ai: add it, or leave them out'
    )
  is_given = bool(parsing.peek(rest, '--launch'))
  options = train_command.Options(
    arguments.launch, is_given, arguments.max_restarts, arguments.json, own_name.command
  )
  return train_command.train(arguments.config, run, options)


def _trust(argv: list[str]) -> trust_lib.Trust:
  """In what the command gives itself; asked for before the rest can be parsed."""
  return trust_lib.Trust(
    '--trust_run_dir' in argv or '--trust-run-dir' in argv, frozenset(parsing.overridden(argv))
  )


def evaluate(argv: list[str]) -> int:
  from seed_acme.programs.reports import evaluate_command

  return evaluate_command.evaluate(
    parsing.parse(evaluate_command.EvaluateArguments, argv, 'evaluate')
  )


def export(argv: list[str]) -> int:
  from seed_acme.programs.export import command as export_command

  return export_command.export(parsing.parse(export_command.ExportArguments, argv, 'export'))


def pack(argv: list[str]) -> int:
  from seed_acme.programs.packing import command as packing_command

  return packing_command.pack(parsing.parse(packing_command.PackArguments, argv, 'pack'))


def unpack(argv: list[str]) -> int:
  from seed_acme.programs.packing import command as packing_command

  return packing_command.unpack(parsing.parse(packing_command.UnpackArguments, argv, 'unpack'))


def plot(argv: list[str]) -> int:
  from seed_acme.programs.reports import plot_command

  return plot_command.plot(parsing.parse(plot_command.PlotArguments, argv, 'plot'))


def sweep(argv: list[str]) -> int:
  from seed_acme.programs.sweep import command as sweep_command

  name, rest = parsing.take_config(argv)
  saved = sweep_command.saved_plan(parsing.peek(rest, '--out'), _trust(rest))
  base = configs.load(name or _DEFAULT_CONFIG) if name or saved is None else saved.base
  default = sweep_command.SweepArguments(config=base)
  arguments = parsing.parse(sweep_command.SweepArguments, rest, 'sweep', default)
  if not name and saved is None and not arguments.report:
    raise types.UserError('sweep needs --config=NAME_OR_PATH, or --out=DIR with a sweep to resume')
  return sweep_command.sweep(
    arguments, parsing.overridden(rest), saved, own_name.command('seed-acme')
  )


def bench(argv: list[str]) -> int:
  from seed_acme.programs.benchmark import command as bench_command

  name, rest = parsing.take_config(argv)
  default = bench_command.BenchArguments(config=configs.load(name or 'bench_catch_mlp'))
  return bench_command.bench(parsing.parse(bench_command.BenchArguments, rest, 'bench', default))


def plan(argv: list[str]) -> int:
  from seed_acme.programs.planning import command as plan_command

  return plan_command.plan(parsing.parse(plan_command.PlanArguments, argv, 'plan'))


def node(argv: list[str]) -> int:
  from seed_acme.programs.cluster import node_command

  name, rest = parsing.take_config(argv)
  base = configs.load(name or _DEFAULT_CONFIG)
  default = node_command.NodeArguments(role=tyro.MISSING, config=base)
  arguments = parsing.parse(node_command.NodeArguments, rest, 'node', default)
  if not name:
    raise types.UserError('node needs --config=NAME_OR_PATH, the same on every host')
  return node_command.node(arguments, parsing.overridden(rest))


def manifest(argv: list[str]) -> int:
  from seed_acme.programs.cluster import manifest_command

  name, rest = parsing.take_config(argv)
  default = manifest_command.ManifestArguments(config=configs.load(name or _DEFAULT_CONFIG))
  arguments = parsing.parse(manifest_command.ManifestArguments, rest, 'manifest', default)
  if not name:
    raise types.UserError('manifest needs --config=NAME_OR_PATH')
  return manifest_command.manifest(arguments)


def list_everything(argv: list[str]) -> int:
  from seed_acme.programs.reports import list_command

  return list_command.show(parsing.parse(list_command.ListArguments, argv, 'list'))


def doctor(argv: list[str]) -> int:
  from seed_acme.programs.doctor import command as doctor_command

  return doctor_command.doctor(parsing.parse(doctor_command.DoctorArguments, argv, 'doctor'))


def actor_env(argv: list[str]) -> int:
  from seed_acme.programs.actor_environment import command as actor_env_command

  return actor_env_command.make(
    parsing.parse(actor_env_command.ActorEnvArguments, argv, 'actor-env')
  )


def inspect(argv: list[str]) -> int:
  from seed_acme.programs.inspection import command as inspect_command

  argv = inspect_command.with_watch_period(argv)
  return inspect_command.inspect(parsing.parse(inspect_command.InspectArguments, argv, 'inspect'))


def completion(argv: list[str]) -> int:
  from seed_acme.programs.command_line import completion as completion_lib

  return completion_lib.main(argv, list(_COMMANDS), _DEFAULT_CONFIG)


_COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
  'train': (train, 'train, or resume, a run'),
  'evaluate': (evaluate, 'play greedy episodes from checkpoints, on video too'),
  'export': (export, 'write the policy of a checkpoint as a TensorFlow SavedModel'),
  'pack': (pack, 'write a run into one zip, with a card that says what it is'),
  'unpack': (unpack, 'make the folder of a run from such a zip'),
  'sweep': (sweep, 'run combinations of settings over several seeds: one table, two figures'),
  'plot': (plot, 'draw learning curves of one or more runs'),
  'node': (node, 'run one node of a run on this host, the others on other hosts'),
  'manifest': (manifest, 'write the Kubernetes objects that start all nodes of a run'),
  'inspect': (inspect, 'look into a replay server: sizes, rates, who waits, items'),
  'bench': (bench, 'measure throughput and account for it'),
  'plan': (plan, 'plan a run at any scale from what bench measured'),
  'list': (list_everything, 'configurations, agents, environments'),
  'doctor': (doctor, 'check this machine and installation'),
  'actor-env': (actor_env, 'make an environment of another Python, for actors'),
  'completion': (completion, 'print the script by which bash or zsh completes seed-acme'),
}


def main(argv: list[str] | None = None) -> int:
  """Exit code: 0, 1 after a failure, 2 after wrong input, 129, 130 or 143 after a signal."""
  streams.accept_any_text()
  argv = sys.argv[1:] if argv is None else argv
  if not argv or argv[0] in ('-h', '--help', 'help'):
    print('usage: seed-acme COMMAND [--help] ...\n       seed-acme --version\n')
    print('\n'.join(f'  {name:10} {text}' for name, (_, text) in _COMMANDS.items()))
    return 0 if argv else processes.USER_ERROR_EXIT
  if argv[0] == '--version':
    print(f'seed-acme {seed_acme.__version__}')
    return 0
  if argv[0] not in _COMMANDS:
    print(f'error: unknown command {argv[0]!r}; known: {", ".join(_COMMANDS)}', file=sys.stderr)
    return processes.USER_ERROR_EXIT
  matplotlib_loading.use_own_backend()
  # A run that is under way has a better answer. Ctrl-C raises KeyboardInterrupt.
  signals.answer(_terminated, signal.SIGINT)
  return _exit_code(lambda: _run(argv[0], argv[1:]))


def _run(name: str, argv: list[str]) -> int:
  distribution.check_command(name)
  sys.path.append(os.getcwd())  # where a user's own environment or network may lie
  run_command, _ = _COMMANDS[name]
  return run_command(argv)


def _exit_code(act: Callable[[], int]) -> int:
  """Of a command; says what an error of it is."""
  try:
    return act()
  except types.UserError as error:
    _show_error(error)
    return processes.USER_ERROR_EXIT
  except (types.Failure, door.CannotStart) as error:
    _show_error(error)
    return processes.FAILURE_EXIT
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  except BrokenPipeError:  # `seed-acme list | head`
    sys.stderr.close()
    return 128 + signal.SIGPIPE
  except OSError as error:
    if error.errno != errno.ENAMETOOLONG:
      raise
    _show_error(types.UserError(_too_long(os.fspath(error.filename or ''))))
    return processes.USER_ERROR_EXIT


def _too_long(path: str | bytes) -> str:
  """Wherever a path is used first, since any command takes several."""
  name = os.fsdecode(path)
  return (
    f'the path {name[:40]}... ({len(os.fsencode(name))} bytes) is too long: a file system allows '
    'about 255 bytes for a name and 4,096 for a path; choose a shorter one'
  )


def _show_error(error: Exception) -> None:
  print('\n'.join(f'error: {error}'.splitlines()[:_MAX_ERROR_LINES]), file=sys.stderr)


def _terminated(number: int) -> None:
  raise SystemExit(128 + number)


if __name__ == '__main__':
  sys.exit(main())
