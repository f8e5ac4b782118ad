"""The server's thread, and weights that are published while it runs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import thread as thread_lib
from tests.inference import blocking_request
from tests.inference import rigs

pytestmark = pytest.mark.timeout(120)


def test_weights_are_swapped_between_batches_with_their_version(new_acting):
  acting = new_acting('none')
  rig = rigs.Rig(acting)
  values = [v.numpy() for v in acting.network.variables]

  def publish(version: int) -> None:
    acting.published.publish(
      types.Variables(
        version, tuple(tf.constant(values[i] * version) for i in acting.policy.variables_read)
      )
    )

  publish(1)
  for number in range(7):
    if number in (2, 3, 6):
      publish(number + 10)
    rig.step(rigs.request([0, 1], number, rigs.F if number == 0 else rigs.M))
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
  rig = rigs.Rig(acting)
  compute = policy_lib.Policy.__call__
  values = tuple(tf.zeros_like(acting.network.variables[i]) for i in acting.policy.variables_read)

  def publish_and_compute(policy: policy_lib.Policy, *arguments: Any) -> Any:
    acting.published.publish(types.Variables(8, values))
    return compute(policy, *arguments)

  monkeypatch.setattr(policy_lib.Policy, '__call__', publish_and_compute)
  for number in range(4):
    rig.step(rigs.request([0], number, rigs.F if number == 0 else rigs.M))
  [unrolls] = rig.sink.unrolls
  assert unrolls.policy_version.tolist() == [[0, 3, 8, 8, 8]]
  assert unrolls.outputs.prediction.value[0, 1] != 0
  assert (unrolls.outputs.prediction.value[0, 2:] == 0).all()


class BrokenServer:
  """A server that answers the first batch and fails in the second."""

  def __init__(self, server: server_lib.InferenceServer):
    self._server = server
    self._num_batches = 0
    self.timer, self.statistics = server.timer, server.statistics

  def answer(self, requests: list[types.ActorRequest]) -> server_lib.Answered:
    self._num_batches += 1
    if self._num_batches == 2:
      raise RuntimeError('broken on purpose')
    return self._server.answer(requests)

  def record(self, answered: server_lib.Answered) -> None:
    self._server.record(answered)


def test_the_thread_answers_and_stops(acting):
  rig = rigs.Rig(acting('none'))
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda _: False)
  batcher.add_caller()
  failures: list[BaseException] = []
  thread = thread_lib.InferenceThread(rig.server, batcher, failures.append)
  thread.start()
  for number in range(5):
    one = blocking_request.BlockingRequest(
      rigs.request([0], number, rigs.F if number == 0 else rigs.M), True
    )
    batcher.submit(one)
    assert one.wait().shape == (1,)
  thread.stop()
  thread.join()
  late = blocking_request.BlockingRequest(rigs.request([0], 5), True)
  batcher.submit(late)
  assert isinstance(late.wait(), batching.Stopped)
  assert failures == [] and rig.server.statistics.latencies_s.summary()['count'] == 5


def test_a_failure_reaches_the_owner_and_nobody_is_left_waiting(acting):
  rig = rigs.Rig(acting('none'))
  batcher = batching.Batcher(2, 0.0, lambda: True, lambda _: False)
  failures: list[BaseException] = []
  thread = thread_lib.InferenceThread(BrokenServer(rig.server), batcher, failures.append)
  for _ in range(3):
    batcher.add_caller()
  waiting = [blocking_request.BlockingRequest(rigs.request([i], 0, rigs.F), True) for i in range(6)]
  for one in waiting:
    batcher.submit(one)
  thread.start()
  assert [one.wait().__class__ for one in waiting[:2]] == [np.ndarray] * 2
  # In the batch that failed, and in the queue behind it.
  assert [one.wait() for one in waiting[2:]] == [batching.STOPPED] * 4
  thread.stop()
  thread.join()
  assert [str(error) for error in failures] == ['broken on purpose']


@pytest.mark.parametrize('what', ['a stop', 'a failure'])
def test_a_request_gets_one_reply_whatever_comes_after_it(acting, monkeypatch, what):
  rig = rigs.Rig(acting('none'))
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda _: False)
  batcher.add_caller()
  failures: list[BaseException] = []
  thread = thread_lib.InferenceThread(rig.server, batcher, failures.append)
  over = threading.Event()

  def record(answered):
    over.set()
    if what == 'a failure':
      raise RuntimeError('while recording')
    threading.Thread(target=thread.stop).start()
    late = blocking_request.BlockingRequest(rigs.request([0], 1), True)
    batcher.submit(late)
    assert late.wait() is batching.STOPPED

  monkeypatch.setattr(rig.server, 'record', record)
  one = blocking_request.BlockingRequest(rigs.request([0], 0, rigs.F), True)
  batcher.submit(one)
  thread.start()
  assert over.wait(60)
  thread.stop()
  thread.join()
  assert [reply.__class__ for reply in one.replies()] == [np.ndarray]


def test_rows_are_recorded_after_they_are_answered(acting):
  rig = rigs.Rig(acting('none'))
  answered = rig.server.answer([rigs.request([0], 0, rigs.F)])
  before = rig.server.statistics.training_episodes.summary()
  rig.server.record(answered)
  rig.server.step([rigs.request([0], 1, rigs.L)])
  assert before.num_episodes == 0
  assert rig.server.statistics.training_episodes.summary().num_episodes == 1


def test_after_the_end_messages_go_on_until_the_thread_is_joined(acting):
  rig = rigs.Rig(acting('lstm'))
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda _: False)
  thread = thread_lib.InferenceThread(rig.server, batcher, pytest.fail)
  thread.start()
  thread.stop()
  called = threading.Event()
  batcher.loop.call(called.set)
  assert called.wait(30)
  thread.join()


@pytest.mark.timeout(60)
def test_a_thread_that_was_not_stopped_can_be_joined(acting):
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda _: False)
  thread = thread_lib.InferenceThread(rigs.Rig(acting('lstm')).server, batcher, pytest.fail)
  thread.start()
  thread.join()
  batcher.wake()  # the replay writer may still report room
