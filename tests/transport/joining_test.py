"""How actors join a run through its server."""

from __future__ import annotations

from collections.abc import Iterator
import json
import time

import numpy as np
import pytest

from seed_acme import core
from seed_acme import version
from seed_acme.transport import grpc_client
from seed_acme.transport import joining
from seed_acme.transport import wire
from tests.transport import cutting_proxy
from tests.transport import serving

pytestmark = pytest.mark.timeout(120)


class TestJoin:
  """Nodes that are started separately."""

  @pytest.fixture
  def rig(self) -> Iterator[serving.Rig]:
    one = serving.Rig('grpc').start()
    yield one
    one.stop()

  def member(
    self,
    rig: serving.Rig,
    node: str = 'actor/0',
    token: str = 'secret',
    timeout_s: float = serving.GUARD_S,
    **settings: str,
  ) -> grpc_client.GrpcMember:
    return grpc_client.GrpcMember(
      f'127.0.0.1:{rig.port}', token, joining.hello(node, settings), timeout_s
    )

  def test_starts_are_counted_by_node_and_resumption(self, rig):
    starts = [self.member(rig, f'actor/{number}', seed='1').join() for number in (0, 1, 0, 0)]
    numbers = [start.number for start in starts]
    assert numbers == [2_000_000, 2_000_000, 2_001_000, 2_002_000]

  def test_no_worker_of_a_node_has_the_number_of_a_later_start(self, rig):
    """Otherwise environments would get seeds that they have had already."""
    first = self.member(rig, seed='1').join()
    of_workers = [first, first.following(), first.following().following()]
    again = self.member(rig, seed='1').join()
    assert again.number not in [start.number for start in of_workers]

  def test_a_later_start_is_greater_even_if_another_learner_gave_it(self, rig):
    first = self.member(rig, seed='1').join()
    again = self.member(rig, seed='1').join()
    rig.stop_transport()
    rig.members = joining.Members({'actor': {'seed': '1'}}, 0)  # nothing was saved
    rig.start()
    assert first < first.following() < again < self.member(rig, seed='1').join()

  def test_a_later_start_is_greater_although_the_first_learner_s_clock_was_ahead(self, rig):
    """An actor outlives that learner, connects, and dies; another is started in its place."""
    ahead = wire.Start(joined=int(1e3 * time.time()) + 300_000, number=2)
    rig.connect(0, start=ahead).close()
    in_its_place, beside_it = (self.member(rig, seed='1').join() for _ in range(2))
    assert ahead < in_its_place < beside_it
    channel = rig.connect(0, start=in_its_place)
    first = serving.request(np.array([0], np.int32), 0)
    assert serving.ask(channel, first).tolist() == serving.own_number(first).tolist()

  @pytest.mark.parametrize('joined', [1 << 62, (1 << 63) - 1])
  def test_no_actor_can_use_up_the_dates_of_later_starts(self, rig, joined):
    with pytest.raises(core.Refused, match=f'joined at {joined} ms, .*set that clock'):
      rig.connect(0, start=wire.Start(joined=joined))
    later = self.member(rig, seed='1').join()
    assert later.joined < joined
    rig.connect(0, start=later)

  @pytest.mark.parametrize(
    'change, words',
    [
      ({'token': 'wrong'}, 'token'),
      ({'seed': '2'}, "seed is 2, the learner's 1"),
      ({'seed': '1', 'more': 'x'}, "more is x, the learner's absent"),
      ({}, "seed is absent, the learner's 1"),
      ({'node': 'driver/0'}, 'no node driver/0'),
    ],
  )
  def test_a_node_that_does_not_fit_is_refused(self, rig, change, words):
    with pytest.raises(core.Refused, match=words):
      self.member(rig, **change).join()

  @pytest.mark.parametrize(
    'change',
    [
      {'settings': [[1, 'a'], ['b', 2]]},
      {'settings': 'seed'},
      {'node': ['actor/0']},
      {'node': None},
    ],
  )
  def test_a_greeting_of_another_form_is_refused(self, change):
    said = {**json.loads(joining.hello('actor/0', {'seed': '1'})), **change}
    members = joining.Members({'actor': {'seed': '1'}}, 0)
    with pytest.raises(ValueError, match='no greeting of a node'):
      members.join(json.dumps(said).encode())

  def test_another_version_is_refused_in_one_line(self, rig, monkeypatch):
    with monkeypatch.context() as patched:
      patched.setattr(version, '__version__', '9.9')
      member = self.member(rig, seed='1')
    with pytest.raises(
      core.Refused, match=f'actor/0 has version 9.9 of seed_acme, the learner {version.__version__}'
    ):
      member.join()

  def test_a_learner_that_does_not_come_is_an_error(self, rig):
    rig.stop_transport()
    with pytest.raises(core.ServerLost, match='connect_timeout_s.*refused'):
      self.member(rig, timeout_s=serving.ABSENT_S, seed='1').join()

  def test_who_stays_hears_of_the_end_even_after_a_broken_connection(self, rig):
    proxy = cutting_proxy.CuttingProxy(rig.port)
    staying = grpc_client.GrpcMember(
      f'127.0.0.1:{proxy.port}', 'secret', joining.hello('replay/0', {}), serving.GUARD_S
    )
    staying.join()
    waiting = rig.background(staying.wait_for_end)
    serving.eventually(lambda: rig.members.num_asked == 1)
    proxy.cut()
    serving.eventually(lambda: proxy.num_connections == rig.members.num_asked == 2)
    assert not waiting.done()
    rig.members.end_run(serving.GUARD_S)
    waiting.result(serving.GUARD_S)
    proxy.close()

  def test_the_end_does_not_wait_for_ever_for_who_does_not_listen(self, rig):
    members = rig.members
    staying = rig.background(members.wait_for_end().wait_until_over)
    serving.eventually(lambda: members._num_staying == 1)
    members._num_staying += 1  # one more node, which never answers
    members.end_run(serving.ABSENT_S)
    assert staying.result(serving.GUARD_S) and members._num_staying == 1
