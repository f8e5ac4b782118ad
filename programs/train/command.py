"""`seed-acme train`: here, its folder on this machine or in a bucket, or on Vertex AI."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Annotated, Literal

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.vertex import cloud
from seed_acme.storage import saved_config

_LOCAL_MP, _VERTEX = 'local_mp', 'vertex_ai'


@dataclasses.dataclass(frozen=True)
class TrainArguments:
  """Train, or resume, a run.

  run_dir: folder of the run, gs://BUCKET/FOLDER too; one that holds a run is resumed.
    '' = runs/<config>/<time>, of vertex_ai the same in its bucket.
  launch: local_mp, unless given, = Launchpad processes, single_process = all in one thread, auto =
    whichever should be faster here (docs/performance.md), vertex_ai = a job on Google's Vertex AI
    (docs/scaling.md).
  max_restarts: times that a failed run is resumed from its newest checkpoint by itself.
  json: print the summary as JSON, or the layout.
  show_layout: print who acts for whom, where and with which replay, and start nothing.
  trust_run_dir: import the code outside seed_acme that config.json in run_dir names.
  dry_run: of vertex_ai, write what would be sent to the folder --out and start nothing.
  out: of vertex_ai with --dry_run, the folder to write.
  cloud: of vertex_ai.
  """

  run_dir: str = ''
  launch: Literal['', 'local_mp', 'single_process', 'auto', 'vertex_ai'] = ''
  max_restarts: Annotated[int, bounds.at_least(0)] = 0
  json: bool = False
  show_layout: bool = False
  trust_run_dir: bool = False
  dry_run: bool = False
  out: str = ''
  cloud: cloud.CloudConfig = cloud.CloudConfig()


def train(arguments: TrainArguments, given: given_lib.Given) -> int | command_lib.Answer:
  """Raises `UserError`."""
  from seed_acme.programs.front_end import bucket_folder
  from seed_acme.programs.front_end import train_command

  is_elsewhere = arguments.launch == _VERTEX  # so its folder is not worked on here
  launch = arguments.launch or _LOCAL_MP
  with contextlib.ExitStack() as stack:
    run = None if is_elsewhere else stack.enter_context(bucket_folder.opened(arguments.run_dir))
    base = None
    if run is not None and run.holds_run() and not given.name:
      base = saved_config.load(run.config, given.trust(arguments.trust_run_dir))
    config = given.config(base)
    if arguments.show_layout:
      return train_command.show_layout(config, launch)
    if is_elsewhere:
      return _train_on_vertex(arguments, given)
    if arguments.dry_run or arguments.out or arguments.cloud != cloud.CloudConfig():
      raise types.UserError(
        '--dry_run, --out and --cloud.… are for --launch=vertex_ai: add it, or leave them out'
      )
    options = train_command.Options(
      launch, bool(arguments.launch), arguments.max_restarts, arguments.json
    )
    return train_command.train(config, run, options)


def _train_on_vertex(arguments: TrainArguments, given: given_lib.Given) -> int:
  from seed_acme.programs.vertex import command as vertex_command

  if arguments.max_restarts or arguments.json:
    raise types.UserError(
      '--max_restarts and --json are not for --launch=vertex_ai, which '
      'restarts nodes by itself: leave them out'
    )
  if arguments.run_dir and not given.name:
    raise types.UserError(
      '--launch=vertex_ai with --run_dir needs --config=NAME_OR_PATH, the same as before'
    )
  request = vertex_command.Request(
    given.config(),
    arguments.cloud,
    arguments.run_dir,
    arguments.dry_run,
    arguments.out,
    (f'--config={given.name or given.command.config}', *given.line.words),
  )
  return vertex_command.train(request)
