"""The central inference server: takes a batch of requests, returns a batch of actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import operator
from typing import NamedTuple

import numpy as np
import tree

from seed_acme import core
from seed_acme import types
from seed_acme.envs import time_steps
from seed_acme.inference import batching
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import recorder as recorder_lib
from seed_acme.inference import rows as rows_lib
from seed_acme.inference import server_statistics
from seed_acme.inference import slots as slots_lib
from seed_acme.inference import turns
from seed_acme.inference import unroll_quota
from seed_acme.inference import unrolls as unrolls_lib
from seed_acme.progress import counting
from seed_acme.tensors import nests


class _ToRecord(NamedTuple):
  """Rows that were acted on and are not recorded yet. version: version of the weights used."""

  env_ids: np.ndarray
  rows: rows_lib.ActedRows
  version: int


class Answered(NamedTuple):
  """Result of `InferenceServer.answer`: a reply for each request, and the input of `record`."""

  replies: list[batching.Reply]
  to_record: _ToRecord | None


class InferenceServer:
  """Resets environments' slots, acts, stores states and passes on finished unrolls.

  It knows neither the algorithm nor the transport. Used by one thread: the inference thread
  of a distributed program, or the loop of the single-process program.
  """

  def __init__(
    self,
    *,
    spec: types.EnvironmentSpec,
    environment_name: str,
    policy: policy_lib.Policy,
    num_training: int,
    num_environments: int,
    unroll_length: int,
    overlap: int,
    batch_size: int,
    seed: int,
    sink: core.UnrollSink,
    counters: counting.Counters,
    quota: unroll_quota.UnrollQuota | None,
    statistics: server_statistics.ServerStatistics,
    checks_values: bool = True,
  ):
    """environment_name: for messages. quota: None = environments never wait for the learner, see
    `hold_back`.

    statistics: may be shared by several servers with different environments.
    checks_values: False = all requests are from actors in this process, which have checked them.
    """
    self._environment_name = environment_name
    self._checks_values = checks_values
    self._check = time_steps.TimeStepCheck(spec.observation)
    self._policy = policy
    self._num_environments = num_environments
    self._batch_size = batch_size
    initial_state = policy.initial_state()
    self.slots = slots_lib.EnvironmentSlots(num_environments, spec.action, initial_state, seed)
    unrolls = unrolls_lib.UnrollAssembler(
      num_training,
      unroll_length,
      overlap,
      policy.example_row(),
      tree.map_structure(lambda x: x[0], initial_state),
    )
    self._recorder = recorder_lib.Recorder(
      unrolls, sink, counters, num_training, spec.frames_per_step, quota, statistics
    )
    self._read_inputs = rows_lib.InputReader(
      self.slots, counters, num_training, num_environments, policy.num_uniforms
    )
    self._turns = (
      None
      if quota is None
      else turns.StrictTurns(
        quota,
        self.slots,
        unrolls,
        self._recorder,
        self._read_inputs,
        policy,
        num_training,
        lambda request: self._fault(rows_lib.Rows([request], request.env_ids.size)) is None,
      )
    )
    self.statistics = statistics
    self.timer = statistics.new_timer()

  def step(self, requests: Sequence[types.ActorRequest]) -> list[batching.Reply]:
    """Calls `answer` and `record`."""
    answered = self.answer(requests)
    self.record(answered)
    return answered.replies

  def answer(self, requests: Sequence[types.ActorRequest]) -> Answered:
    """Returns replies in the order of the requests: actions `[E, ...]`, or a `Refusal`.

    The result must be passed to `record` before the next call; actors step their
    environments meanwhile.
    """
    replies: list[batching.Reply] = list(
      batching.refuse_repeated_environments(list(requests), self._num_environments)
    )
    for i, request in enumerate(requests):
      if replies[i] is None:
        replies[i] = self._answer_without_acting(request)
    to_act = [i for i, reply in enumerate(replies) if reply is None]
    if not to_act:
      return Answered(replies, None)
    acting = [requests[i] for i in to_act]
    rows = self._padded(acting)
    if self._fault(rows) is not None:  # checks requests one by one only to find the wrong one
      for i in to_act:
        replies[i] = self._refusal_of_values(requests[i])
      to_act = [i for i in to_act if replies[i] is None]
      if not to_act:
        return Answered(replies, None)
      acting = [requests[i] for i in to_act]
      rows = self._padded(acting)
    acted = self._act(rows)
    for i, actions in zip(to_act, _by_request(acted.rows.outputs.action, acting)):
      replies[i] = actions
    return Answered(replies, acted)

  def record(self, answered: Answered) -> None:
    """Adds the answered rows to episodes and unrolls, and passes on finished unrolls."""
    if answered.to_record is not None:
      with self.timer.phase('unrolls'):
        self._recorder.record(*answered.to_record)

  def hold_back(self, request: types.ActorRequest) -> bool:
    """Whether the request must wait for the next weights, see `turns.StrictTurns`."""
    return self._turns is not None and self._turns.hold_back(request)

  def _answer_without_acting(self, request: types.ActorRequest) -> batching.Reply | None:
    """Returns the stored action for a repeated number, a refusal for a wrong one, else None."""
    env_ids = request.env_ids
    is_new = self.slots.is_new_run(env_ids, request.run_ids)
    if is_new.any():
      if (request.timestep.step_type[is_new] != types.FIRST).any():
        return batching.Refusal(
          'the first row of a run is not FIRST: reset the environments whenever run_ids change'
        )
    stored = self.slots.request_numbers[env_ids[~is_new]]
    number = request.request_number
    if not is_new.any() and (stored == number).all():
      return tree.map_structure(lambda a: a[env_ids], self.slots.action)
    if (stored != number - 1).any():
      return batching.Refusal(f'request {number} does not follow request {stored.max()}')
    return None

  def _padded(self, requests: list[types.ActorRequest]) -> rows_lib.Rows:
    """Combines requests into the padded rows of one batch."""
    num_rows = sum(r.env_ids.size for r in requests)
    with self.timer.phase('prepare'):
      return rows_lib.Rows(requests, batching.padded_size(num_rows, self._batch_size))

  def _fault(self, rows: rows_lib.Rows) -> time_steps.Fault | None:
    """Returns a wrong value that actors sent, although they should have checked it."""
    if not self._checks_values:
      return None
    with self.timer.phase('prepare'):
      timestep, ids = rows.timestep, rows.env_ids
      if timestep.step_type.size > rows.num_rows:
        timestep = nests.map_arrays(lambda x: x[: rows.num_rows], timestep)
      has_ended = self.slots.has_ended[ids] | self.slots.is_new_run(ids, rows.run_ids)
      return self._check.fault(timestep, has_ended)

  def _refusal_of_values(self, request: types.ActorRequest) -> batching.Refusal | None:
    fault = self._fault(rows_lib.Rows([request], request.env_ids.size))
    if fault is None:
      return None
    env_id = int(request.env_ids[fault.row])
    return batching.Refusal(str(fault.error(self._environment_name, env_id)))

  def _act(self, rows: rows_lib.Rows) -> _ToRecord:
    """Acts on all rows, `[N, ...]`."""
    num_rows = rows.num_rows
    with self.timer.phase('prepare'):
      self._reset_new_runs(rows)
      inputs, state, exploration = self._read_inputs(rows)
    with self.timer.phase('inference'):
      self._policy.refresh()
      version = self._policy.version
      outputs, new_state = self._policy(inputs, state, exploration)
    with self.timer.phase('prepare'):
      acted = rows_lib.ActedRows(
        exploration.is_evaluation, inputs, rows.timestep.score, outputs, state
      )
      if acted.is_evaluation.size > num_rows:  # drops the padding
        acted, new_state = nests.map_arrays(lambda x: x[:num_rows], (acted, new_state))
      self.slots.write(
        rows.env_ids, rows.request_numbers, acted.inputs.step_type, acted.outputs.action, new_state
      )
    self.statistics.batch_sizes.add(num_rows)
    return _ToRecord(rows.env_ids, acted, version)

  def _reset_new_runs(self, rows: rows_lib.Rows) -> None:
    is_new = self.slots.is_new_run(rows.env_ids, rows.run_ids)
    if is_new.any():
      env_ids = rows.env_ids[is_new]
      self.slots.reset(env_ids, rows.run_ids[is_new])
      self._recorder.reset(env_ids)


def _by_request(
  actions: types.Nest, requests: Sequence[types.ActorRequest]
) -> Iterator[types.Nest]:
  """Splits rows `[N, ...]` into those of each request `[E, ...]`."""
  start = 0
  for request in requests:
    rows = slice(start, start + request.env_ids.size)
    yield nests.map_arrays(operator.itemgetter(rows), actions)
    start = rows.stop
