"""Playing from a checkpoint: `evaluate` counts episodes, `load_policy` answers observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import itertools
import math
from typing import Any, Protocol, cast

import numpy as np
import tree

from seed_acme import actor as actor_lib
from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import counting
from seed_acme import learner as learner_lib
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.envs import atari_games
from seed_acme.envs import registry as environments
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.programs import build
from seed_acme.programs import video as video_lib

Progress = Callable[[str], None]  # is told what is done by now, after each step

_MAX_ENVIRONMENTS = 64  # stepped together while evaluating
_ATARI_FRAMES_PER_S = 60
_SCREENS_PER_S = 15.0  # of a video of environments whose clock is not known


class _RenderingEnvironment(core.VectorEnvironment, Protocol):
  """As made with `renders`."""

  def render(self) -> np.ndarray:
    """`[H, W, 3]` uint8: environment 0 as it is now."""


class _NoReplay:
  """The sink of an evaluation: nothing is kept of what is played."""

  def has_room(self) -> bool:
    return True

  def put(self, unrolls: types.Unroll) -> None:
    del unrolls


def load_acting(
  run_dir: str,
) -> tuple[config_lib.ExperimentConfig, build.Acting, checkpoint.Checkpoint]:
  """The configuration of a run, and its policy with the weights of its newest checkpoint."""
  run = run_directory.open_existing(run_dir)
  config = saved_config.load(run.config)
  saved = checkpoint.load(checkpoint.find(run.path))
  acting = build.make_acting(config)
  network = acting.agent.make_network(acting.spec, config.network, config.agent)
  named = learner_lib.network_variables(network)
  learner_lib.assign_variables(named, saved.arrays)
  acting.published.publish(
    types.Variables(saved.meta['counts']['updates'], tuple(v.value() for v in network.variables))
  )
  return config, acting, saved


def evaluate(
  run_dir: str,
  num_episodes: int,
  seed: int | None = None,
  video: str = '',
  max_video_steps: int = video_lib.MAX_STEPS,
  progress: Progress | None = None,
  greedy: bool = True,
) -> dict[str, Any]:
  """Plays `num_episodes` episodes from the newest checkpoint.

  Every environment plays the same number of episodes, so that short ones do not crowd out
  long ones. Returns a JSON record: mean, standard error, minimum and maximum of the return
  (the reported score), mean length in agent steps, and the human-normalised score, None
  but for the 57 Atari games.

  video: file for one more episode, '' = none; the record then has `video`. max_video_steps:
  agent steps after which it is cut.
  greedy: the likeliest action (R2D2: with its evaluation epsilon); False = as in training, drawn
  from the policy (R2D2: with the epsilon of each environment).
  """
  _check_counts(num_episodes, max_video_steps)
  writer = video_lib.Writer(video) if video else None
  config, acting, saved = load_acting(run_dir)
  seed = config.seed + 1 if seed is None else seed

  def show(text: str) -> None:
    if progress is not None:
      progress(f'{run_dir}: {text}')

  # First, for all that can be wrong with it is then found before the long part.
  recorded = (
    _record(config, acting, writer, max_video_steps, seed, show, greedy) if writer else None
  )
  scores, lengths = _play(config, acting, num_episodes, seed, show, greedy)
  record: dict[str, Any] = {
    'run_dir': run_directory.open_existing(run_dir).name,
    'environment': config.environment.id,
    'checkpoint_updates': saved.meta['counts']['updates'],
    'checkpoint_agent_steps': saved.meta['counts']['agent_steps'],
    'episodes': num_episodes,
    'greedy': greedy,
    'return_mean': float(np.mean(scores)),
    'return_standard_error': (
      float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else None
    ),
    'return_min': float(np.min(scores)),
    'return_max': float(np.max(scores)),
    'length_mean': float(np.mean(lengths)),
    'human_normalized_score': _human_normalized(config.environment.id, float(np.mean(scores))),
  }
  return {**record, 'video': recorded} if recorded else record


def evaluate_runs(
  run_dirs: Sequence[str],
  num_episodes: int,
  video: str = '',
  max_video_steps: int = video_lib.MAX_STEPS,
  progress: Progress | None = None,
  greedy: bool = True,
) -> list[dict[str, Any]]:
  """`evaluate` of each run in turn; the video shows the first.

  A folder that is no run, or has no checkpoint, is refused before any episode is played.
  """
  for run_dir in run_dirs:
    checkpoint.find(run_directory.open_existing(run_dir).path)
  return [
    evaluate(run_dir, num_episodes, None, '' if i else video, max_video_steps, progress, greedy)
    for i, run_dir in enumerate(run_dirs)
  ]


def human_normalized_summary(records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
  """Mean and median over games of the human-normalised score, and the number of games.

  Several runs of one game are averaged first. None without a run on one of the 57 games.
  """
  by_game: dict[str, list[float]] = {}
  for record in records:
    if record['human_normalized_score'] is not None:
      by_game.setdefault(record['environment'], []).append(record['human_normalized_score'])
  if not by_game:
    return None
  scores = [float(np.mean(scores)) for scores in by_game.values()]
  return {'mean': float(np.mean(scores)), 'median': float(np.median(scores)), 'games': len(scores)}


def _human_normalized(environment_id: str, score: float) -> float | None:
  kind, _, game = environment_id.partition(':')
  if kind != 'atari' or game not in atari_games.SCORES:
    return None
  return atari_games.human_normalized_score(game, score)


def _check_counts(num_episodes: int, max_video_steps: int) -> None:
  for name, count in (('episodes', num_episodes), ('max_video_steps', max_video_steps)):
    if count < 1:
      raise types.UserError(f'{name} ({count}) must be >= 1')


def _timesteps(
  config: config_lib.ExperimentConfig,
  acting: build.Acting,
  environment: core.VectorEnvironment,
  seed: int,
  greedy: bool,
) -> Iterator[types.VectorTimeStep]:
  """What the environments return when they are driven as evaluation or training ones are."""
  size = environment.num_environments
  server = server_lib.InferenceServer(
    spec=acting.spec,
    policy=acting.policy,
    num_training=0 if greedy else size,
    num_environments=size,
    unroll_length=config.agent.unroll_length,
    overlap=config.agent.overlap,
    batch_size=size,
    seed=seed,
    sink=_NoReplay(),
    counters=counting.Counters(),
    quota=None,
  )
  ids = np.arange(size, dtype=np.int32)
  run_ids = actor_lib.new_run_ids(seed, ids)
  timestep = environment.reset()
  for number in itertools.count():
    yield timestep
    actions = server.step([types.ActorRequest(number, ids, run_ids, timestep)])[0]
    timestep = environment.step(actions)


def _play(
  config: config_lib.ExperimentConfig,
  acting: build.Acting,
  num_episodes: int,
  seed: int,
  progress: Progress,
  greedy: bool,
) -> tuple[np.ndarray, np.ndarray]:
  """Scores and lengths of exactly `num_episodes` episodes."""
  size = min(num_episodes, _MAX_ENVIRONMENTS)
  quotas = np.array([len(part) for part in np.array_split(np.arange(num_episodes), size)])
  score, length, finished = np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
  scores: list[float] = []
  lengths: list[int] = []
  num_steps = 0
  with contextlib.closing(environments.make(config.environment, size, seed)) as environment:
    for timestep in _timesteps(config, acting, environment, seed, greedy):
      is_first = timestep.step_type == types.FIRST
      score = np.where(is_first, 0.0, score + timestep.score)
      length = np.where(is_first, 0, length + 1)
      num_steps += size - int(is_first.sum())
      is_counted = (timestep.step_type == types.LAST) & (finished < quotas)
      scores.extend(score[is_counted].tolist())
      lengths.extend(length[is_counted].tolist())
      finished += is_counted
      progress(f'{len(scores):,} of {num_episodes:,} episodes, {num_steps:,} steps')
      if len(scores) == num_episodes:
        break
  return np.array(scores), np.array(lengths)


def _record(
  config: config_lib.ExperimentConfig,
  acting: build.Acting,
  writer: video_lib.Writer,
  max_steps: int,
  seed: int,
  progress: Progress,
  greedy: bool,
) -> dict[str, Any]:
  """Plays one episode into the video; what the JSON record says of it."""
  made = cast(_RenderingEnvironment, environments.make(config.environment, 1, seed, renders=True))
  frames_per_s = _SCREENS_PER_S
  if config.environment.id.startswith('atari:'):
    frames_per_s = _ATARI_FRAMES_PER_S / made.spec.frames_per_step
  score, num_steps, has_ended = 0.0, 0, False
  with contextlib.closing(made) as environment, writer.open(frames_per_s):
    for number, timestep in enumerate(_timesteps(config, acting, environment, seed, greedy)):
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


class LoadedPolicy:
  """A trained policy as a callable: observation in, action out.

  It keeps its own recurrent state and previous action; call `reset` before each episode.
  """

  def __init__(self, acting: build.Acting, is_greedy: bool, seed: int):
    self._spec = acting.spec
    self._policy: policy_lib.Policy = acting.policy
    self._policy.refresh()
    self._is_evaluation = np.array([is_greedy])
    self._random = np.random.default_rng(seed)
    self.reset()

  def reset(self) -> None:
    """The next observation is the first of an episode."""
    self._is_first = True
    self._state = self._policy.initial_state()
    self._previous_action = tree.map_structure(
      lambda spec: np.zeros((1, *spec.shape), spec.dtype), self._spec.action
    )

  def __call__(
    self, observation: types.Nest, reward: float = 0.0, discount: float = 1.0
  ) -> types.Nest:
    """observation: as the environment's specification, without batch axis.

    reward, discount: what the previous action brought, for networks that are fed with it.
    """
    step_type = types.FIRST if self._is_first else types.MID
    inputs = types.AgentInput(
      step_type=np.array([step_type], np.uint8),
      reward=np.array([0.0 if self._is_first else reward], np.float32),
      discount=np.array([discount], np.float32),
      previous_action=self._previous_action,
      observation=tree.map_structure(
        lambda spec, x: np.asarray(x, spec.dtype)[None], self._spec.observation, observation
      ),
    )
    exploration = self._policy.example_exploration()._replace(
      uniforms=self._random.random((1, self._policy.num_uniforms), np.float32),
      is_evaluation=self._is_evaluation,
    )
    output, self._state = self._policy(inputs, self._state, exploration)
    self._previous_action = output.action
    self._is_first = False
    return tree.map_structure(lambda action: action[0], output.action)


def load_policy(run_dir: str, greedy: bool = True, seed: int = 0) -> LoadedPolicy:
  """The policy of a run's newest checkpoint."""
  _, acting, _ = load_acting(run_dir)
  return LoadedPolicy(acting, greedy, seed)
