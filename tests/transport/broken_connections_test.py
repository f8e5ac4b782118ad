"""Connections that fall silent or break in the middle of a request."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
import pytest

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.progress import counting
from tests.transport import cutting_proxy
from tests.transport import serving

pytestmark = pytest.mark.timeout(120)


@pytest.mark.slow
@pytest.mark.parametrize('end', ['server', 'client'])
def test_a_connection_that_falls_silent_is_noticed_within_seconds(end):
  with contextlib.ExitStack() as stack:
    rig = serving.Rig('grpc').start()
    stack.callback(rig.stop)
    proxy = cutting_proxy.CuttingProxy(rig.port)
    stack.callback(proxy.close)
    channel = rig.connect(0, port=proxy.port)
    one = serving.request(np.array([0], np.int32), 0)
    serving.ask(channel, one)
    if end == 'client':
      rig.hold()
      channel.send(one)
      receiving = rig.background(channel.receive)
      serving.eventually(lambda: rig.num_waiting() == 1)
    proxy.fall_silent()
    started = time.monotonic()
    if end == 'client':
      serving.eventually(lambda: proxy.num_connections == 2 and rig.num_waiting() == 1)
      rig.release()
      np.testing.assert_array_equal(receiving.result(serving.GUARD_S), serving.own_number(one))
    else:  # the client is busy with its environments
      serving.eventually(lambda: not rig.desk.is_connected().any())
      assert proxy.num_connections == 1
    assert time.monotonic() - started < serving.NOTICED_S


class _Discard:
  def has_room(self) -> bool:
    return True

  def put(self, unrolls: types.Unroll) -> None:
    pass


@pytest.mark.parametrize('cut', ['request waits', 'reply under way'])
def test_a_request_repeated_after_a_broken_stream_steps_once(acting, cut):
  made = acting('lstm')
  server = server_lib.InferenceServer(
    spec=made.spec,
    environment_name='rig',
    policy=made.policy,
    num_training=4,
    num_environments=4,
    unroll_length=5,
    overlap=0,
    batch_size=4,
    seed=1,
    sink=_Discard(),
    counters=counting.Counters(),
    quota=None,
    statistics=server_statistics.ServerStatistics(4),
  )
  lock = threading.Lock()

  def answer(one: types.ActorRequest) -> batching.Reply:
    with lock:
      return server.step([one])[0]

  env_ids = np.array([1, 3], np.int32)
  rows = lambda: server.slots.row_numbers[env_ids].tolist()
  with contextlib.ExitStack() as stack:
    rig = serving.Rig('grpc', answer, spec=made.spec, batch_timeout_s=serving.NEVER_S).start()
    stack.callback(rig.stop)
    proxy = cutting_proxy.CuttingProxy(rig.port)
    stack.callback(proxy.close)
    channel = rig.connect(1, 3, port=proxy.port)
    serving.ask(channel, serving.request(env_ids, 0))
    for number in range(1, 4):
      if cut == 'request waits':
        rig.hold()
      else:
        proxy.lets_replies_pass.clear()
      channel.send(serving.request(env_ids, number, step_type=types.MID))
      receiving = rig.background(channel.receive)
      if cut == 'request waits':
        serving.eventually(lambda: rig.num_waiting() == 1)
      else:
        serving.eventually(lambda: rows() == [number + 1] * 2)  # noqa: B023
      proxy.cut()
      proxy.lets_replies_pass.set()
      rig.release()
      actions = receiving.result(serving.GUARD_S)
      assert rows() == [number + 1] * 2
      np.testing.assert_array_equal(actions, server.slots.action[env_ids])
      assert proxy.num_connections > number
