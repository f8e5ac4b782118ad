"""`seed-acme train` on this machine, with the run folder here or in a bucket."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import json
import math
import shlex
import sys
from typing import Any, TextIO

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme.loggers import terminal
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import own_name
from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


@dataclasses.dataclass(frozen=True)
class Options:
  """The options of `TrainArguments`. is_launch_given: whether the user has chosen a launch."""

  launch: str
  is_launch_given: bool
  max_restarts: int
  prints_json: bool


def train(
  config: config_lib.ExperimentConfig, run: run_directory.RunDirectory | None, options: Options
) -> int:
  """Trains and returns the exit code. run: the folder that `--run_dir` names; None = a new one."""
  if not options.prints_json:
    return _train(config, run, options, sys.stdout)
  with streams.results_only() as results:
    return _train(config, run, options, results)


def show_layout(config: config_lib.ExperimentConfig, launch: launches.Launch) -> command_lib.Answer:
  """Returns the processes and devices that a run would use; starts nothing."""
  config_validation.validate(config)
  layout = layout_lib.Layout.of(config)
  launch.refuse(layout)
  record = json.loads(json.dumps(dataclasses.asdict(layout), default=list))  # env_ids are ranges
  return command_lib.Answer(record, f'{config.name}: {layout}')


def _train(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory | None,
  options: Options,
  results: TextIO,
) -> int:
  config_validation.validate(config)
  layout, launch = layout_lib.Layout.of(config), launches.load(options.launch)
  launch.refuse(layout)
  path, bucket = (str(run.path), run.bucket) if run else (None, '')
  config, folder = lifecycle.prepare(config, path, bucket)
  if not options.prints_json:
    log_folder = f'--logdir={shown(folder).rstrip("/")}/tensorboard'
    print(
      f'{"Resuming" if folder.holds_run() else "Run"}: {shown(folder)}\n'
      f'TensorBoard: {shlex.join([own_name.command("tensorboard"), log_folder])}',
      flush=True,
    )
    hint = '' if options.is_launch_given else launch_choice.hint(config)
    if hint:
      print(f'Hint: {hint}', flush=True)
  progress = None if options.prints_json else terminal.Progress()
  supervision = launches.Supervision(
    max_restarts=options.max_restarts, show=above(progress), progress=progress
  )
  outcome = launch.start(launches.Run(config, folder), layout, supervision)
  if progress is not None:
    progress.finish()
  if outcome.failure is not None or outcome.exit_code in (
    processes.FAILURE_EXIT,
    processes.USER_ERROR_EXIT,
  ):
    print(summary_lib.failure_text(outcome.failure, folder), file=sys.stderr, flush=True)
  if not outcome.summary:  # nothing was begun
    return outcome.exit_code
  if options.prints_json:
    print(json.dumps(outcome.summary), file=results)
  else:
    _print_summary(config, outcome.summary, folder, options)
  return outcome.exit_code


def above(progress: terminal.Progress | None) -> Callable[[str], None]:
  """Returns a function that prints to standard error, above a progress line there."""
  if progress is None:
    return lambda text: print(text, file=sys.stderr, flush=True)
  return lambda text: progress.message(text, sys.stderr)


def _print_summary(
  config: config_lib.ExperimentConfig,
  summary: dict[str, Any],
  folder: run_directory.RunDirectory,
  options: Options,
) -> None:
  print(summary_lib.totals_text(summary))
  print(
    f'{summary["steps_per_s"]:,.0f} steps/s, {summary["steps_per_cpu_s"]:,.0f} steps per '
    'CPU-second (all processes, start-up included)'
  )
  if lost := summary_lib.lost_text(summary):
    print(f'Lost: {lost}')
  path, program = shown(folder), own_name.command('seed-acme')
  launch = [f'--launch={options.launch}'] if options.is_launch_given else []
  if folder.plot.exists():
    print(f'Plot: {path.rstrip("/")}/{folder.plot.name}')
  if folder.videos.exists():
    print(f'Videos: {path.rstrip("/")}/{folder.videos.name}')
  if checkpoint.newest(folder.checkpoints) is None:
    return  # nothing to resume
  # Its paths are the user's own code, so the printed commands may trust it.
  trust = ['--trust_run_dir'] if saved_config.trust_in(config).paths else []
  train = shlex.join([program, 'train', f'--run_dir={path}', *trust, *launch])
  if summary['saved_updates']:  # before the first one, there is only a random policy
    print(f'Evaluate: {shlex.join([program, "evaluate", path, *trust])}')
  best = summary.get('best_checkpoint')
  if best is not None and best['updates'] != summary['saved_updates']:
    print(
      f'Best: the checkpoint of update {best["updates"]:,}, with an evaluation return of '
      f'{terminal.number(best["evaluation_return"])}; --checkpoint=best plays that one'
    )
  if summary['status'] == lifecycle.FINISHED:
    print(f'Extend: {train} {extension(config, summary)}')
  else:
    print(f'Resume: {train}')


def extension(config: config_lib.ExperimentConfig, summary: dict[str, Any]) -> str:
  """Returns the options that extend a finished run by as long again, for each budget it used up."""
  steps, wall_s = summary['agent_steps'], summary['wall_s']
  options = []
  if steps >= config.total_steps:
    options.append(f'--config.total_steps={2 * max(steps, config.total_steps)}')
  if config.max_wall_s and wall_s >= config.max_wall_s:
    options.append(f'--config.max_wall_s={math.ceil(2 * max(wall_s, config.max_wall_s))}')
  return ' '.join(options)


def shown(folder: run_directory.RunDirectory) -> str:
  """Returns where the run is, relative to the working folder if that is shorter."""
  return folder.bucket or own_name.shorter(str(folder.path))
