"""The central inference server: one batch of requests in, one batch of actions out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import threading
from typing import NamedTuple

import numpy as np
import tree

from seed_acme import core
from seed_acme import counting
from seed_acme import graph_function
from seed_acme import nests
from seed_acme import timing
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import episodes
from seed_acme.inference import noise
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import slots as slots_lib
from seed_acme.inference import step_quota
from seed_acme.inference import unrolls as unrolls_lib


class _Rows:
  """The rows of one batch, padded to `size`; rows from `num_rows` on touch nothing."""

  def __init__(self, requests: Sequence[types.ActorRequest], size: int):
    self.env_ids = np.concatenate([r.env_ids for r in requests]).astype(np.int64)
    self.run_ids = np.concatenate([r.run_ids for r in requests])
    self.num_rows = self.env_ids.size
    self.request_numbers = np.repeat(
      np.array([r.request_number for r in requests], np.int64), [r.env_ids.size for r in requests]
    )
    self.timestep = nests.map_arrays(
      lambda *parts: _padded(parts, size), *[r.timestep for r in requests]
    )


def _padded(parts: Sequence[np.ndarray], size: int) -> np.ndarray:
  num_rows = sum(part.shape[0] for part in parts)
  if num_rows == size:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
  rows = np.zeros((size, *parts[0].shape[1:]), parts[0].dtype)
  np.concatenate(parts, out=rows[:num_rows])
  return rows


class _ActedRows(NamedTuple):
  """The rows of a batch and what came of them, `[N, ...]` each."""

  is_evaluation: np.ndarray
  inputs: types.AgentInput
  score: np.ndarray
  outputs: types.AgentOutput
  entering_state: types.Nest


class InferenceServer:
  """Resets, acts, remembers and hands on finished unrolls. Knows no algorithm and no RPC.

  `step` is called from one thread: the inference thread of a distributed program, or the
  loop of the single-process program.
  """

  def __init__(
    self,
    *,
    spec: types.EnvironmentSpec,
    policy: policy_lib.Policy,
    num_training: int,
    num_environments: int,
    unroll_length: int,
    overlap: int,
    batch_size: int,
    seed: int,
    sink: core.UnrollSink,
    counters: counting.Counters,
    quota: step_quota.StepQuota | None,
  ):
    """quota: None = environments never wait for the learner, see `holds`."""
    self._quota = quota
    self._policy = policy
    self._num_training = num_training
    self._num_environments = num_environments
    self._batch_size = batch_size
    self._sink = sink
    self._counters = counters
    self._frames_per_step = spec.frames_per_step
    self._overlap = overlap
    self._place = np.minimum(np.arange(num_environments) / max(1, num_training - 1), 1).astype(
      np.float32
    )
    initial_state = policy.initial_state()
    self._slots = slots_lib.EnvironmentSlots(num_environments, spec.action, initial_state, seed)
    example_row = policy.example_row()
    self._example_outputs = example_row[1]
    self._unrolls = unrolls_lib.UnrollAssembler(
      num_training,
      unroll_length,
      overlap,
      example_row,
      tree.map_structure(lambda x: x[0], initial_state),
    )
    self._unrecorded: tuple[np.ndarray, _ActedRows, int] | None = None
    self.training_episodes = episodes.EpisodeStatistics(num_environments)
    self.evaluation_episodes = episodes.EpisodeStatistics(num_environments)
    self.timer = timing.PhaseTimer()
    self.batch_sizes = timing.Latencies()
    self.latencies_s = timing.Latencies()

  def step(self, requests: Sequence[types.ActorRequest]) -> list[batching.Reply]:
    """`answer` and `record` in one."""
    replies = self.answer(requests)
    self.record()
    return replies

  def answer(self, requests: Sequence[types.ActorRequest]) -> list[batching.Reply]:
    """A reply for each request, in order: actions `[E, ...]`, or a `Refusal`.

    `record` must follow before the next call; actors step their environments meanwhile.
    """
    replies: list[batching.Reply] = list(
      batching.refuse_repeated_environments(list(requests), self._num_environments)
    )
    fresh: list[int] = []
    for i, request in enumerate(requests):
      if replies[i] is None:
        replies[i] = self._answer_without_acting(request)
        if replies[i] is None:
          fresh.append(i)
    if fresh:
      actions = self._act([requests[i] for i in fresh])
      start = 0
      for i in fresh:
        stop = start + requests[i].env_ids.size
        replies[i] = nests.map_arrays(lambda a: a[start:stop], actions)  # noqa: B023
        start = stop
    return replies

  def holds(self, request: types.ActorRequest) -> bool:
    """Strictly on-policy steps: whether the request has to wait for the next weights.

    Its row finishes the last unroll that the update under way takes from these
    environments. The unroll is handed on with it at once, with zeros for what is computed
    from the row, which no loss reads in a last row. The row is acted on when the new weights
    are there, as the first of the next unroll. Call it again until then.
    """
    env_ids = request.env_ids
    if self._quota is None or not env_ids.size:
      return False
    if batching.refuse_repeated_environments([request], self._num_training)[0] is not None:
      return False  # evaluation, or environments that `answer` refuses
    is_new_run = self._slots.is_new_run(env_ids, request.run_ids).any()
    stored = self._slots.request_numbers[env_ids]
    if not is_new_run and (stored != request.request_number - 1).any():
      return False  # repeated or wrong: answered without acting
    self._quota.renew(self._policy.newest_version())
    if self._quota.is_used_up(env_ids):
      return True
    is_end = (
      not is_new_run
      and self._quota.is_last(env_ids)
      and bool(self._unrolls.is_last_row(env_ids).all())
    )
    if is_end:
      rows = _Rows([request], env_ids.size)
      inputs, state, _ = self._policy_inputs(rows)
      outputs = nests.map_arrays(
        lambda x: np.zeros((env_ids.size, *np.shape(x)), x.dtype), self._example_outputs
      )
      self._append(env_ids, inputs, outputs, state, self._policy.version)
      self._unrolls.rewind(env_ids)
    return is_end

  def _answer_without_acting(self, request: types.ActorRequest) -> batching.Reply | None:
    """The stored action for a repeated number, a refusal for a wrong one, else None."""
    env_ids = request.env_ids
    is_new = self._slots.is_new_run(env_ids, request.run_ids)
    if is_new.any():
      if (request.timestep.step_type[is_new] != types.FIRST).any():
        return batching.Refusal(
          'the first row of a run is not FIRST: reset the environments whenever run_ids change'
        )
    stored = self._slots.request_numbers[env_ids[~is_new]]
    number = request.request_number
    if not is_new.any() and (stored == number).all():
      return tree.map_structure(lambda a: a[env_ids], self._slots.action)
    if (stored != number - 1).any():
      return batching.Refusal(f'request {number} does not follow request {stored.max()}')
    return None

  def record(self) -> None:
    """Adds the answered rows to episodes and unrolls, and hands on finished unrolls."""
    if self._unrecorded is not None:
      env_ids, acted, version = self._unrecorded
      self._unrecorded = None
      with self.timer.phase('unrolls'):
        self._record(env_ids, acted, version)

  def _act(self, requests: list[types.ActorRequest]) -> types.Nest:
    """Actions of all rows, `[N, ...]`."""
    num_rows = sum(r.env_ids.size for r in requests)
    with self.timer.phase('prepare'):
      rows = _Rows(requests, batching.padded_size(num_rows, self._batch_size))
      self._reset_new_runs(rows)
      inputs, state, exploration = self._policy_inputs(rows)
    with self.timer.phase('inference'):
      self._policy.refresh()
      version = self._policy.version
      outputs, new_state = self._policy(inputs, state, exploration)
    with self.timer.phase('prepare'):
      acted = _ActedRows(exploration.is_evaluation, inputs, rows.timestep.score, outputs, state)
      if acted.is_evaluation.size > num_rows:  # drops the padding
        acted, new_state = nests.map_arrays(lambda x: x[:num_rows], (acted, new_state))
      self._slots.write(rows.env_ids, rows.request_numbers, acted.outputs.action, new_state)
    self._unrecorded = (rows.env_ids, acted, version)
    self.batch_sizes.add(num_rows)
    return acted.outputs.action

  def _reset_new_runs(self, rows: _Rows) -> None:
    is_new = self._slots.is_new_run(rows.env_ids, rows.run_ids)
    if is_new.any():
      env_ids = rows.env_ids[is_new]
      self._slots.reset(env_ids, rows.run_ids[is_new])
      self._unrolls.reset(env_ids[env_ids < self._num_training])
      self.training_episodes.reset(env_ids)
      self.evaluation_episodes.reset(env_ids)

  def _policy_inputs(self, rows: _Rows) -> tuple[types.AgentInput, types.Nest, types.Exploration]:
    timestep, n = rows.timestep, rows.num_rows
    size = timestep.step_type.shape[0]
    ids = rows.env_ids
    if size > n:  # padding reads the first row's slot and writes none
      ids = np.concatenate([ids, np.full(size - n, ids[0])])
    is_first = timestep.step_type == types.FIRST

    def zero_at_first(x: np.ndarray) -> np.ndarray:
      x[is_first] = 0
      return x

    inputs = types.AgentInput(
      step_type=timestep.step_type,
      reward=np.where(is_first, np.float32(0), timestep.reward),
      discount=timestep.discount,
      # The action sampled at LAST must not leak into the next episode.
      previous_action=nests.map_arrays(lambda a: zero_at_first(a[ids]), self._slots.action),
      observation=timestep.observation,
    )
    state = nests.map_arrays(lambda s: s[ids], self._slots.state)
    exploration = types.Exploration(
      uniforms=noise.uniforms(
        self._slots.noise_keys[ids], self._slots.row_numbers[ids], self._policy.num_uniforms
      ),
      place=self._place[ids],
      is_evaluation=ids >= self._num_training,
    )
    return inputs, state, exploration

  def _record(self, env_ids: np.ndarray, acted: _ActedRows, version: int) -> None:
    """Rows to their episodes and unrolls; evaluation rows count apart and never reach replay."""
    if not acted.is_evaluation.any():
      self._record_training(env_ids, acted, version)
      return
    is_training = ~acted.is_evaluation
    evaluated = nests.map_arrays(lambda x: x[acted.is_evaluation], acted)
    _add_episodes(self.evaluation_episodes, env_ids[acted.is_evaluation], evaluated)
    if is_training.any():
      trained = nests.map_arrays(lambda x: x[is_training], acted)
      self._record_training(env_ids[is_training], trained, version)

  def _record_training(self, env_ids: np.ndarray, acted: _ActedRows, version: int) -> None:
    num_ended = _add_episodes(self.training_episodes, env_ids, acted)
    if num_ended:
      self._counters.add(episodes=num_ended)
    self._append(env_ids, acted.inputs, acted.outputs, acted.entering_state, version)

  def _append(
    self,
    env_ids: np.ndarray,
    inputs: types.AgentInput,
    outputs: types.AgentOutput,
    entering_state: types.Nest,
    version: int,
  ) -> None:
    """Rows to the unrolls of training environments; hands on those that are finished by them."""
    if self._quota is not None:
      self._quota.add(env_ids[self._unrolls.is_last_row(env_ids)])
    finished = self._unrolls.append(env_ids, inputs, outputs, entering_state, version)
    if finished is not None:
      num_steps = unrolls_lib.num_steps(finished, self._overlap)
      self._counters.add(agent_steps=num_steps, frames=num_steps * self._frames_per_step)
      self._sink.put(finished)


def _add_episodes(
  statistics: episodes.EpisodeStatistics, env_ids: np.ndarray, acted: _ActedRows
) -> int:
  """Returns how many episodes ended. What an environment reports at FIRST is nobody's score."""
  step_type = acted.inputs.step_type
  score = np.where(step_type == types.FIRST, np.float32(0), acted.score)
  return statistics.add(env_ids, step_type, acted.inputs.reward, score)


class InferenceThread:
  """Answers and records the batches of a batcher until `stop`."""

  def __init__(
    self,
    server: InferenceServer,
    batcher: batching.Batcher,
    on_failure: Callable[[BaseException], None],
  ):
    """on_failure: called once, from this thread, with whatever ended it early."""
    self._server = server
    self._batcher = batcher
    self._on_failure = on_failure
    self._stop = threading.Event()
    self._thread = threading.Thread(target=self._run, name='inference', daemon=True)

  def start(self) -> None:
    self._thread.start()

  def stop(self) -> None:
    """Refuses what waits, and ends the thread."""
    self._stop.set()
    self._batcher.close()
    self._thread.join()

  def _serve(self, batch: list[batching.PendingRequest]) -> None:
    replies = self._server.answer([pending.request for pending in batch])
    with self._server.timer.phase('reply'):
      for pending, reply in zip(batch, replies):
        pending.answer(reply)
        self._server.latencies_s.add(pending.age_s())
    self._server.record()  # while the actors step their environments

  def _run(self) -> None:
    with graph_function.in_calling_thread():
      self._serve_until_stopped()

  def _serve_until_stopped(self) -> None:
    batch: list[batching.PendingRequest] = []
    try:
      while not self._stop.is_set():
        with self._server.timer.phase('wait'):
          batch = self._batcher.next_batch(wait_s=0.5)
        if batch:
          self._serve(batch)
    except BaseException as error:  # handed to the owner, who ends the node
      self._on_failure(error)
    finally:
      self._batcher.close()
      for pending in batch:  # taken from the batcher, but not answered if `step` raised
        pending.answer(batching.STOPPED)
