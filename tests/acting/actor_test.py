"""The actor: order of steps over groups, numbers and ids of requests, the local channel."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import vector
from seed_acme.inference import batching
from tests import scripted_environments
from tests.acting import logged

pytestmark = pytest.mark.timeout(60)


def make_actor(
  num_groups: int, log: logged.Log, num_replies: int = 1000
) -> tuple[actor_lib.Actor, list[logged.LoggedChannel]]:
  channels = [logged.LoggedChannel('ab'[i], log, num_replies) for i in range(num_groups)]
  groups = [
    actor_lib.EnvironmentGroup(
      logged.LoggedEnvironment('ab'[i], log),
      channels[i],
      np.array([2 * i, 2 * i + 1], np.int32),
      np.array([7, 8], np.int64) + 10 * i,
    )
    for i in range(num_groups)
  ]
  return actor_lib.Actor(groups, activity_lib.Activity()), channels


def test_one_group_steps_when_its_actions_are_there():
  log: logged.Log = []
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


def test_two_groups_take_turns_and_one_waits_while_the_other_steps():
  log: logged.Log = []
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
  log: logged.Log = []
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
  environment = vector.VectorOfEnvironments(
    [scripted_environments.RaisingEnvironment(raise_at_step=2)], 'x'
  )
  channel = actor_lib.LocalChannel(lambda requests: [np.zeros(1, np.int32)])
  actor = actor_lib.Actor(
    [actor_lib.EnvironmentGroup(environment, channel, np.zeros(1, np.int32), np.ones(1, np.int64))],
    activity_lib.Activity(),
  )
  with pytest.raises(RuntimeError, match='scripted failure'):
    actor.run(lambda: False)


def test_whoever_watches_sees_whose_call_an_actor_is_in():
  activity, seen = activity_lib.Activity(), []
  note = lambda: seen.append((activity.read().doing.name, activity.read().group))
  number = iter(range(100))

  class Environment(logged.LoggedEnvironment):
    def _timestep(self, step_type: int) -> types.VectorTimeStep:
      note()
      has_ended = next(number) == 2  # the first step of group 0
      return super()._timestep(types.LAST if has_ended else step_type)

  class Channel(logged.LoggedChannel):
    def receive(self) -> np.ndarray:
      note()
      return super().receive()

  actor = actor_lib.Actor(
    [
      actor_lib.EnvironmentGroup(
        Environment('', []), Channel('', []), np.array([0, 1], np.int32), np.zeros(2, np.int64)
      )
      for _ in range(2)
    ],
    activity,
  )
  actor.step()
  actor.step()
  note()  # the caller does something else
  assert seen == [
    ('RESETTING', 0),
    ('RESETTING', 1),
    ('WAITING', 0),
    ('STEPPING', 0),
    ('WAITING', 1),
    ('STEPPING', 1),
    ('WAITING', 0),
    ('RESETTING', 0),
    ('WAITING', 1),
    ('STEPPING', 1),
    ('WAITING', 0),
  ]


def test_close():
  log: logged.Log = []
  actor, _ = make_actor(2, log)
  actor.close()
  assert log == [
    ('a', 'close channel'),
    ('a', 'close environment'),
    ('b', 'close channel'),
    ('b', 'close environment'),
  ]


def test_groups_are_closed_though_others_raise_and_their_errors_are_seen():
  activity, log = activity_lib.Activity(), []

  class Unclosable(logged.LoggedEnvironment):
    def close(self):
      log.append((activity.read().doing.name, activity.read().group))
      raise RuntimeError('the window is gone')

  actor = actor_lib.Actor(
    [
      actor_lib.EnvironmentGroup(
        Unclosable('', []), logged.LoggedChannel('', []), np.zeros(2, np.int32), np.zeros(2)
      )
      for _ in range(2)
    ],
    activity,
  )
  with pytest.raises(RuntimeError, match='the window is gone'):
    actor.close()
  assert log == [('CLOSING', 0), ('CLOSING', 1)]
  assert activity.read().doing is activity_lib.Doing.STARTING  # so no watch takes it for hanging


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


class _Reasoned(NamedTuple):
  """An action of several parts."""

  reason: np.ndarray


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
    with pytest.raises(core.Refused, match='no such environment'):
      channel.receive()

  def test_an_action_may_have_a_field_of_any_name(self):
    action = _Reasoned(np.zeros(2))
    channel = actor_lib.LocalChannel(lambda requests: [action])
    channel.send('request')
    assert channel.receive() is action

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
