"""Fixtures of the inference tests: policies, because tracing one takes longer than most tests, a
thread that waits for a batch, and a server whose environments wait for the learner."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import functools
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.inference import unroll_quota
from seed_acme.progress import counting
from tests import random_policy
from tests.inference import rigs


@pytest.fixture(scope='session')
def acting() -> Callable[[str], random_policy.Acting]:
  """`acting('lstm')`, shared by all tests. Do not publish other weights to it."""
  return functools.cache(random_policy.make_acting)


@pytest.fixture(scope='session')
def new_acting() -> Callable[[str], random_policy.Acting]:
  """`new_acting('none')`, made for one test only."""
  return random_policy.make_acting


class InBackground:
  """A thread in `next_batch` that is known to wait; its looks are counted, not timed.

  looks: released by the batcher's `accepts_training`, which it calls under its lock once each time
    it looks at waiting requests. A call after the look therefore comes during the wait.
  """

  _NEVER_S = 1000.0
  _COMES_S = 30.0  # guard against a hang, not a deadline

  def __init__(self, batcher: batching.Batcher, looks: threading.Semaphore):
    while looks.acquire(blocking=False):  # from earlier batches
      pass
    self._looks = looks
    pool = futures.ThreadPoolExecutor(1)
    self._future = pool.submit(batcher.next_batch, self._NEVER_S)
    pool.shutdown(wait=False)
    self.until_it_waits()

  def until_it_waits(self) -> None:
    assert self._looks.acquire(timeout=self._COMES_S)

  def result(self) -> list[batching.PendingRequest]:
    return self._future.result(self._COMES_S)


@pytest.fixture
def in_background() -> Iterator[Callable[[batching.Batcher, threading.Semaphore], InBackground]]:
  """`in_background(batcher, looks)`; a thread that still waits after the test is released."""
  batchers = []

  def start(batcher: batching.Batcher, looks: threading.Semaphore) -> InBackground:
    batchers.append(batcher)
    return InBackground(batcher, looks)

  yield start
  for batcher in batchers:
    batcher.close()


class _Sink:
  """A sink that keeps unrolls, one environment each."""

  def __init__(self) -> None:
    self.unrolls: list[types.Unroll] = []

  def has_room(self) -> bool:
    return True

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    for k in range(unrolls.policy_version.shape[0]):
      self.unrolls.append(tree.map_structure(lambda x: np.copy(x[k]), unrolls))  # noqa: B023


class StrictRig:
  """A server with a quota and weights of version 0, which is asked as the batcher asks it.

  Training environments are 0 ... 3, evaluation environments 4 and 5.
  """

  num_training, num_environments = 4, 6

  def __init__(
    self,
    acting: random_policy.Acting,
    unroll_length: int = 3,
    overlap: int = 0,
    unrolls_per_update: int = 1,
  ):
    self.acting = acting
    self.sink = _Sink()
    self.counters = counting.Counters()
    self.server = server_lib.InferenceServer(
      spec=acting.spec,
      environment_name='rig',
      policy=acting.policy,
      num_training=self.num_training,
      num_environments=self.num_environments,
      unroll_length=unroll_length,
      overlap=overlap,
      batch_size=4,
      seed=1,
      sink=self.sink,
      counters=self.counters,
      quota=unroll_quota.UnrollQuota(self.num_training, unrolls_per_update),
      statistics=server_statistics.ServerStatistics(self.num_environments),
    )
    self.publish(0)

  def publish(self, version: int) -> None:
    self.acting.published.publish(
      types.Variables(
        version, tuple(self._weights(version)[i] for i in self.acting.policy.variables_read)
      )
    )

  def _weights(self, version: int) -> tuple[tf.Tensor, ...]:
    random = np.random.default_rng([17, version])
    return tuple(
      tf.constant(random.normal(0, 0.7, v.shape), v.dtype) for v in self.acting.network.variables
    )

  def ask(self, request: types.ActorRequest) -> Any:
    """Returns the reply, or None if the request is held."""
    return None if self.server.hold_back(request) else self.server.step([request])[0]

  def step(self, group: Group, times: int = 1) -> None:
    """Makes steps of a group that is not held."""
    for _ in range(times):
      actions = self.ask(group.request)
      assert actions is not None
      group.answered(actions)

  def predict(self, version: int, inputs: types.AgentInput, state: types.Nest) -> Any:
    """Returns (prediction, new state) with the weights of a version, numpy `[N, ...]`."""
    for variable, value in zip(self.acting.network.variables, self._weights(version)):
      variable.assign(value)
    # the policy shares the network, so it has to load its weights again
    self.acting.policy.version = -1
    return tree.map_structure(lambda x: x.numpy(), self.acting.network(inputs, state))


class Group:
  """Environments that step together, with random episodes; it records rows by (env_id, run)."""

  def __init__(self, env_ids: Sequence[int]):
    self.env_ids = np.array(env_ids, np.int32)
    self.rows: dict[tuple[int, int], list[types.Nest]] = collections.defaultdict(list)
    self._random = np.random.default_rng(self.env_ids)
    self._run = 0
    self.restart()

  def restart(self) -> None:
    self._run += 1
    self._number = 0
    self._has_ended = np.ones(self.env_ids.size, bool)
    self._make_request()

  def _make_request(self) -> None:
    n = self.env_ids.size
    going_on = np.where(self._random.random(n) < 0.2, types.LAST, types.MID)
    step_types = np.where(self._has_ended, types.FIRST, going_on).astype(np.uint8)
    normal = lambda *shape: self._random.normal(size=shape).astype(np.float32)
    self.request = types.ActorRequest(
      self._number,
      self.env_ids,
      self.env_ids + np.int64(1000 * self._run),
      types.VectorTimeStep(step_types, normal(n), np.ones(n, np.float32), normal(n, 2), normal(n)),
    )

  def answered(self, actions: np.ndarray) -> None:
    """Steps the environments."""
    step = self.request.timestep
    for i, env_id in enumerate(self.env_ids.tolist()):
      self.rows[env_id, self._run].append(
        (step.observation[i].tolist(), int(step.step_type[i]), int(actions[i]))
      )
    self._has_ended = step.step_type == types.LAST
    self._number += 1
    self._make_request()


@pytest.fixture(scope='session')
def strict_rig() -> type[StrictRig]:
  """`strict_rig(acting, unroll_length=3, overlap=0, unrolls_per_update=1)`"""
  return StrictRig


@pytest.fixture(scope='session')
def make_group() -> type[Group]:
  """`make_group([0, 1])`"""
  return Group


@pytest.fixture(scope='session')
def learning() -> Callable[[str], random_policy.Acting]:
  """`learning('lstm')`, whose weights a `StrictRig` publishes; shared by all of them."""
  return functools.cache(random_policy.make_acting)


@pytest.fixture(params=['none', 'lstm'])
def rig(request, acting):
  return rigs.Rig(acting(request.param))
