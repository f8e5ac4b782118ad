"""`seed-acme evaluate`: plays episodes of one or more runs; reports them as text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import json
import sys
import time
from typing import Annotated, Any, TextIO

import tyro

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.envs import atari_games
from seed_acme.envs import dmlab_levels
from seed_acme.envs import experiment_environments as environments
from seed_acme.loggers import terminal
from seed_acme.programs.pictures import video as video_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.programs.tools.reports import played_config
from seed_acme.programs.tools.reports import window
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import opening

_PROGRESS_PERIOD_S = 10.0


@dataclasses.dataclass(frozen=True)
class EvaluateArguments:
  """Play episodes from a checkpoint of one or more runs, by default the newest.

  run_dirs: folders of the runs, or zips that `seed-acme pack` has written.
  episodes: episodes per run.
  checkpoint: newest, best (by evaluation return), the number of its update, or its path.
  sampled: sample actions from the policy, as in training, instead of acting greedily.
  video: show one more episode of the first run in this file, .mp4 or .gif.
  max_video_steps: agent steps after which the video is cut.
  watch: play the episodes of one run in a window, one after another, until it is closed.
  trust_run_dir: run the code outside seed_acme, and the Python, that the run folders name.
  python: interpreter that the environments run under, instead of the run's (actor.python).
  json: print one record; for several runs {"runs": [...], "human_normalized": ...}.
  """

  run_dirs: tyro.conf.Positional[tuple[str, ...]]
  episodes: Annotated[int, bounds.at_least(1)] = 100
  checkpoint: str = checkpoint_choice.NEWEST
  sampled: bool = False
  video: str = ''
  max_video_steps: Annotated[int, bounds.at_least(1)] = video_lib.MAX_STEPS
  watch: bool = False
  trust_run_dir: bool = False
  python: str = ''
  json: bool = False


class Progress:
  """A progress line every ten seconds; short evaluations print none."""

  def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
    self._stream = stream
    self._clock = clock
    self._start_s = self._last_s = clock()

  def __call__(self, text: str) -> None:
    """Prints a line if it is time. text: what is done so far."""
    now_s = self._clock()
    if now_s - self._last_s >= _PROGRESS_PERIOD_S:
      self._last_s = now_s
      print(
        f'{text}, {terminal.duration(now_s - self._start_s)} elapsed', file=self._stream, flush=True
      )


def evaluate(arguments: EvaluateArguments) -> int:
  """Plays the episodes and prints the results; returns the exit code; raises `UserError`."""
  if not arguments.run_dirs:
    raise types.UserError('evaluate needs at least one run folder: seed-acme evaluate runs/latest')
  if arguments.watch and len(arguments.run_dirs) > 1:
    raise types.UserError(
      f'--watch plays one run in its window, and {len(arguments.run_dirs)} are given: name one'
    )
  screen = window.Window() if arguments.watch else None
  with streams.results_only() as results:
    _check(arguments)
    records: list[dict[str, Any]] = []
    for run_dir, record in zip(arguments.run_dirs, _records(arguments, screen)):
      records.append(record)
      if not arguments.json:  # at once, so that a failure of a later run costs no result
        _print(record, run_dir, arguments, results)
    _print_end(records, arguments, results)
  return 0


def _check(arguments: EvaluateArguments) -> None:
  """Raises `UserError`, before any episode is played, for a run that could not be played.

  This is a folder that is no run, lacks the checkpoint, names code that is not trusted, or has an
  environment that is not installed here. The path of a single checkpoint is refused for several
  runs.
  """
  choice = arguments.checkpoint
  if len(arguments.run_dirs) > 1 and checkpoint_choice.is_path(choice):
    raise types.UserError(
      f'the checkpoint {choice} is that of one run: give one run, or choose newest, best or the '
      'number of an update for all'
    )
  configs = []
  for run_dir in arguments.run_dirs:
    run = opening.open_run(run_dir)
    opening.find_checkpoint(run, choice)
    configs.append(played_config.load(run, arguments.trust_run_dir, arguments.python))
  processes.load_tensorflow()  # before any code of an environment
  for config in configs:
    environments.check(config)


def _records(
  arguments: EvaluateArguments, screen: window.Window | None
) -> Iterator[dict[str, Any]]:
  """Evaluates each run in turn; the video shows the first."""
  from seed_acme.programs.tools.reports import evaluation  # takes seconds

  progress = None if arguments.json else Progress(sys.stderr)
  for i, run_dir in enumerate(arguments.run_dirs):
    yield evaluation.evaluate(
      run_dir,
      arguments.episodes,
      video='' if i else arguments.video,
      max_video_steps=arguments.max_video_steps,
      progress=progress,
      greedy=not arguments.sampled,
      trust=arguments.trust_run_dir,
      python=arguments.python,
      screen=screen,
      choice=arguments.checkpoint,
    )


def _print(
  record: dict[str, Any], run_dir: str, arguments: EvaluateArguments, results: TextIO
) -> None:
  text = describe(record)
  print(f'{run_dir}: {text}' if len(arguments.run_dirs) > 1 else text, file=results, flush=True)
  if 'video' in record:
    print(_describe_video(record['video']), file=results, flush=True)


def _print_end(
  records: list[dict[str, Any]], arguments: EvaluateArguments, results: TextIO
) -> None:
  """Prints the mean over games, or with `--json` everything, in one line."""
  from seed_acme.programs.tools.reports import evaluation  # it is loaded by now

  summary = evaluation.human_normalized_summary(records)
  if arguments.json:
    of_all = {'runs': records, 'human_normalized': summary}
    print(json.dumps(records[0] if len(records) == 1 else of_all), file=results)
  elif len(records) > 1 and summary is not None:
    print(
      f'Human-normalised over {_how_many(records, summary["games"])} '
      f'(random = 0, human = 1): mean {summary["mean"]:.3f}, median {summary["median"]:.3f}',
      file=results,
    )


def _how_many(records: Sequence[dict[str, Any]], count: int) -> str:
  """Returns what the mean is over, such as `2 of 57 games`."""
  suites = {
    record['environment'].partition(':')[0]
    for record in records
    if record['human_normalized_score'] is not None
  }
  if suites == {'atari'}:
    return f'{count} of {len(atari_games.GAMES)} games'
  if suites == {'dmlab'}:
    return f'{count} of {len(dmlab_levels.LEVELS)} levels'
  return f'{count} games and levels'


def describe(record: dict[str, Any]) -> str:
  """Returns one line about a record of `evaluation.evaluate`."""
  if not record['episodes']:
    return 'The window was closed before an episode had ended'
  error, human = record['return_standard_error'], record['human_normalized_score']
  kind = 'greedy' if record['greedy'] else 'sampled'
  return (
    f'{record["episodes"]:,} {kind} episode{"s" if record["episodes"] > 1 else ""} of the '
    'checkpoint at '
    f'{record["checkpoint_agent_steps"]:,} steps: return {terminal.number(record["return_mean"])}'
    f'{"" if error is None else f" +- {terminal.number(error, 2)} (standard error)"}, from '
    f'{terminal.number(record["return_min"])} to {terminal.number(record["return_max"])}, '
    f'{terminal.number(record["length_mean"])} steps long'
    f'{"" if human is None else f", human-normalised {human:.3f}"}'
  )


def _describe_video(video: dict[str, Any]) -> str:
  is_full_gif = video['frames'] == video_lib.MAX_GIF_FRAMES and video['path'].endswith('.gif')
  reason = 'a .gif holds no more' if is_full_gif else '--max_video_steps'
  cut = f', cut here ({reason})' if video['is_cut'] else ''
  return (
    f'Video: {video["path"]}, an episode with return {terminal.number(video["return"])} in '
    f'{video["length"]:,} steps{cut}, '
    f'{video["frames"]:,} frames at {video["frames_per_s"]:g} a second'
  )
