"""`seed-acme train`: trains on this machine, with a local folder or a bucket, or on Vertex AI."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.vertex import cloud
from seed_acme.storage import run_locks
from seed_acme.storage import saved_config

if TYPE_CHECKING:
  from seed_acme import config as config_lib
  from seed_acme.storage import run_directory

_LAUNCHES = ('', *launches.choices())
if TYPE_CHECKING:
  LaunchName = str
else:
  LaunchName = Literal[_LAUNCHES]


@dataclasses.dataclass(frozen=True)
class TrainArguments:
  """Train, or resume, a run.

  run_dir: folder of the run, also gs://BUCKET/FOLDER; a run in it is resumed. '' =
    runs/<config>/<time>, for vertex_ai the same in its bucket.
  launch: {launches}. Unless given, local_mp.
  max_restarts: times that a failed run is resumed automatically from its newest checkpoint.
  json: print the summary as JSON, or the layout.
  show_layout: print which learner serves which actors, with which devices and replay, and start
    nothing.
  trust_run_dir: run the code outside seed_acme, and the Python, that config.json in run_dir names.
  dry_run: for vertex_ai, write what would be sent to the folder --out and start nothing.
  out: for vertex_ai with --dry_run, the folder to write.
  cloud: settings for vertex_ai.
  """

  run_dir: str = ''
  launch: LaunchName = ''
  max_restarts: Annotated[int, bounds.at_least(0)] = 0
  json: bool = False
  show_layout: bool = False
  trust_run_dir: bool = False
  dry_run: bool = False
  out: str = ''
  cloud: cloud.CloudConfig = cloud.CloudConfig()


TrainArguments.__doc__ = (TrainArguments.__doc__ or '').format(launches=launches.summaries())


def train(arguments: TrainArguments, given: given_lib.Given) -> int | command_lib.Answer:
  """Trains; raises `UserError`."""
  from seed_acme.programs.front_end import bucket_folder
  from seed_acme.programs.front_end import train_command

  name = arguments.launch or launches.LOCAL_MP
  launch, is_here = launches.load(name), launches.is_here(name)
  with contextlib.ExitStack() as stack:
    run = stack.enter_context(bucket_folder.opened(arguments.run_dir)) if is_here else None
    base = None
    if run is not None and run.holds_run() and not given.name:
      base = saved_config.load(run.config, given.trust(arguments.trust_run_dir))
    config = given.config(base)
    if run is not None and run.holds_run() and given.name:
      _tell_of_changes(run, config, given)
    for field, reason in config_validation.idle_fields(config, sorted(given.fields)).items():
      _say(f'Notice: --config.{field} has no effect on learning, because {reason}')
    if arguments.show_layout:
      return train_command.show_layout(config, launch)
    if not is_here:
      layout = layout_lib.Layout.of(config)
      launch.refuse(layout)
      words = (f'--config={given.name or given.command.config}', *given.line.words)
      asked = launches.Run(config, None, launches.Command(arguments, bool(given.name), words))
      return launch.start(asked, layout, launches.Supervision(arguments.max_restarts)).exit_code
    if arguments.dry_run or arguments.out or arguments.cloud != cloud.CloudConfig():
      raise types.UserError(
        '--dry_run, --out and --cloud.… are for --launch=vertex_ai: add it, or leave them out'
      )
    options = train_command.Options(
      name, bool(arguments.launch), arguments.max_restarts, arguments.json
    )
    return train_command.train(config, run, options)


def _tell_of_changes(
  run: run_directory.RunDirectory, config: config_lib.ExperimentConfig, given: given_lib.Given
) -> None:
  """Names fields of a saved run that change because `--config` names another configuration, and not
  by an option of their own."""
  run_locks.refuse_if_held(run)
  saved = saved_config.load(run.config, saved_config.trust_in(config), only_types=True)
  if saved_config.differences(saved, config):
    return  # it is refused
  for change in saved_config.permitted_differences(saved, config, given.fields):
    _say(f'Notice: {change}, by --config={given.name}; leave --config out to keep what was saved')


def _say(text: str) -> None:
  print(text, file=sys.stderr, flush=True)
