"""Unrolls go to their environment's shard, and a full shard holds back no other."""

import numpy as np
import pytest
import reverb

from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib
from seed_acme.replay.shards import writers as writers_lib

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(name='make')
def _make(serve):
  """`make(number, queue_size, **arguments)`: writers, and their servers."""
  made = []

  def make(number, queue_size, **arguments):
    servers = [serve(queue_size, 1) for _ in range(number)]
    each = [writer_lib.ReplayWriter(server.address, 1, **arguments) for server in servers]
    made.append(writers_lib.Writers(each, lambda env_ids: env_ids // 10))
    return made[-1], servers

  yield make
  for one in made:
    one.stop()


def _drawn(server, number):
  samples = reverb.Client(server.address).sample(tables.UNROLLS, number, emit_timesteps=False)
  return [int(np.asarray(sample.data[-1]).ravel()[0]) // 100 for sample in samples]


def test_each_unroll_goes_to_the_shard_of_its_environment_in_order(make, coded_unrolls):
  writers, servers = make(3, 64, backlog=100)
  writers.put(np.array([20, 3, 21, 5]), coded_unrolls(0, 4))
  writers.put(np.array([29, 22]), coded_unrolls(4, 2))
  for writer in writers.each:
    while writer.has_item():
      writer.write_item()
  assert [writer.num_confirmed for writer in writers.each] == [2, 0, 4]
  assert _drawn(servers[0], 2) == [1, 3]
  assert _drawn(servers[2], 4) == [0, 2, 4, 5]
  assert writers.seconds()['insert'] > 0


def test_one_shard_takes_all_without_asking_whose_they_are(make, coded_unrolls):
  writers, [server] = make(1, 64, backlog=100)
  writers.put(np.array([20, 3]), coded_unrolls(0, 2))
  while writers.each[0].has_item():
    writers.each[0].write_item()
  assert _drawn(server, 2) == [0, 1]


def test_a_full_shard_holds_back_its_own_environments_alone(make, coded_unrolls):
  writers, servers = make(2, 2, backlog=3)
  failures = []
  writers.start(on_room=lambda: None, on_failure=failures.append)
  for _ in range(8):
    writers.put(np.array([0]), coded_unrolls(0, 1))
  while writers.each[0].num_confirmed < 2:
    assert not failures
  assert not writers.has_room_for(np.array([0, 1]))
  assert writers.has_room_for(np.array([10, 11]))
  assert not writers.has_room_for(np.array([0, 10]))
  assert writers.has_room()
  writers.put(np.array([10]), coded_unrolls(8, 1))
  assert _drawn(servers[1], 1) == [8]  # its writer does not wait for the other one
  for _ in range(8):
    writers.put(np.array([10]), coded_unrolls(9, 1))
  assert not writers.has_room()
