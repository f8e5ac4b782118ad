"""Playing from a checkpoint: `evaluate` counts episodes, `load_policy` returns a callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import math
import sys
from typing import Any, NamedTuple, cast

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.acting import actor as actor_lib
from seed_acme.checks import bounds
from seed_acme.envs import closing
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs import process_state
from seed_acme.envs import registry as suites
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import saved_variables
from seed_acme.loggers import terminal
from seed_acme.programs.building import build
from seed_acme.programs.pictures import video as video_lib
from seed_acme.programs.tools.reports import episode_tally
from seed_acme.programs.tools.reports import loaded_policy
from seed_acme.programs.tools.reports import played_config
from seed_acme.programs.tools.reports import window
from seed_acme.programs.trial import specification
from seed_acme.progress import counting
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import opening

Progress = Callable[[str], None]  # called after each step with what is done so far

_MAX_ENVIRONMENTS = 64  # environments stepped together while evaluating


class _NoReplay:
  """The unroll sink of an evaluation, which keeps nothing."""

  def has_room(self) -> bool:
    return True

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    del env_ids, unrolls


class Loaded(NamedTuple):
  """A run to play: its configuration, its policy, and how far the run had come.

  network: a second copy of the policy's network, with the same weights.
  """

  config: config_lib.ExperimentConfig
  acting: build.Acting
  network: core.RecurrentNetwork
  counts: counting.Counts


def load(
  run_dir: str,
  trust: bool = False,
  python: str = '',
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
  plays: bool = False,
) -> Loaded:
  """Loads the weights of the newest checkpoint, or of another one (`opening.find_checkpoint`).

  If the newest is damaged, it takes the one before, and says so on standard error.
  python, plays: as in `played_config.load`.
  """
  run = opening.open_run(run_dir)
  config = played_config.load(run, trust, python, plays)
  saved = opening.load_of_run(
    run, choice, lambda text: print(f'Notice: {text}', file=sys.stderr, flush=True)
  )
  # The machine that plays, or the TensorFlow that runs an exported policy, may be slow in bfloat16.
  network_config = dataclasses.replace(config.network, precision='float32')
  spec = specification.of_run(config, run)
  acting = build.make_acting(config.agent, network_config, spec)
  network = acting.agent.acting.make()
  saved_variables.assign(saved_variables.acting(network), saved.arrays)
  counts = saved.counts
  read = tuple(network.variables[i].value() for i in acting.policy.variables_read)
  acting.published.publish(types.Variables(counts.updates, read))
  return Loaded(config, acting, network, counts)


def evaluate(
  run_dir: str,
  num_episodes: int,
  seed: int | None = None,
  video: str = '',
  max_video_steps: int = video_lib.MAX_STEPS,
  progress: Progress | None = None,
  greedy: bool = True,
  trust: bool = False,
  python: str = '',
  screen: window.Window | None = None,
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
) -> dict[str, Any]:
  """Plays `num_episodes` episodes from the newest checkpoint, or from another one.

  Every environment plays the same number of episodes, so that short ones are not over-represented.
  Returns a JSON record: mean, standard error, minimum and maximum of the return (the reported
  score), mean length in agent steps, and the human-normalised score, which is None except for the
  57 Atari games and DMLab-30.
  video: file for one more episode, '' = none; the record then has `video`. max_video_steps: agent
    steps after which it is cut.
  greedy: take the likeliest action (R2D2: with its evaluation epsilon); False = sample from the
    policy as in training (R2D2: with the epsilon of each environment).
  trust: import code outside seed_acme that the run folder names. python, choice: as in `load`.
  screen: window in which the episodes are played, one after another. If it is closed early, the
    record is of the episodes that have ended; its means are None if there are none.
  """
  bounds.at_least(1).check('episodes', num_episodes)
  bounds.at_least(1).check('max_video_steps', max_video_steps)
  writer = video_lib.Writer(video) if video else None
  loaded = load(run_dir, trust, python, choice, plays=True)
  config = loaded.config
  seed = config.seed + 1 if seed is None else seed

  def show(text: str) -> None:
    if progress is not None:
      progress(f'{run_dir}: {text}')

  # First, because most errors then show up before the long part.
  # Its seed is another one, since the same would film an episode that is counted, too.
  recorded = _record(loaded, writer, max_video_steps, seed + 1, show, greedy) if writer else None
  if screen is None:
    scores, lengths = _play(loaded, num_episodes, seed, show, greedy)
  else:
    scores, lengths = _watch(loaded, num_episodes, seed, greedy, screen)
  record: dict[str, Any] = {
    'run_dir': opening.open_run(run_dir).name,
    'environment': config.environment.id,
    'checkpoint_updates': loaded.counts.updates,
    'checkpoint_agent_steps': loaded.counts.agent_steps,
    'episodes': len(scores),
    'greedy': greedy,
    'return_mean': _of(np.mean, scores),
    'return_standard_error': (
      float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else None
    ),
    'return_min': _of(np.min, scores),
    'return_max': _of(np.max, scores),
    'length_mean': _of(np.mean, lengths),
    'human_normalized_score': _of(
      lambda values: suites.normalized_score(config.environment.id, float(np.mean(values))), scores
    ),
  }
  return {**record, 'video': recorded} if recorded else record


def human_normalized_summary(records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
  """Returns mean and median over games of the human-normalised score, and the number of games.

  Several runs of one game, or level, are averaged first. Returns None if no run has such a score.
  """
  by_game: dict[str, list[float]] = {}
  for record in records:
    if record['human_normalized_score'] is not None:
      by_game.setdefault(record['environment'], []).append(record['human_normalized_score'])
  if not by_game:
    return None
  scores = [float(np.mean(scores)) for scores in by_game.values()]
  return {'mean': float(np.mean(scores)), 'median': float(np.median(scores)), 'games': len(scores)}


def _of(statistic: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
  """Returns a statistic of values `[N]`; None for N = 0."""
  found = statistic(values) if len(values) else None
  return None if found is None else float(found)


def _timesteps(
  loaded: Loaded, environment: core.VectorEnvironment, seed: int, greedy: bool
) -> Iterator[types.VectorTimeStep]:
  """Yields the time steps of environments that are driven like evaluation or training ones.

  Raises `types.UserError` for environments that are not the ones the policy was trained in.
  """
  specification.refuse_another(
    loaded.acting.spec, environment.spec, "Bring that one back to play this run's policy"
  )
  size, agent = environment.num_environments, loaded.config.agent
  counters = counting.Counters()
  counters.restore(loaded.counts)  # exploration may depend on the run's progress
  server = server_lib.InferenceServer(
    spec=loaded.acting.spec,
    environment_name=loaded.config.environment.id,
    policy=loaded.acting.policy,
    num_training=0 if greedy else size,
    num_environments=size,
    unroll_length=agent.unroll_length,
    overlap=agent.overlap,
    batch_size=size,
    seed=seed,
    sink=_NoReplay(),
    counters=counters,
    quota=None,
    statistics=server_statistics.ServerStatistics(size),
  )
  ids = np.arange(size, dtype=np.int32)
  run_ids = actor_lib.new_run_ids(seed, ids)
  with process_state.kept():
    timestep = environment.reset()
  for number in itertools.count():
    yield timestep
    actions = server.step([types.ActorRequest(number, ids, run_ids, timestep)])[0]
    timestep = environment.step(actions)


def _play(
  loaded: Loaded, num_episodes: int, seed: int, progress: Progress, greedy: bool
) -> tuple[np.ndarray, np.ndarray]:
  """Returns scores and lengths of exactly `num_episodes` episodes."""
  size = min(num_episodes, _MAX_ENVIRONMENTS)
  tally = episode_tally.EpisodeTally(num_episodes, size)
  num_steps = 0
  made = environments.make(loaded.config, size, seed)
  with closing.afterwards(made, loaded.config.environment.id) as environment:
    for timestep in _timesteps(loaded, environment, seed, greedy):
      tally.add(timestep)
      num_steps += size - int((timestep.step_type == types.FIRST).sum())
      progress(f'{len(tally.scores):,} of {num_episodes:,} episodes, {num_steps:,} steps')
      if len(tally.scores) == num_episodes:
        break
  return np.array(tally.scores), np.array(tally.lengths)


def _watch(
  loaded: Loaded, num_episodes: int, seed: int, greedy: bool, screen: window.Window
) -> tuple[np.ndarray, np.ndarray]:
  """Returns scores and lengths of the episodes that have ended when the window is closed."""
  config, steps = loaded.config, loaded.counts.agent_steps
  made = cast(core.RenderingEnvironment, environments.make(config, 1, seed, renders=True))
  frames_per_s = video_lib.frames_per_s(config.environment.id, made.spec.frames_per_step)
  tally = episode_tally.EpisodeTally(num_episodes, 1)
  played = closing.afterwards(made, config.environment.id)
  with screen, played as environment, contextlib.suppress(window.Closed):
    for timestep in _timesteps(loaded, environment, seed, greedy):
      tally.add(timestep)
      if timestep.step_type[0] == types.FIRST:
        last = ''
        if tally.scores:
          last = f', return of the last one: {terminal.number(tally.scores[-1])}'
        text = f'{config.environment.id} at {steps:,} steps: episode {len(tally.scores) + 1}'
        screen.title(f'{text}{last}')
      screen.show(environment.render(), frames_per_s)
      if len(tally.scores) == num_episodes:
        break
  return np.array(tally.scores), np.array(tally.lengths)


def _record(
  loaded: Loaded,
  writer: video_lib.Writer,
  max_steps: int,
  seed: int,
  progress: Progress,
  greedy: bool,
) -> dict[str, Any]:
  """Plays one episode into the video; returns its entry in the JSON record."""
  made = cast(core.RenderingEnvironment, environments.make(loaded.config, 1, seed, renders=True))
  frames_per_s = video_lib.frames_per_s(loaded.config.environment.id, made.spec.frames_per_step)
  score, num_steps, has_ended = 0.0, 0, False
  played = closing.afterwards(made, loaded.config.environment.id)
  with played as environment, writer.open(frames_per_s):
    for number, timestep in enumerate(_timesteps(loaded, environment, seed, greedy)):
      num_steps = number
      score += float(timestep.score[0]) if number else 0.0
      writer.add(environment.render())
      progress(f'{num_steps:,} steps of the video')
      has_ended = timestep.step_type[0] == types.LAST
      if has_ended or num_steps == max_steps or writer.num_frames == writer.max_frames:
        break
  return {
    'path': str(writer.path.resolve()),
    'return': score,
    'length': num_steps,
    'frames': writer.num_frames,
    'frames_per_s': frames_per_s,
    'is_cut': not has_ended,
  }


def load_policy(
  run_dir: str,
  greedy: bool = True,
  seed: int = 0,
  trust: bool = False,
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
) -> loaded_policy.LoadedPolicy:
  """Returns the policy of a run's newest checkpoint, or of another one."""
  loaded = load(run_dir, trust, choice=choice)
  return loaded_policy.LoadedPolicy(loaded.acting, loaded.counts.agent_steps, greedy, seed)
