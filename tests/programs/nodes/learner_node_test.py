"""The learner's node, and actors that open streams to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import threading

import numpy as np
import pytest

from seed_acme import core
from seed_acme.configs import registry
from seed_acme.envs import registry as environments
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import learner_node
from seed_acme.programs.nodes import node as node_lib
from seed_acme.storage import run_directory
from seed_acme.transport import fence
from seed_acme.transport import patience
from seed_acme.transport import transports
from seed_acme.transport import wire
from tests import ports

_HANG_S = 60.0
Connect = Callable[..., core.InferenceChannel]


@pytest.fixture(name='connect', scope='module')
def _connect(tmp_path_factory) -> Iterator[Connect]:
  """`connect(*env_ids)` opens a stream to a learner with two replay shards. Each of its two actors
  has two groups of two environments, and 8 ... 11 evaluate."""
  base = registry.load('catch_vtrace')
  config = dataclasses.replace(
    base,
    num_actors=2,
    environments_per_actor=4,
    num_evaluation_environments=4,
    actor=dataclasses.replace(base.actor, environment_groups=2),
    replay=dataclasses.replace(base.replay, num_shards=2),
    transport=dataclasses.replace(base.transport, kind='grpc', host='127.0.0.1'),
  )
  port, spec = ports.unused(), environments.environment_spec(config.environment)
  node = node_lib.Node(
    sections.split(config).learners[0],
    node_lib.Links('token', f'127.0.0.1:{port}'),
    run_directory.create(tmp_path_factory.mktemp('learner') / 'run'),
    node_lib.Life(threading.Event()),
  )

  def connect(*env_ids: int, seed: int = config.seed) -> core.InferenceChannel:
    actor = sections.split(dataclasses.replace(config, seed=seed)).actors[0]
    return transports.connect(
      'grpc',
      f'127.0.0.1:{port}',
      'token',
      wire.GroupCodec(spec, len(env_ids), actor.shared),
      np.array(env_ids, np.int32),
      patience.on_other_hosts(_HANG_S),
      wire.FIRST_START,
    )

  with contextlib.ExitStack() as cleanup:
    learner_node.LearnerNodeProcess(node, node_lib.Greeting(spec), cleanup, fence.LOOPBACK)
    yield connect


@pytest.mark.parametrize(
  'env_ids, said',
  [
    ((6, 7, 8, 9), r'4 env_ids, 6 \.\.\. 9, .* has 2 env_ids, 6 \.\.\. 7: .*environment_groups'),
    ((1, 2), r'2 env_ids, 1 \.\.\. 2, .* environment 1 in this run has 2 env_ids, 0 \.\.\. 1'),
    ((8, 9), r'2 env_ids, 8 \.\.\. 9, .* has 4 env_ids, 8 \.\.\. 11'),
  ],
)
def test_an_actor_with_another_grouping_is_refused(connect, env_ids, said):
  """A group of training and evaluation environments would have no replay shard."""
  with pytest.raises(core.Refused, match=said):
    connect(*env_ids)


def test_an_actor_with_another_seed_is_refused(connect):
  with pytest.raises(core.Refused, match="seed is 7, the learner's 1: start every node"):
    connect(0, 1, seed=7)


def test_the_groups_of_the_run_are_served(connect):
  for env_ids in ((0, 1), (2, 3), (4, 5), (6, 7), range(8, 12)):
    connect(*env_ids).close()
