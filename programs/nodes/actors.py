"""Which environments each actor has, and how an actor is built. No TensorFlow in here: actor
processes import it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import sizes
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.nodes import filming

# Makes the channel of a group from its env_ids and the specification of its environments.
Connect = Callable[[np.ndarray, types.EnvironmentSpec], core.InferenceChannel]


def make_actor(
  config: config_lib.ExperimentConfig,
  index: int,
  attempt: int,
  run_seed: int | None,
  connect: Connect,
  activity: activity_lib.Activity,
  films: filming.Films | None = None,
) -> actor_lib.Actor:
  """Actor `index` with its environments, groups and channels.

  attempt: how often this actor was started before. run_seed: of the run ids; None
  draws them from the operating system. activity: where it says what it does. films: of a run that
  films; only the actor that evaluates does.
  """
  first, number = env_id_range(config, index)
  groups = []
  if not filming.films(config, index):
    films = None
  for group, env_ids in enumerate(
    actor_lib.group_env_ids(first, number, num_groups(config, index))
  ):
    activity.begin(activity_lib.Doing.MAKING, group)
    seed = _environment_seed(config, int(env_ids[0]), attempt)
    environment = environments.make(config, env_ids.size, seed, renders=films is not None)
    if films is not None:
      environment = filming.FilmedEnvironment(environment, config, films)
    activity.begin(activity_lib.Doing.CONNECTING, group)
    run_ids = actor_lib.new_run_ids(run_seed, env_ids)
    channel = connect(env_ids, environment.spec)
    groups.append(actor_lib.EnvironmentGroup(environment, channel, env_ids, run_ids))
  return actor_lib.Actor(groups, activity)


def env_id_range(config: config_lib.ExperimentConfig, index: int) -> tuple[int, int]:
  """(first env_id, number); the actor after the last training actor evaluates."""
  if index < config.num_actors:
    return index * config.environments_per_actor, config.environments_per_actor
  return sizes.num_training_environments(config), config.num_evaluation_environments


def num_actor_nodes(config: config_lib.ExperimentConfig) -> int:
  """Training actors, and one more if there are evaluation environments."""
  return config.num_actors + (1 if config.num_evaluation_environments else 0)


def num_groups(config: config_lib.ExperimentConfig, index: int) -> int:
  """Environment groups of actor `index`; the evaluation actor has one."""
  return config.actor.environment_groups if index < config.num_actors else 1


def _environment_seed(config: config_lib.ExperimentConfig, first_env_id: int, attempt: int) -> int:
  """Differs by group and by attempt, so that a restart does not replay the same episodes."""
  sequence = np.random.SeedSequence([config.seed, first_env_id, attempt])
  return int(sequence.generate_state(1)[0])
