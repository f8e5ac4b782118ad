"""Playing from a checkpoint: `evaluate` counts episodes, `load_policy` answers observations."""
from __future__ import annotations

import math
import pathlib
from typing import Any

import numpy as np
import tree

from seed_acme import actor as actor_lib
from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import counting
from seed_acme import learner as learner_lib
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.envs import registry as environments
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.programs import build

_MAX_ENVIRONMENTS = 64  # stepped together while evaluating


class _NoReplay:
  """The sink of an evaluation: its rows are never collected."""

  def has_room(self) -> bool:
    return True

  def put(self, unrolls: types.Unroll) -> None:
    raise AssertionError('an evaluation environment finished an unroll')


def load_acting(run_dir: str) -> tuple[config_lib.ExperimentConfig, build.Acting,
                                       checkpoint.Checkpoint]:
  """The configuration of a run, and its policy with the weights of its newest checkpoint."""
  run = run_directory.open_existing(run_dir)
  config = saved_config.load(run.config)
  saved = checkpoint.load(checkpoint.find(pathlib.Path(run_dir)))
  acting = build.make_acting(config)
  network = acting.agent.make_network(acting.spec, config.network, config.agent)
  named = learner_lib.network_variables(network)
  learner_lib.assign_variables(named, saved.arrays)
  acting.published.publish(types.Variables(
      saved.meta['counts']['updates'], tuple(v.value() for v in network.variables)))
  return config, acting, saved


def evaluate(run_dir: str, num_episodes: int = 100, seed: int | None = None) -> dict[str, Any]:
  """Plays `num_episodes` greedy episodes from the newest checkpoint.

  Every environment plays the same number of episodes, so that short ones do not crowd out
  long ones. Returns a JSON record: mean, standard error, minimum and maximum of the return
  (the reported score), mean length in agent steps.
  """
  if num_episodes < 1:
    raise types.UserError(f'episodes ({num_episodes}) must be >= 1')
  config, acting, saved = load_acting(run_dir)
  scores, lengths = _play(config, acting, num_episodes,
                          config.seed + 1 if seed is None else seed)
  return {
      'run_dir': str(pathlib.Path(run_dir).resolve()),
      'checkpoint_updates': saved.meta['counts']['updates'],
      'checkpoint_agent_steps': saved.meta['counts']['agent_steps'],
      'episodes': num_episodes,
      'return_mean': float(np.mean(scores)),
      'return_standard_error': (
          float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else None),
      'return_min': float(np.min(scores)),
      'return_max': float(np.max(scores)),
      'length_mean': float(np.mean(lengths)),
  }


def _play(config: config_lib.ExperimentConfig, acting: build.Acting, num_episodes: int,
          seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Scores and lengths of exactly `num_episodes` episodes."""
  size = min(num_episodes, _MAX_ENVIRONMENTS)
  quotas = np.array([len(part) for part in np.array_split(np.arange(num_episodes), size)])
  environment = environments.make(config.environment, size, seed)
  server = server_lib.InferenceServer(
      spec=acting.spec, policy=acting.policy, num_training=0, num_environments=size,
      unroll_length=config.agent.unroll_length, overlap=config.agent.overlap, batch_size=size,
      seed=seed, sink=_NoReplay(), counters=counting.Counters())
  ids = np.arange(size, dtype=np.int32)
  run_ids = actor_lib.new_run_ids(seed, ids)
  score, length, finished = np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
  scores: list[float] = []
  lengths: list[int] = []
  timestep = environment.reset()
  number = 0
  while len(scores) < num_episodes:
    is_first = timestep.step_type == types.FIRST
    score = np.where(is_first, 0.0, score + timestep.score)
    length = np.where(is_first, 0, length + 1)
    is_counted = (timestep.step_type == types.LAST) & (finished < quotas)
    scores.extend(score[is_counted].tolist())
    lengths.extend(length[is_counted].tolist())
    finished += is_counted
    actions = server.step([types.ActorRequest(number, ids, run_ids, timestep)])[0]
    timestep = environment.step(actions)
    number += 1
  environment.close()
  return np.array(scores), np.array(lengths)


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
        lambda spec: np.zeros((1, *spec.shape), spec.dtype), self._spec.action)

  def __call__(self, observation: types.Nest, reward: float = 0.0,
               discount: float = 1.0) -> types.Nest:
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
            lambda spec, x: np.asarray(x, spec.dtype)[None], self._spec.observation, observation))
    exploration = self._policy.example_exploration()._replace(
        uniforms=self._random.random((1, self._policy.num_uniforms), np.float32),
        is_evaluation=self._is_evaluation)
    output, self._state = self._policy(inputs, self._state, exploration)
    self._previous_action = output.action
    self._is_first = False
    return tree.map_structure(lambda action: action[0], output.action)


def load_policy(run_dir: str, greedy: bool = True, seed: int = 0) -> LoadedPolicy:
  """The policy of a run's newest checkpoint."""
  _, acting, _ = load_acting(run_dir)
  return LoadedPolicy(acting, greedy, seed)
