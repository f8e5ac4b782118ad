"""InferenceServer: runs, repeats, refusals, evaluation, versions, statistics, threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import counting
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import step_quota

pytestmark = pytest.mark.timeout(120)

F, M, L = types.FIRST, types.MID, types.LAST
NUM_TRAINING, NUM_ENVIRONMENTS = 6, 8


class Sink:
  """Keeps what it is given."""

  def __init__(self) -> None:
    self.unrolls: list[types.Unroll] = []

  def has_room(self) -> bool:
    return True

  def put(self, unrolls: types.Unroll) -> None:
    self.unrolls.append(unrolls)


class Rig:
  """A server with its sink and counters. Requests are made by hand."""

  def __init__(
    self,
    acting: Any,
    batch_size: int = 8,
    seed: int = 1,
    unroll_length: int = 3,
    quota: step_quota.StepQuota | None = None,
  ):
    self.acting = acting
    self.sink = Sink()
    self.counters = counting.Counters()
    self.server = server_lib.InferenceServer(
      spec=acting.spec,
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
    )

  def step(self, *requests: types.ActorRequest) -> list[batching.Reply]:
    return self.server.step(requests)

  def state(self) -> types.Nest:
    slots = self.server._slots
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


@pytest.fixture(params=['none', 'lstm'])
def rig(request, acting):
  return Rig(acting(request.param))


def test_a_new_run_resets_that_environment_alone(rig, acting):
  """Bit for bit: the others do as if it had not happened, it does as a fresh server would."""
  other = Rig(rig.acting)
  for r in (rig, other):
    r.step(request([0, 1, 2, 3], 0, F))
    r.step(request([0, 1, 2, 3], 1))
  one, two = request([0, 1, 2, 3], 2), request([0, 1, 2, 3], 2, [M, M, F, M], [1, 1, 9, 1])
  first, second = rig.step(one)[0], other.step(two)[0]
  assert_same(first, second, [0, 1, 3])
  assert_same(rig.state(), other.state(), [0, 1, 3, 4, 5, 6, 7])
  fresh = Rig(rig.acting)
  fresh.step(request([0, 1, 2, 3], 2, F, [1, 1, 9, 1]))
  assert_same(fresh.state(), other.state(), [2])
  for number in (3, 4):
    rig.step(request([0, 1, 2, 3], number))
    other.step(request([0, 1, 2, 3], number, run_ids=[1, 1, 9, 1]))
  # Three transitions of 0, 1 and 3 are one unroll; environment 2 began again at row 2.
  [unrolls] = rig.sink.unrolls
  [of_the_others] = other.sink.unrolls
  tree.map_structure(
    lambda a, b: np.testing.assert_array_equal(a[[0, 1, 3]], b), unrolls, of_the_others
  )
  other.step(request([2], 5, run_ids=9))
  assert other.sink.unrolls[1].inputs.step_type.tolist() == [[L, F, M, M, M]]


def test_a_reset_drops_its_open_episode(rig):
  rig.step(request([0, 1], 0, F))
  rig.step(request([0, 1], 1, M, reward=5))
  rig.step(request([0, 1], 2, [F, M], [2, 1], reward=5))
  rig.step(request([0, 1], 3, L, [2, 1], reward=1, score=3))
  summary = rig.server.training_episodes.take_recent()
  assert summary == (2, (3 + 7) / 2, (1 + 11) / 2, (1 + 3) / 2)


def test_a_repeated_number_gets_the_stored_actions_and_nothing_is_stepped(rig):
  rig.step(request([0, 1], 0, F))
  [actions] = rig.step(request([0, 1], 1))
  before, counts = rig.state(), rig.counters.snapshot()
  length = rig.server._unrolls._row_number.copy()
  repeated, fresh = rig.step(request([0, 1], 1), request([2], 0, F))
  np.testing.assert_array_equal(repeated, actions)
  assert fresh.shape == (1,)
  assert_same(before, rig.state(), [0, 1])
  assert rig.server._unrolls._row_number[[0, 1]].tolist() == length[[0, 1]].tolist()
  assert rig.counters.snapshot()[:5] == counts[:5]


def test_the_first_request_of_a_run_may_be_repeated_too(rig):
  [actions] = rig.step(request([0, 1], 0, F))
  before = rig.state()
  np.testing.assert_array_equal(rig.step(request([0, 1], 0, F))[0], actions)
  assert_same(before, rig.state(), range(NUM_ENVIRONMENTS))


@pytest.mark.parametrize('number', [-1, 0, 1, 4, 2**62, -(2**63)])
def test_a_wrong_number_is_refused_and_nothing_is_kept(rig, number):
  for n, step_type in ((0, F), (1, M), (2, M)):
    rig.step(request([0, 1], n, step_type))
  before = rig.state()
  refusal, other = rig.step(request([0, 1], number), request([3], 0, F))
  assert isinstance(refusal, batching.Refusal)
  assert f'request {number} does not follow request 2' in refusal.reason
  assert other.shape == (1,)
  assert_same(before, rig.state(), [0, 1, 2, 4, 5, 6, 7])
  assert rig.step(request([0, 1], 3))[0].shape == (2,)


def test_a_new_run_beside_it_does_not_excuse_a_wrong_number(rig):
  rig.step(request([0, 1], 0, F))
  rig.step(request([0, 1], 1))
  before = rig.state()
  for number in (1, 5):
    [refusal] = rig.step(request([0, 1], number, [M, F], [1, 7]))
    assert isinstance(refusal, batching.Refusal) and 'does not follow' in refusal.reason
  assert_same(before, rig.state(), range(NUM_ENVIRONMENTS))
  assert rig.step(request([0, 1], 2, [M, F], [1, 7]))[0].shape == (2,)


@pytest.mark.parametrize('step_type', [M, L])
def test_a_run_that_does_not_begin_with_first_is_refused(rig, step_type):
  rig.step(request([0, 1], 0, F))
  before = rig.state()
  for one in (request([2, 3], 0, [F, step_type]), request([0, 1], 1, [M, step_type], [1, 2])):
    [refusal] = rig.step(one)
    assert isinstance(refusal, batching.Refusal) and 'not FIRST' in refusal.reason
  assert_same(before, rig.state(), range(NUM_ENVIRONMENTS))


def test_refusals_within_a_batch_reach_their_callers_alone(rig):
  rig.step(request([0], 0, F))
  replies = rig.step(
    request([1, 2], 0, F),
    request([8], 0, F),
    request([2, 3], 0, F),
    request([0], 7),
    request([-1], 0, F),
    request([4], 0, F),
    request([0], 1),
  )
  refused = [isinstance(reply, batching.Refusal) for reply in replies]
  assert refused == [False, True, True, True, True, False, True]
  assert [len(r) for r in replies if not isinstance(r, batching.Refusal)] == [2, 1]
  assert rig.server._slots.is_known.nonzero()[0].tolist() == [0, 1, 2, 4]
  assert rig.step(request([0], 1))[0].shape == (1,)


def test_previous_action_and_reward_are_zero_at_first(rig):
  steps = [F, M, L, F, M, M, M]
  for number, step_type in enumerate(steps):
    rig.step(request([0, 1, 2, 3], number, step_type, reward=7.0))
  inputs = tree.map_structure(
    lambda *x: np.concatenate([x[0], x[1][:, 2:]], axis=1), *[u.inputs for u in rig.sink.unrolls]
  )
  outputs = np.concatenate(
    [rig.sink.unrolls[0].outputs.action, rig.sink.unrolls[1].outputs.action[:, 2:]], axis=1
  )
  assert inputs.step_type[0].tolist() == [L, *steps]
  is_first = inputs.step_type == F
  assert outputs.any() and (inputs.previous_action[is_first] == 0).all()
  assert (inputs.reward[is_first] == 0).all()
  after = ~is_first[:, 2:]
  np.testing.assert_array_equal(inputs.previous_action[:, 2:][after], outputs[:, 1:-1][after])
  assert (inputs.reward[:, 2:][after] == 7).all()


def test_padding_and_order_change_no_row(acting):
  """One batch of eight, eight batches of one, other orders: the same actions and states."""
  lstm = acting('lstm')
  together, alone, shuffled = Rig(lstm), Rig(lstm), Rig(lstm, batch_size=100)
  random = np.random.default_rng(0)
  env_ids = list(range(NUM_ENVIRONMENTS))
  for number in range(12):
    step_type = F if number == 0 else M
    [actions] = together.step(request(env_ids, number, step_type))
    one_by_one = [alone.step(request([i], number, step_type))[0][0] for i in env_ids]
    order = random.permutation(env_ids)
    parts = np.split(order, [3, 4])
    replies = shuffled.step(*[request(part.tolist(), number, step_type) for part in parts])
    assert actions.tolist() == one_by_one
    np.testing.assert_array_equal(np.concatenate(replies), actions[order])
  for other in (alone, shuffled):
    tree.map_structure(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6),
      together.state(),
      other.state(),
    )


def test_padding_touches_no_slot(rig):
  rig.step(request([0, 1, 2, 3, 4, 5, 6, 7], 0, F))
  before = rig.state()
  rig.step(request([5, 2, 7], 1))  # padded to 8
  assert_same(before, rig.state(), [0, 1, 3, 4, 6])
  assert rig.server._slots.row_numbers.tolist() == [1, 1, 2, 1, 1, 2, 1, 2]
  assert rig.server._unrolls._row_number.tolist() == [1, 1, 2, 1, 1, 2]
  assert rig.server.batch_sizes.summary()['max'] == 8


def test_the_same_seed_acts_the_same_and_another_does_not(acting):
  def play(seed: int) -> list[list[int]]:
    rig = Rig(acting('none'), seed=seed)
    return [rig.step(request(range(6), n, F if n == 0 else M))[0].tolist() for n in range(10)]

  assert play(1) == play(1)
  assert play(1) != play(2)


def test_evaluation_is_greedy_and_reaches_neither_sink_nor_counters(rig):
  env_ids = [5, 6, 7]
  greedy, sampled = [], []
  for number in range(30):
    # The same observation for all three, so that only the choice differs.
    one = request(env_ids, number, F if number == 0 else L if number == 29 else M)
    one.timestep.observation[:] = observation([99], number)
    state = tree.map_structure(np.copy, rig.server._slots.state)
    previous = rig.server._slots.action[env_ids]
    if number == 0:
      state = tree.map_structure(lambda s: np.zeros((8, *s.shape[1:]), s.dtype), state)
    [actions] = rig.step(one)
    inputs = types.AgentInput(
      one.timestep.step_type,
      np.where(one.timestep.step_type == F, 0, one.timestep.reward).astype(np.float32),
      one.timestep.discount,
      previous,
      one.timestep.observation,
    )
    prediction, _ = rig.acting.network(inputs, tree.map_structure(lambda s: s[env_ids], state))
    best = prediction.policy_params.numpy().argmax(axis=1)
    assert actions[1:].tolist() == best[1:].tolist(), number
    greedy.append(best[0])
    sampled.append(actions[0])
  assert greedy != sampled
  assert sum(u.policy_version.shape[0] for u in rig.sink.unrolls) == 9  # of environment 5 alone
  assert rig.counters.snapshot()[:5] == (27, 27 * 4, 0, 1, 0)
  assert rig.server.training_episodes.summary().num_episodes == 1
  assert rig.server.evaluation_episodes.summary() == (2, 29 * 2.0, 29 * 0.5, 29)


def test_a_batch_of_evaluation_alone(rig):
  for number in range(8):
    rig.step(request([6, 7], number, F if number == 0 else M))
  assert rig.sink.unrolls == [] and rig.counters.snapshot().agent_steps == 0


def test_statistics_and_steps_agree_with_a_slow_reference(acting):
  rig = Rig(acting('none'), unroll_length=4)
  random = np.random.default_rng(5)
  number, has_ended, rows = 0, np.ones(4, bool), [[] for _ in range(4)]
  for number in range(81):
    step_types = np.where(has_ended, F, np.where(random.random(4) < 0.25, L, M))
    rewards, scores = random.integers(-5, 6, (2, 4)).astype(np.float32)
    one = request(range(4), number, step_types)
    rig.step(one._replace(timestep=one.timestep._replace(reward=rewards, score=scores)))
    for i in range(4):
      rows[i].append((int(step_types[i]), float(rewards[i]), float(scores[i])))
    has_ended = step_types == L
  returns, scores, lengths, steps = [], [], [], 0
  for run in rows:
    for t, (step_type, _, _) in enumerate(run):
      steps += t < 80 and step_type != L
      if step_type == L:
        start = max(s for s in range(t) if run[s][0] == F)
        returns.append(sum(r for _, r, _ in run[start + 1 : t + 1]))
        scores.append(sum(s for _, _, s in run[start + 1 : t + 1]))
        lengths.append(t - start)
  summary = rig.server.training_episodes.take_recent()
  assert summary.num_episodes == len(returns) > 30
  assert summary.return_ == pytest.approx(np.mean(returns))
  assert summary.score == pytest.approx(np.mean(scores))
  assert summary.length == pytest.approx(np.mean(lengths))
  counts = rig.counters.snapshot()
  assert (counts.agent_steps, counts.frames, counts.episodes) == (steps, 4 * steps, len(returns))


def test_weights_are_swapped_between_batches_with_their_version(new_acting):
  acting = new_acting('none')
  rig = Rig(acting)
  values = [v.numpy() for v in acting.network.variables]

  def publish(version: int) -> None:
    acting.published.publish(
      types.Variables(version, tuple(tf.constant(v * version) for v in values))
    )

  publish(1)
  for number in range(7):
    if number in (2, 3, 6):
      publish(number + 10)
    rig.step(request([0, 1], number, F if number == 0 else M))
  versions = [u.policy_version.tolist() for u in rig.sink.unrolls]
  assert versions == [[[0, 1, 1, 12, 13]] * 2, [[12, 13, 13, 13, 16]] * 2]
  for unrolls in rig.sink.unrolls:
    for row in range(1, 5):
      version = int(unrolls.policy_version[0, row])
      for variable, value in zip(acting.network.variables, values):
        variable.assign(value * version)
      inputs = tree.map_structure(lambda x: x[:, row], unrolls.inputs)  # noqa: B023
      prediction, _ = acting.network(inputs, ())
      np.testing.assert_allclose(
        prediction.value, unrolls.outputs.prediction.value[:, row], rtol=1e-5
      )


def test_publishing_within_a_batch_takes_effect_in_the_next(new_acting, monkeypatch):
  acting = new_acting('none')
  rig = Rig(acting)
  compute = policy_lib.Policy.__call__
  values = tuple(tf.zeros_like(v) for v in acting.network.variables)

  def publish_and_compute(policy: policy_lib.Policy, *arguments: Any) -> Any:
    acting.published.publish(types.Variables(8, values))
    return compute(policy, *arguments)

  monkeypatch.setattr(policy_lib.Policy, '__call__', publish_and_compute)
  for number in range(4):
    rig.step(request([0], number, F if number == 0 else M))
  [unrolls] = rig.sink.unrolls
  assert unrolls.policy_version.tolist() == [[0, 3, 8, 8, 8]]
  assert unrolls.outputs.prediction.value[0, 1] != 0
  assert (unrolls.outputs.prediction.value[0, 2:] == 0).all()


class BrokenServer:
  """Answers the first batch and fails in the second."""

  def __init__(self, server: server_lib.InferenceServer):
    self._server = server
    self._num_batches = 0
    self.timer, self.latencies_s = server.timer, server.latencies_s

  def answer(self, requests: list[types.ActorRequest]) -> list[batching.Reply]:
    self._num_batches += 1
    if self._num_batches == 2:
      raise RuntimeError('broken on purpose')
    return self._server.answer(requests)

  def record(self) -> None:
    self._server.record()


def test_the_thread_answers_and_stops(acting):
  rig = Rig(acting('none'))
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda _: False)
  batcher.add_caller()
  failures: list[BaseException] = []
  thread = server_lib.InferenceThread(rig.server, batcher, failures.append)
  thread.start()
  for number in range(5):
    one = batching.PendingRequest(request([0], number, F if number == 0 else M), True)
    batcher.submit(one)
    assert one.wait().shape == (1,)
  thread.stop()
  late = batching.PendingRequest(request([0], 5), True)
  batcher.submit(late)
  assert isinstance(late.wait(), batching.Stopped)
  assert failures == [] and rig.server.latencies_s.summary()['count'] == 5


def test_a_failure_reaches_the_owner_and_nobody_is_left_waiting(acting):
  rig = Rig(acting('none'))
  batcher = batching.Batcher(2, 0.0, lambda: True, lambda _: False)
  failures: list[BaseException] = []
  thread = server_lib.InferenceThread(BrokenServer(rig.server), batcher, failures.append)
  for _ in range(3):
    batcher.add_caller()
  waiting = [batching.PendingRequest(request([i], 0, F), True) for i in range(6)]
  for one in waiting:
    batcher.submit(one)
  thread.start()
  assert [one._reply.get(timeout=30).__class__ for one in waiting[:2]] == [np.ndarray] * 2
  # In the batch that failed, and behind it.
  assert [one._reply.get(timeout=30) for one in waiting[2:]] == [batching.STOPPED] * 4
  thread.stop()
  assert [str(error) for error in failures] == ['broken on purpose']


def test_rows_are_recorded_after_they_are_answered(acting):
  rig = Rig(acting('none'))
  rig.server.answer([request([0], 0, F)])
  before = rig.server.training_episodes.summary()
  rig.server.record()
  rig.server.record()  # a second call has nothing to do
  rig.server.step([request([0], 1, L)])
  assert before.num_episodes == 0
  assert rig.server.training_episodes.summary().num_episodes == 1
