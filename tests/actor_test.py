"""The actor: order of steps over groups, numbers and ids of requests, the local channel."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import actor as actor_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.envs import vector
from seed_acme.inference import batching
from seed_acme.inference import wire
from seed_acme.programs import actors
from seed_acme.testing import environments

pytestmark = pytest.mark.timeout(60)

Log = list[tuple[Any, ...]]


class LoggedEnvironment:
  """Two environments whose every call is written to `log` under `name`."""

  num_environments = 2
  spec = types.EnvironmentSpec(
    dm_specs.Array((1,), np.float32), dm_specs.DiscreteArray(100, dtype=np.int32)
  )

  def __init__(self, name: str, log: Log):
    self._name, self._log, self._row = name, log, 0

  def reset(self) -> types.VectorTimeStep:
    self._log.append((self._name, 'reset'))
    return self._timestep(types.FIRST)

  def step(self, actions: np.ndarray) -> types.VectorTimeStep:
    self._log.append((self._name, 'step', actions.tolist()))
    self._row += 1
    return self._timestep(types.MID)

  def close(self) -> None:
    self._log.append((self._name, 'close environment'))

  def _timestep(self, step_type: int) -> types.VectorTimeStep:
    row = np.full(2, self._row, np.float32)
    return types.VectorTimeStep(np.full(2, step_type, np.uint8), row, row, row[:, None], row)


class LoggedChannel:
  """Answers request n of a group with actions `[first env_id, n]`; ends after `num_replies`."""

  def __init__(self, name: str, log: Log, num_replies: int = 1000):
    self._name, self._log, self._num_replies = name, log, num_replies
    self.requests: list[types.ActorRequest] = []

  def send(self, request: types.ActorRequest) -> None:
    self._log.append((self._name, 'send', request.request_number))
    self.requests.append(request)

  def receive(self) -> np.ndarray:
    request = self.requests[-1]
    if request.request_number >= self._num_replies:
      raise core.ChannelClosed
    self._log.append((self._name, 'receive', request.request_number))
    return np.array([request.env_ids[0], request.request_number], np.int32)

  def close(self) -> None:
    self._log.append((self._name, 'close channel'))


def make_actor(
  num_groups: int, log: Log, num_replies: int = 1000
) -> tuple[actor_lib.Actor, list[LoggedChannel]]:
  channels = [LoggedChannel('ab'[i], log, num_replies) for i in range(num_groups)]
  groups = [
    actor_lib.EnvironmentGroup(
      LoggedEnvironment('ab'[i], log),
      channels[i],
      np.array([2 * i, 2 * i + 1], np.int32),
      np.array([7, 8], np.int64) + 10 * i,
    )
    for i in range(num_groups)
  ]
  return actor_lib.Actor(groups), channels


def test_one_group_steps_when_its_actions_are_there():
  log: Log = []
  actor, _ = make_actor(1, log)
  assert log == []  # nothing happens before the first step
  actor.step()
  actor.step()
  assert log == [
    ('a', 'reset'),
    ('a', 'send', 0),
    ('a', 'receive', 0),
    ('a', 'step', [0, 0]),
    ('a', 'send', 1),
    ('a', 'receive', 1),
    ('a', 'step', [0, 1]),
    ('a', 'send', 2),
  ]
  assert actor.num_rows == 2


def test_two_groups_take_turns_and_one_waits_while_the_other_steps():
  log: Log = []
  actor, _ = make_actor(2, log)
  actor.step()
  assert log == [
    ('a', 'reset'),
    ('a', 'send', 0),
    ('b', 'reset'),
    ('b', 'send', 0),
    ('a', 'receive', 0),
    ('a', 'step', [0, 0]),
    ('a', 'send', 1),
    ('b', 'receive', 0),
    ('b', 'step', [2, 0]),
    ('b', 'send', 1),
  ]
  del log[:]
  actor.step()
  assert log == [
    ('a', 'receive', 1),
    ('a', 'step', [0, 1]),
    ('a', 'send', 2),
    ('b', 'receive', 1),
    ('b', 'step', [2, 1]),
    ('b', 'send', 2),
  ]


def test_requests_carry_their_number_ids_and_time_step():
  actor, channels = make_actor(2, [])
  for _ in range(3):
    actor.step()
  for i, channel in enumerate(channels):
    assert [r.request_number for r in channel.requests] == [0, 1, 2, 3]
    for number, request in enumerate(channel.requests):
      assert request.env_ids.tolist() == [2 * i, 2 * i + 1]
      assert request.run_ids.tolist() == [7 + 10 * i, 8 + 10 * i]
      assert request.timestep.step_type.tolist() == [types.MID if number else types.FIRST] * 2
      assert request.timestep.reward.tolist() == [number] * 2


def test_run_ends_with_the_server_or_when_told():
  log: Log = []
  actor, channels = make_actor(2, log, num_replies=4)
  actor.run(lambda: False)
  assert [len(channel.requests) for channel in channels] == [5, 5]
  assert log[-1] == ('b', 'send', 4)
  log = []
  actor, _ = make_actor(1, log)
  answers = iter([False, False, True])
  actor.run(lambda: next(answers))
  assert log[-1] == ('a', 'send', 2)


def test_other_errors_are_not_swallowed():
  environment = vector.VectorOfEnvironments([environments.RaisingEnvironment(raise_at_step=2)], 'x')
  channel = actor_lib.LocalChannel(lambda requests: [np.zeros(1, np.int32)])
  actor = actor_lib.Actor(
    [actor_lib.EnvironmentGroup(environment, channel, np.zeros(1, np.int32), np.ones(1, np.int64))]
  )
  with pytest.raises(RuntimeError, match='scripted failure'):
    actor.run(lambda: False)


def test_close_and_interrupt():
  log: Log = []
  actor, _ = make_actor(2, log)
  actor.interrupt()
  assert log == [('a', 'close channel'), ('b', 'close channel')]
  del log[:]
  actor.close()
  assert log == [
    ('a', 'close channel'),
    ('a', 'close environment'),
    ('b', 'close channel'),
    ('b', 'close environment'),
  ]


@pytest.mark.parametrize(
  'num_groups, expected',
  [(1, [[8, 9, 10, 11]]), (2, [[8, 9], [10, 11]]), (4, [[8], [9], [10], [11]])],
)
def test_group_env_ids(num_groups, expected):
  groups = actor_lib.group_env_ids(8, 4, num_groups)
  assert [group.tolist() for group in groups] == expected
  assert all(group.dtype == np.int32 for group in groups)


def test_run_ids_repeat_with_a_seed_and_never_without():
  env_ids = np.array([4, 5, 6], np.int32)
  seeded = actor_lib.new_run_ids(3, env_ids)
  assert seeded.dtype == np.int64 and seeded.shape == (3,) and (seeded > 0).all()
  assert seeded.tolist() == actor_lib.new_run_ids(3, env_ids).tolist()
  drawn = [
    seeded,
    actor_lib.new_run_ids(4, env_ids),
    actor_lib.new_run_ids(3, env_ids + 3),
    *[actor_lib.new_run_ids(None, env_ids) for _ in range(5)],
  ]
  assert len(set(np.concatenate(drawn).tolist())) == 3 * len(drawn)


class TestLocalChannel:
  def test_the_server_is_called_with_the_request_sent_last(self):
    calls = []
    channel = actor_lib.LocalChannel(lambda requests: calls.append(requests) or ['actions'])
    channel.send('first')
    assert calls == []
    assert channel.receive() == 'actions' and calls == [['first']]
    channel.send('second')
    channel.receive()
    assert calls == [['first'], ['second']]

  def test_a_refusal_is_raised_with_its_text(self):
    channel = actor_lib.LocalChannel(lambda requests: [batching.Refusal('no such environment')])
    channel.send('request')
    with pytest.raises(wire.Refused, match='no such environment'):
      channel.receive()

  def test_after_close_it_is_closed(self):
    channel = actor_lib.LocalChannel(lambda requests: ['actions'])
    channel.send('request')
    closing = threading.Thread(target=channel.close)
    closing.start()
    closing.join()
    with pytest.raises(core.ChannelClosed):
      channel.receive()
    channel.send('request')
    with pytest.raises(core.ChannelClosed):
      channel.receive()


def make_config(**changes: Any) -> config_lib.ExperimentConfig:
  return config_lib.ExperimentConfig(
    name='test',
    num_actors=2,
    environments_per_actor=4,
    num_evaluation_environments=3,
    environment=config_lib.EnvironmentConfig('catch'),
    agent=vtrace_config.VTraceConfig(),
    **changes,
  )


def connected(
  config: config_lib.ExperimentConfig, index: int, attempt: int = 0, run_seed: int | None = 5
) -> list[list[types.ActorRequest]]:
  """The requests of each group in the first step of an actor built from a configuration."""
  channels: list[LoggedChannel] = []

  def connect(env_ids: np.ndarray) -> LoggedChannel:
    channels.append(LoggedChannel('x', [], 0))
    return channels[-1]

  actor = actors.make_actor(config, index, attempt, run_seed, connect)
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
  assert actors.num_actor_nodes(config) == len(expected)
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
    'seed_acme.programs.actor_worker, seed_acme.envs.catch',
    'seed_acme.inference.grpc_transport',
    'seed_acme.inference.courier_transport',
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
