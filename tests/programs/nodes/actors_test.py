"""Actors built from a configuration."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.agents.on_policy import presets
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import actors
from tests.acting import logged

pytestmark = pytest.mark.timeout(60)


def make_config(**changes: Any) -> config_lib.ExperimentConfig:
  return config_lib.ExperimentConfig(
    name='test',
    num_actors=2,
    environments_per_actor=4,
    num_evaluation_environments=3,
    environment=config_lib.EnvironmentConfig('catch'),
    agent=presets.vtrace(),
    **changes,
  )


def _sections(config: config_lib.ExperimentConfig, index: int) -> sections_lib.ActorSections:
  return sections_lib.split(config).actors[index]


def test_environments_are_made_before_their_server_is_waited_for(monkeypatch):
  activity, seen = activity_lib.Activity(), []
  make = actors.environments.make

  def note(function: Any, *arguments: Any, **more: Any) -> Any:
    seen.append((activity.read().doing.name, activity.read().group))
    return function(*arguments, **more)

  monkeypatch.setattr(
    actors.environments, 'make', lambda *arguments, **more: note(make, *arguments, **more)
  )
  actors.make_actor(
    _sections(make_config(actor=config_lib.ActorConfig(environment_groups=2)), 0),
    0,
    None,
    lambda *_: note(logged.LoggedChannel, '', []),
    activity,
  )
  assert seen == [('MAKING', 0), ('CONNECTING', 0), ('MAKING', 1), ('CONNECTING', 1)]


class _Interrupted(core.ChannelClosed):
  pass


@pytest.mark.parametrize('num_connected', [0, 1])
@pytest.mark.parametrize('is_later', [False, True])
def test_what_was_made_is_closed_if_an_actor_is_not_completed(monkeypatch, num_connected, is_later):
  activity, log = activity_lib.Activity(), []

  class Environment(logged.LoggedEnvironment):
    def close(self):
      super().close()
      log.append((activity.read().doing.name, activity.read().group))

  names = iter('ab')
  monkeypatch.setattr(actors.environments, 'make', lambda *_, **__: Environment(next(names), log))

  def connect(env_ids: np.ndarray, spec: types.EnvironmentSpec) -> logged.LoggedChannel:
    if env_ids[0] >= 2 * num_connected:
      raise _Interrupted
    return logged.LoggedChannel('a', log)

  closing = contextlib.ExitStack() if is_later else None
  with pytest.raises(_Interrupted):
    actors.make_actor(
      _sections(make_config(actor=config_lib.ActorConfig(environment_groups=2)), 0),
      0,
      None,
      connect,
      activity,
      closing=closing,
    )
  if closing is not None:
    assert log == []
    closing.close()
  of_second = [('b', 'close environment'), ('CLOSING', 1), ('a', 'close channel')]
  of_first = [('a', 'close environment'), ('CLOSING', 0)]
  assert log == [*(of_second if num_connected else []), *of_first]
  assert activity.read().doing is activity_lib.Doing.STARTING  # so no watch takes it for hanging


def connected(
  config: config_lib.ExperimentConfig, index: int, attempt: int = 0, run_seed: int | None = 5
) -> list[list[types.ActorRequest]]:
  """Returns the requests of each group in the first step of an actor built from a configuration."""
  channels: list[logged.LoggedChannel] = []

  def connect(env_ids: np.ndarray, spec: types.EnvironmentSpec) -> logged.LoggedChannel:
    channels.append(logged.LoggedChannel('x', [], 0))
    return channels[-1]

  actor = actors.make_actor(
    _sections(config, index), attempt, run_seed, connect, activity_lib.Activity()
  )
  actor.run(lambda: False)
  actor.close()
  return [channel.requests for channel in channels]


@pytest.mark.parametrize(
  'num_groups, expected',
  [
    (1, [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9, 10]]]),
    (2, [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9, 10]]]),
  ],
)
def test_actors_of_a_configuration_share_out_the_environments(num_groups, expected):
  config = make_config(actor=config_lib.ActorConfig(environment_groups=num_groups))
  assert len(layout_lib.Layout.of(config).actors) == len(expected)
  run_ids: list[int] = []
  for index, groups in enumerate(expected):
    requests = [of_group[0] for of_group in connected(config, index)]
    assert [request.env_ids.tolist() for request in requests] == groups
    for request in requests:
      assert request.timestep.step_type.shape == request.env_ids.shape
      run_ids += request.run_ids.tolist()
  assert len(set(run_ids)) == 11


def test_a_restart_has_new_run_ids_and_other_episodes():
  config = make_config()
  first, again, restarted = (
    connected(config, 0, attempt, run_seed) for attempt, run_seed in ((0, 5), (0, 5), (1, None))
  )
  observation = lambda groups: np.concatenate([g[0].timestep.observation for g in groups])
  runs = lambda groups: np.concatenate([g[0].run_ids for g in groups]).tolist()
  np.testing.assert_array_equal(observation(first), observation(again))
  assert runs(first) == runs(again)
  assert not set(runs(first)) & set(runs(restarted))
  assert (observation(first) != observation(restarted)).any()


@pytest.mark.parametrize(
  'module',
  [
    'seed_acme.programs.nodes.actor_worker, seed_acme.envs.catch',
    'seed_acme.transport.grpc_client',
    'seed_acme.transport.courier_transport',
  ],
)
def test_an_actors_process_loads_no_tensorflow(module):
  code = f'import json, sys, {module}; print(json.dumps(sorted(sys.modules)))'
  printed = subprocess.run(
    [sys.executable, '-c', code], check=True, capture_output=True, text=True, timeout=60
  ).stdout
  loaded = {name.partition('.')[0] for name in json.loads(printed)}
  heavy = {'tensorflow', 'reverb', 'sonnet', 'launchpad', 'tensorboard', 'matplotlib', 'pandas'}
  assert loaded & heavy == set()
