"""A learner without the environments' packages gets their specification from its first actor."""

import contextlib
import dataclasses
import threading

import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as suites
from seed_acme.inference import batching
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import first_greeting
from seed_acme.programs.nodes import learner_node
from seed_acme.programs.nodes import node as node_lib
from seed_acme.storage import run_directory
from seed_acme.transport import fence
from seed_acme.transport import grpc_client
from seed_acme.transport import joining
from seed_acme.transport import patience
from seed_acme.transport import transports
from seed_acme.transport import wire
from tests import ports

_HANG_S = 60.0


@pytest.fixture(scope='module')
def config():
  base = registry.load('catch_vtrace')
  return dataclasses.replace(
    base,
    num_actors=1,
    environments_per_actor=2,
    num_evaluation_environments=0,
    transport=dataclasses.replace(base.transport, kind='grpc', host='127.0.0.1'),
  )


class _Waiting:
  """A learner that waits for the specification in a thread of its own."""

  def __init__(self, config, folder):
    self.port = ports.unused()
    self.stop = threading.Event()
    self.found = []
    self.node = node_lib.Node(
      sections.split(config).learners[0],
      node_lib.Links('token', f'127.0.0.1:{self.port}'),
      run_directory.create(folder),
      node_lib.Life(self.stop),
    )
    wait = lambda: self.found.append(first_greeting.wait_for(self.node))
    self._thread = threading.Thread(target=wait, daemon=True)
    self._thread.start()

  def join(self):
    self._thread.join(_HANG_S)
    assert not self._thread.is_alive()
    return self.found[0]


def test_the_first_actor_says_what_its_environments_are_and_stays(config, tmp_path):
  spec = suites.environment_spec(config.environment)
  waiting = _Waiting(config, tmp_path / 'run')
  answers = []
  request = types.ActorRequest(
    0,
    np.arange(2, dtype=np.int32),
    np.ones(2, np.int64),
    suites.make(config.environment, 2, 0).reset(),
  )

  def act():
    channel = transports.connect(
      'grpc',
      f'127.0.0.1:{waiting.port}',
      'token',
      wire.GroupCodec(spec, 2, sections.split(config).actors[0].shared),
      request.env_ids,
      patience.Patience(_HANG_S, _HANG_S),
      wire.FIRST_START,
    )
    channel.send(request)
    answers.append(channel.receive())

  actor = threading.Thread(target=act, daemon=True)
  actor.start()
  greeting = waiting.join()
  assert greeting.spec == spec
  # The learner that replaces it on the port serves the same actor, and the same request.
  batcher = batching.Batcher(2, 0.0, lambda: True, lambda request: False)
  desk = end_notice.Desk(lambda env_id: batcher, spec, 2, 2, 'token', greeting.instance)
  learner = sections.split(config).learners[0]
  members = joining.Members(learner.shared, resumptions=0)
  server = end_notice.make_transport(learner, desk, waiting.port, members)
  server.start()
  [pending] = batcher.next_batch(_HANG_S)
  pending.answer(np.array([1, 2], np.int32))
  actor.join(_HANG_S)
  assert [answer.tolist() for answer in answers] == [[1, 2]]
  batcher.close()
  server.stop()


def test_who_joined_while_the_learner_waited_gets_another_number_later(config, tmp_path):
  """Environments' seeds depend on it."""
  waiting = _Waiting(config, tmp_path / 'run')
  learner = sections.split(config).learners[0]
  address = f'127.0.0.1:{waiting.port}'
  hello = joining.hello('actor/0', learner.shared['actor'])
  join = lambda: grpc_client.GrpcMember(address, 'token', hello, _HANG_S).join()
  first = join()

  def act():
    spec = suites.environment_spec(config.environment)
    codec = wire.GroupCodec(spec, 2, learner.shared['actor'])
    channel = transports.connect(
      'grpc', address, 'token', codec, np.arange(2), patience.on_other_hosts(_HANG_S), first
    )
    channel.close()

  actor = threading.Thread(target=act, daemon=True)
  actor.start()
  with contextlib.ExitStack() as cleanup:
    learner_node.LearnerNodeProcess(waiting.node, waiting.join(), cleanup, fence.LOOPBACK)
    actor.join(_HANG_S)
    assert join().number > first.following().number


def test_a_learner_that_is_stopped_waits_no_longer(config, tmp_path):
  waiting = _Waiting(config, tmp_path / 'run')
  waiting.stop.set()
  assert waiting.join() is None


def test_an_actor_of_another_run_says_nothing(config, tmp_path):
  """It has outlived the learner of its run, and waits at the address for another one."""
  waiting = _Waiting(config, tmp_path / 'run')
  other = dataclasses.replace(config, seed=config.seed + 1)
  spec = suites.environment_spec(config.environment)
  with pytest.raises(core.Refused, match="seed is 2, the learner's 1"):
    transports.connect(
      'grpc',
      f'127.0.0.1:{waiting.port}',
      'token',
      wire.GroupCodec(spec, 2, sections.split(other).actors[0].shared),
      np.arange(2, dtype=np.int32),
      patience.on_other_hosts(_HANG_S),
      wire.FIRST_START,
    )
  waiting.stop.set()
  assert waiting.join() is None


def test_a_stranger_says_nothing(config, tmp_path):
  """A client without the run's token is refused before anything is read."""
  waiting = _Waiting(config, tmp_path / 'run')
  with pytest.raises((core.Refused, core.ServerLost)):
    transports.connect(
      'grpc',
      f'127.0.0.1:{waiting.port}',
      'another',
      wire.GroupCodec(suites.environment_spec(config.environment), 2),
      np.arange(2, dtype=np.int32),
      patience.on_other_hosts(_HANG_S),
      wire.FIRST_START,
    )
  waiting.stop.set()
  assert waiting.join() is None
