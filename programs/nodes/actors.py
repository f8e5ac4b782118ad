"""The constructor of an actor. Actor processes import it, so it must not load TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
import contextlib

import numpy as np

from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import closing as closing_lib
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import filming

# Makes the channel of a group from its env_ids and the specification of its environments.
Connect = Callable[[np.ndarray, types.EnvironmentSpec], core.InferenceChannel]


def make_actor(
  sections: sections_lib.ActorSections,
  attempt: int,
  run_seed: int | None,
  connect: Connect,
  activity: activity_lib.Activity,
  films: filming.Films | None = None,
  closing: contextlib.ExitStack | None = None,
) -> actor_lib.Actor:
  """Returns an actor with its environments, groups and channels.

  If it cannot be completed, or is interrupted, what was made so far is closed.

  attempt: how often this actor was started before. run_seed: seed of the run ids; None draws them
    from the operating system. activity: where the actor says what it is doing. films: of a run that
    films; only the evaluation actor uses it. closing: receives that closing, for a caller who first
    reports why; None = it is done at once.
  """
  groups = []
  if not sections.record_every:
    films = None
  with closing_lib.on_failure(sections.environment.id, closing) as made:
    made.callback(activity.begin, activity_lib.Doing.STARTING)  # called last
    for group, its in enumerate(sections.place.groups):
      activity.begin(activity_lib.Doing.MAKING, group)
      env_ids, seed = np.array(its, np.int32), layout_lib.group_seed(sections.seed, its, attempt)
      environment = environments.make(sections, env_ids.size, seed, renders=films is not None)
      made.enter_context(contextlib.closing(environment))
      made.callback(activity.begin, activity_lib.Doing.CLOSING, group)
      if films is not None:
        environment = filming.FilmedEnvironment(environment, sections, films)
      activity.begin(activity_lib.Doing.CONNECTING, group)
      run_ids = actor_lib.new_run_ids(run_seed, env_ids)
      channel = made.enter_context(contextlib.closing(connect(env_ids, environment.spec)))
      groups.append(actor_lib.EnvironmentGroup(environment, channel, env_ids, run_ids))
  return actor_lib.Actor(groups, activity)
