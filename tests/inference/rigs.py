"""An inference server whose requests and unrolls the tests see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.inference import unroll_quota
from seed_acme.progress import counting

F, M, L = types.FIRST, types.MID, types.LAST
NUM_TRAINING, NUM_ENVIRONMENTS = 6, 8


class Sink:
  """A sink that keeps its unrolls."""

  def __init__(self) -> None:
    self.unrolls: list[types.Unroll] = []

  def has_room(self) -> bool:
    return True

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    self.unrolls.append(unrolls)

  def num_unrolls(self) -> int:
    return sum(unrolls.policy_version.shape[0] for unrolls in self.unrolls)


class Rig:
  """A server with its sink and counters, for handmade requests."""

  def __init__(
    self,
    acting: Any,
    batch_size: int = 8,
    seed: int = 1,
    unroll_length: int = 3,
    quota: unroll_quota.UnrollQuota | None = None,
  ):
    self.acting = acting
    self.sink = Sink()
    self.counters = counting.Counters()
    self.server = server_lib.InferenceServer(
      spec=acting.spec,
      environment_name='rig',
      policy=acting.policy,
      num_training=NUM_TRAINING,
      num_environments=NUM_ENVIRONMENTS,
      unroll_length=unroll_length,
      overlap=1,
      batch_size=batch_size,
      seed=seed,
      sink=self.sink,
      counters=self.counters,
      quota=quota,
      statistics=server_statistics.ServerStatistics(NUM_ENVIRONMENTS),
    )

  def step(self, *requests: types.ActorRequest) -> list[batching.Reply]:
    return self.server.step(requests)

  def state(self) -> types.Nest:
    slots = self.server.slots
    return tree.map_structure(
      np.copy, (slots.state, slots.action, slots.row_numbers, slots.request_numbers, slots.run_ids)
    )


def observation(env_ids: Sequence[int], number: int) -> np.ndarray:
  return np.array(
    [np.random.default_rng([abs(i), abs(number)]).normal(size=2) for i in env_ids], np.float32
  )


def request(
  env_ids: Sequence[int],
  number: int,
  step_types: int | Sequence[int] = M,
  run_ids: int | Sequence[int] = 1,
  reward: float = 0.5,
  score: float = 2.0,
) -> types.ActorRequest:
  n = len(env_ids)
  full = lambda x, dtype: np.broadcast_to(np.asarray(x, dtype), (n,)).copy()
  return types.ActorRequest(
    number,
    np.array(env_ids, np.int32),
    full(run_ids, np.int64),
    types.VectorTimeStep(
      full(step_types, np.uint8),
      full(reward, np.float32),
      full(1, np.float32),
      observation(env_ids, number),
      full(score, np.float32),
    ),
  )


def assert_same(first: types.Nest, second: types.Nest, rows: Sequence[int]) -> None:
  tree.map_structure(lambda a, b: np.testing.assert_array_equal(a[rows], b[rows]), first, second)
