"""Actors on other hosts hear that the run is over, whenever they connect."""

import dataclasses
import threading

import numpy as np
import pytest

from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as environments
from seed_acme.inference import batching
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import end_notice
from seed_acme.transport import grpc_client
from seed_acme.transport import joining
from seed_acme.transport import patience
from seed_acme.transport import wire
from tests import ports

_HANG_S = 60.0
_TOKEN = 'token'


@pytest.fixture(scope='module')
def config():
  """Returns a configuration with two actors of two environments each."""
  base = registry.load('catch_vtrace')
  return dataclasses.replace(
    base,
    num_actors=2,
    environments_per_actor=2,
    num_evaluation_environments=0,
    transport=dataclasses.replace(base.transport, host='127.0.0.1'),
  )


@pytest.fixture(scope='module')
def spec(config):
  return environments.environment_spec(config.environment)


class _Waiting:
  """A desk whose run ends; `actor(i)` opens an actor's stream, and `all` are expected to hear."""

  def __init__(self, spec):
    batcher = batching.Batcher(1, 0.0, lambda: True, lambda request: False)
    batcher.close()
    self.desk = end_notice.Desk(lambda env_id: batcher, spec, 4, 4, _TOKEN)
    self._codec = wire.GroupCodec(spec, 2)
    self.stop = threading.Event()
    self.missing = []
    self.was_missing = threading.Event()
    self._thread = threading.Thread(target=self._wait, daemon=True)

  def actor(self, index):
    return self.desk.open(self._codec.hello(np.arange(2 * index, 2 * index + 2)))

  def ask(self, session, spec):
    request = _request(spec, np.array(sorted(session.env_ids), np.int32))
    assert session.answer(self._codec.encode_request(request)) == wire.encode_stopped()

  def end_run(self):
    self.desk.end_run()
    self._thread.start()

  def _wait(self):
    self.desk.wait_until_heard(self.desk.has_come, _HANG_S, self.stop, self._note)

  def _note(self, missing):
    self.missing = missing.tolist()
    self.was_missing.set()

  def is_waiting(self):
    return self._thread.is_alive()

  def is_over(self):
    self._thread.join(_HANG_S / 2)
    return not self.is_waiting()


@pytest.fixture
def waiting(spec, monkeypatch):
  monkeypatch.setattr(end_notice, '_CLOSED_S', 0.1)
  made = _Waiting(spec)
  yield made
  made.stop.set()


def test_nobody_waits_for_an_actor_that_never_came(waiting):
  here = waiting.actor(0)
  waiting.end_run()
  here.close()
  assert waiting.is_over() and not waiting.missing


def test_those_who_are_there_hear_at_once(waiting, monkeypatch):
  monkeypatch.setattr(end_notice, '_CLOSED_S', _HANG_S)
  sessions = [waiting.actor(0), waiting.actor(1)]
  waiting.end_run()
  for session in sessions:
    session.close()
  assert waiting.is_over() and not waiting.missing


def test_one_that_was_away_is_waited_for(waiting):
  here, away = waiting.actor(0), waiting.actor(1)
  away.close()
  waiting.end_run()
  here.close()
  assert waiting.was_missing.wait(_HANG_S) and waiting.missing == [False, False, True, True]
  assert waiting.is_waiting()
  waiting.actor(1).close()
  assert waiting.is_over()


def test_one_that_is_cut_off_at_the_end_has_not_heard(waiting):
  cut_off = waiting.actor(1)
  waiting.end_run()
  assert waiting.was_missing.wait(_HANG_S)  # its stream is still open
  cut_off.close()  # as the transport does when it notices
  assert waiting.is_waiting()
  waiting.actor(1).close()
  assert waiting.is_over()


def test_one_that_is_within_a_step_hears_with_its_next_request(waiting, spec):
  stepping = waiting.actor(1)
  waiting.end_run()
  assert waiting.was_missing.wait(_HANG_S)
  waiting.ask(stepping, spec)
  stepping.close()
  assert waiting.is_over()


def test_a_stop_ends_the_wait(waiting):
  waiting.actor(1).close()
  waiting.end_run()
  waiting.was_missing.wait(_HANG_S)
  waiting.stop.set()
  assert waiting.is_over()


def test_absent_actors_are_named(config):
  with_evaluation = dataclasses.replace(config, num_evaluation_environments=1)
  assert end_notice.absent_actors(
    layout_lib.Layout.of(with_evaluation), np.array([0, 0, 0, 1, 1], bool)
  ) == ('actor/1, actor/2')


def test_in_place_of_the_learner_of_a_run_that_was_over(config, spec):
  port, stop = ports.unused(), threading.Event()
  learner = sections.split(config).learners[0]
  serve = lambda: end_notice.serve(learner, _TOKEN, port, stop)
  thread = threading.Thread(target=serve, daemon=True)
  thread.start()
  address = f'127.0.0.1:{port}'
  replay = grpc_client.GrpcMember(
    address, _TOKEN, joining.hello('replay/0', learner.shared['replay']), _HANG_S
  )
  replay.join()
  replay.wait_for_end()
  replay.close()
  for index in range(2):
    env_ids = np.arange(2 * index, 2 * index + 2, dtype=np.int32)
    codec = wire.GroupCodec(spec, 2, learner.shared['actor'])
    actor = grpc_client.GrpcChannel(
      address, _TOKEN, codec, env_ids, patience.on_other_hosts(_HANG_S)
    )
    actor.send(_request(spec, env_ids))
    with pytest.raises(core.ChannelClosed) as caught:
      actor.receive()
    assert type(caught.value) is core.ChannelClosed  # and not a pause
    assert thread.is_alive(), 'it did not wait for the other actor'
    actor.close()
  thread.join(_HANG_S / 2)
  assert not thread.is_alive(), 'all have heard'


def _request(spec, env_ids):
  size = env_ids.size
  zeros = np.zeros(size, np.float32)
  return types.ActorRequest(
    0,
    env_ids,
    np.ones(size, np.int64),
    types.VectorTimeStep(
      step_type=np.zeros(size, np.uint8),
      reward=zeros,
      discount=zeros,
      score=zeros,
      observation=np.zeros((size, *spec.observation.shape), spec.observation.dtype),
    ),
  )
