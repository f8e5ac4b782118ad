"""`seed-acme pack` and `seed-acme unpack`: turn a run into one file to share, and back."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
import sys
from typing import Annotated, Any

import tyro

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.files import local
from seed_acme.loggers import terminal
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import own_name
from seed_acme.programs.tools.reports import evaluate_command
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import packed_run
from seed_acme.storage import trust as trust_lib


@dataclasses.dataclass(frozen=True)
class PackArguments:
  """Write a run into one zip: configuration, checkpoint, curve, video and a card in Markdown.

  run_dir: folder of the run. out: zip to write.
  checkpoint: newest, best (by evaluation return), the number of its update, or its path.
  episodes: greedy episodes to play with these weights for the score on the card; 0 = none, and the
    card shows the score of the last episodes before the checkpoint was saved.
  video: .mp4 or .gif to include; '' = the newest in the run folder, if any.
  licence: licence of the weights, to be named on the card.
  trust_run_dir: run the code outside seed_acme, and the Python, that the run folder names.
  json: print the record of pack.json.
  """

  run_dir: tyro.conf.Positional[str] = ''
  out: tyro.conf.Positional[str] = ''
  checkpoint: str = checkpoint_choice.NEWEST
  episodes: Annotated[int, bounds.at_least(0)] = 100
  video: str = ''
  licence: str = ''
  trust_run_dir: bool = False
  json: bool = False


@dataclasses.dataclass(frozen=True)
class UnpackArguments:
  """Make a run folder from a zip that `seed-acme pack` has written.

  file: the zip. folder: folder to make, new or empty.
  json: print the record of pack.json.
  """

  file: tyro.conf.Positional[str] = ''
  folder: tyro.conf.Positional[str] = ''
  json: bool = False


def pack(arguments: PackArguments) -> command_lib.Answer:
  """Packs a run; raises `UserError`."""
  if not arguments.run_dir or not arguments.out:
    raise types.UserError(
      'pack needs a run folder and the file to write: seed-acme pack runs/latest policy.zip'
    )
  out = _checked(arguments.out)
  from seed_acme.programs.tools.packing import packing

  progress = None if arguments.json else evaluate_command.Progress(sys.stderr)
  record = packing.pack(
    arguments.run_dir,
    out,
    choice=arguments.checkpoint,
    num_episodes=arguments.episodes,
    video=arguments.video,
    licence=arguments.licence,
    trust=arguments.trust_run_dir,
    tell=lambda text: print(f'Notice: {text}', file=sys.stderr, flush=True),
    progress=progress,
  )
  megabytes = os.path.getsize(out) / 1e6
  text = f'Packed: {arguments.out} ({megabytes:,.1f} MB), {_describe(record)}'
  return command_lib.Answer(record, text)


def _checked(out: str) -> pathlib.Path:
  """Returns the path to write, checked before the episodes are played, which may take minutes."""
  local.refuse_url(out, 'file')
  path = pathlib.Path(out)
  if path.suffix != packed_run.SUFFIX:
    raise types.UserError(f'the name of the file to write ({out}) must end in {packed_run.SUFFIX}')
  if path.exists():
    raise types.UserError(f'{out} is there already: give the name of a new file')
  with local.explained(path, 'write'):
    path.parent.mkdir(parents=True, exist_ok=True)
    probe = path.with_name(f'.{path.name}.{os.getpid()}')
    probe.touch()
    probe.unlink()
  return path


def unpack(arguments: UnpackArguments) -> command_lib.Answer:
  """Unpacks a run; raises `UserError`."""
  if not arguments.file or not arguments.folder:
    raise types.UserError(
      'unpack needs a packed run and the folder to make: seed-acme unpack policy.zip runs/theirs'
    )
  run = packed_run.unpack(arguments.file, arguments.folder)
  code = trust_lib.named_code(local.read_json(run.config))
  record = local.read_json(run.path / packed_run.RECORD)
  lines = [f'Unpacked: {arguments.folder}. {packed_run.CARD} in it says what it is']
  command = [own_name.command('seed-acme'), 'evaluate', arguments.folder]
  if code:
    named = ', '.join(sorted({path for _, path in code}))
    lines.append(f'It needs code that is not in the file: {named}. Only --trust_run_dir imports it')
    command.append('--trust_run_dir')
  return command_lib.Answer(record, '\n'.join([*lines, f'Evaluate: {shlex.join(command)}']))


def _describe(record: dict[str, Any]) -> str:
  score = record['score']
  return f'the checkpoint at {record["agent_steps"]:,} steps' + (
    '' if score is None else f', return {terminal.number(score["return_mean"])}'
  )
