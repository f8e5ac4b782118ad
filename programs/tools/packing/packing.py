"""The steps from a run folder to one zip: a copy is played, drawn, described and packed."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
from importlib import metadata
import json
import math
import os
import pathlib
import platform
import shutil
import tempfile
from typing import Any

import numpy as np

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import registry as suites
from seed_acme.files import local
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import plot
from seed_acme.programs.system import processes
from seed_acme.programs.tools.packing import card
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import opening
from seed_acme.storage import packed_run
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib
from seed_acme.version import __version__

_STACK = ('tensorflow', 'dm-sonnet', 'dm-reverb', 'numpy')
_COPIED = ('config.json', 'environment.json', 'metrics.csv')
_VIDEOS = {pathlib.Path(name).suffix: name for name in packed_run.VIDEOS}  # by suffix
# kinds of episodes in a checkpoint, the better measure first
_OF_WINDOW = ('evaluation', 'training')


def pack(
  run_dir: str,
  out: pathlib.Path,
  *,
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
  num_episodes: int = 100,
  video: str = '',
  licence: str = '',
  trust: bool = False,
  tell: Callable[[str], None],
  progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
  """Writes `out` and returns the record in its `pack.json`.

  num_episodes: to play for the score; 0 = none. The other arguments as in `PackArguments`. tell:
    called with notices. Raises `types.UserError`.
  """
  run = opening.open_run(run_dir)
  config = saved_config.load(
    run.config, trust_lib.Trust(everything=trust), only_types=not num_episodes
  )
  _check_video(run, video)
  with tempfile.TemporaryDirectory(prefix='seed_acme_') as above:
    # A live run may delete the checkpoint, or replace the film, while the episodes are played.
    copy = run_directory.RunDirectory(pathlib.Path(above) / run.path.name)
    copy.path.mkdir()
    saved = _copy(run, copy, choice, tell)
    video_name = _copy_video(run, copy, video)
    score = _window_score(saved)
    if num_episodes:
      score = _played_score(run, copy, num_episodes, trust, progress)
    record = _record(config, saved, score, licence)
    if copy.metrics.exists():
      label = f'{config.name}/{pathlib.PurePath(run.name).name}'
      drawing.or_notice(lambda: _draw(copy, label), 'the curve', tell)
    contents: dict[str, pathlib.Path | bytes] = {
      packed_run.RECORD: f'{json.dumps(record, indent=2)}\n'.encode(),
      packed_run.CARD: card.text(record, copy.plot.exists(), video_name).encode(),
    }
    for path in sorted(copy.path.rglob('*')):
      if path.is_file():
        contents[path.relative_to(copy.path).as_posix()] = path
    packed_run.write(out, contents)
  return record


def _copy(
  run: run_directory.RunDirectory,
  copy: run_directory.RunDirectory,
  choice: checkpoint_choice.Choice,
  tell: Callable[[str], None],
) -> checkpoint.Checkpoint:
  """Copies the parts of the run that are packed; returns the checkpoint."""
  found = opening.load_of_run(run, choice, tell)
  path, target = found.path, copy.checkpoints / f'{found.counts.updates:012d}'
  with local.explained(copy.path, 'write'):
    target.mkdir(parents=True)
    try:
      for name in ('arrays.npz', 'meta.json'):  # without the replay memory
        shutil.copyfile(path / name, target / name)
    except FileNotFoundError as error:
      raise types.UserError(f'{path} was deleted meanwhile by a live run: try again') from error
    for name in _COPIED:
      if (run.path / name).exists():
        shutil.copyfile(run.path / name, copy.path / name)
  if copy.metrics.exists() and copy.metrics.stat().st_size > packed_run.MAX_METRICS_BYTES:
    tell('metrics.csv is left out, and the curve too: it is larger than a pack may hold (1 GiB)')
    copy.metrics.unlink()
  return checkpoint.load(target)


def _check_video(run: run_directory.RunDirectory, given: str) -> None:
  if given and pathlib.Path(given).suffix not in _VIDEOS:
    raise types.UserError(f'the video {given} must end in {" or ".join(_VIDEOS)}')
  if given and not pathlib.Path(given).is_file():
    raise types.UserError(
      f'there is no video {given}: film one with seed-acme evaluate {run.name} --video={given}'
    )


def _copy_video(
  run: run_directory.RunDirectory, copy: run_directory.RunDirectory, given: str
) -> str:
  """Copies the given video or the run's newest; returns its name there, '' if there is none."""
  with local.explained(copy.path, 'write'):
    try:
      path = pathlib.Path(given) if given else _newest_video(run)
      if path is None:
        return ''
      name = _VIDEOS[path.suffix]
      shutil.copyfile(path, copy.path / name)
    except FileNotFoundError as error:
      raise types.UserError(
        f'a video in {run.name} was deleted meanwhile ({error.filename}): try again'
      ) from error
  return name


def _newest_video(run: run_directory.RunDirectory) -> pathlib.Path | None:
  # Hidden files are not complete, and a .gif beside an .mp4 is only the preview of it.
  found = {path for path in run.path.rglob('[!.]*') if path.suffix in _VIDEOS and path.is_file()}
  films = [path for path in found if path.suffix != '.gif' or path.with_suffix('.mp4') not in found]
  return max(films, key=lambda path: path.stat().st_mtime, default=None)


def _played_score(
  run: run_directory.RunDirectory,
  copy: run_directory.RunDirectory,
  num_episodes: int,
  trust: bool,
  progress: Callable[[str], None] | None,
) -> dict[str, Any]:
  processes.load_tensorflow()
  from seed_acme.programs.tools.reports import evaluation  # takes seconds

  found = evaluation.evaluate(
    str(copy.path),
    num_episodes,
    trust=trust,
    progress=progress and (lambda text: progress(text.replace(str(copy.path), run.name))),
  )
  return {
    'of': 'played',
    'episodes': num_episodes,
    **{
      name: found[name]
      for name in ('return_mean', 'return_standard_error', 'human_normalized_score')
    },
  }


def _window_score(saved: checkpoint.Checkpoint) -> dict[str, Any] | None:
  """Returns the score of the last episodes before the checkpoint; None if none had ended."""
  for kind in _OF_WINDOW:
    episodes = saved.meta.get('episodes', {}).get(kind, [])
    scores = np.array([score for score, *_ in episodes], np.float64)
    if len(scores):
      error = float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else None
      return {
        'of': kind,
        'episodes': len(scores),
        'return_mean': float(np.mean(scores)),
        'return_standard_error': error,
        'human_normalized_score': None,
      }
  return None


def _record(
  config: config_lib.ExperimentConfig,
  saved: checkpoint.Checkpoint,
  score: dict[str, Any] | None,
  licence: str,
) -> dict[str, Any]:
  counts, network = saved.counts, config.network
  if score is not None:
    score['human_normalized_score'] = suites.normalized_score(
      config.environment.id, score['return_mean']
    )
  return {
    'format': packed_run.FORMAT,
    'config': config.name,
    'environment': config.environment.id,
    'environment_settings': saved_config.to_json(config.environment.settings),
    'agent': config.agent.agent,
    'torso': network.module or network.torso,
    'core': '' if network.module else network.core,
    'seed': config.seed,
    **{name: getattr(counts, name) for name in ('agent_steps', 'frames', 'updates', 'episodes')},
    'wall_s': counts.wall_s,
    'score': score,
    'licence': licence,
    'stack': _stack(config.environment.id),
    'code': sorted({path for _, path in trust_lib.named_code(saved_config.to_json(config))}),
  }


def _stack(environment_id: str) -> dict[str, str]:
  """Returns the versions installed on the machine that packs."""
  modules = metadata.packages_distributions()
  of_suite = [name for package in _packages(environment_id) for name in modules.get(package, [])]
  versions = {'seed_acme': __version__, 'python': platform.python_version()}
  for name in (*_STACK, *of_suite):
    with contextlib.suppress(metadata.PackageNotFoundError):
      versions[name] = metadata.version(name)
  return versions


def _packages(environment_id: str) -> tuple[str, ...]:
  with contextlib.suppress(types.UserError):  # it may be known on other machines only
    return suites.find(environment_id).packages
  return ()


def _draw(copy: run_directory.RunDirectory, label: str) -> None:
  """Draws the curve. label: of the run, because the folder of the copy is a temporary one."""
  with contextlib.suppress(plot.NoEpisode):
    plot.plot([str(copy.path)], os.fspath(copy.plot), labels=[label])
