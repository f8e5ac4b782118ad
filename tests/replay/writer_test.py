"""The writer: grouping, order, waiting and end."""

import threading

import numpy as np
import pytest
import reverb
import tree

from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib

pytestmark = pytest.mark.timeout(60)


def _read(address, num_items):
  """Returns the data of that many items, in the queue's order."""
  client = reverb.Client(address)
  samples = client.sample(tables.UNROLLS, num_samples=num_items, emit_timesteps=False)
  return [sample.data for sample in samples]


def _num_items(address):
  return reverb.Client(address).server_info(timeout=10)[tables.UNROLLS].current_size


def _wait_until(condition):
  """Returns when the condition holds; the test's time-out guards against a hang."""
  pause = threading.Event()
  while not condition():
    pause.wait(0.01)


def _put_in_parts(writer, coded_unrolls, sizes):
  first = 0
  for size in sizes:
    writer.put(coded_unrolls(first, size))
    first += size
  return first


@pytest.mark.parametrize('unrolls_per_item', [1, 4, 16])
@pytest.mark.parametrize('sizes', [[16], [1] * 16, [3, 1, 7, 5], [5, 40, 2, 1]])
def test_items_hold_exactly_their_unrolls_in_the_order_they_came(
  serve, coded_unrolls, unrolls_per_item, sizes
):
  server = serve(queue_size=64, unrolls_per_item=unrolls_per_item)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item, backlog=64)
  number = _put_in_parts(writer, coded_unrolls, sizes)
  num_items = number // unrolls_per_item
  for _ in range(num_items):
    assert writer.has_item()
    writer.write_item()
  assert not writer.has_item()
  assert writer.num_confirmed == num_items * unrolls_per_item
  assert _num_items(server.address) == num_items
  for i, data in enumerate(_read(server.address, num_items)):
    expected = coded_unrolls(i * unrolls_per_item, unrolls_per_item)
    for actual, wanted in zip(data, tree.flatten(expected)):
      assert actual.dtype == wanted.dtype
      np.testing.assert_array_equal(actual, wanted)
  writer.stop()


def test_unrolls_that_fill_no_item_wait_for_more(serve, coded_unrolls):
  server = serve(queue_size=8, unrolls_per_item=4)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=4, backlog=8)
  writer.put(coded_unrolls(0, 3))
  assert not writer.has_item()
  writer.put(coded_unrolls(3, 1))
  assert writer.has_item()
  writer.write_item()
  assert not writer.has_item()
  writer.stop()


def test_room_ends_at_the_backlog_and_comes_back(serve, coded_unrolls):
  server = serve(queue_size=64, unrolls_per_item=4)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=4, backlog=8)
  writer.put(coded_unrolls(0, 7))
  assert writer.has_room()
  writer.put(coded_unrolls(7, 1))
  assert not writer.has_room()
  writer.put(coded_unrolls(8, 30))  # never blocks, since rows that were in flight may still arrive
  assert not writer.has_room()
  for _ in range(7):
    writer.write_item()
  assert not writer.has_room()  # 38 - 28 = 10
  writer.write_item()
  assert writer.has_room()
  writer.stop()


def test_a_backlog_below_one_item_leaves_room_until_the_item_is_whole(serve, coded_unrolls):
  server = serve(queue_size=64, unrolls_per_item=4)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=4, backlog=1)
  writer.put(coded_unrolls(0, 3))
  assert writer.has_room()
  writer.put(coded_unrolls(3, 1))
  assert writer.has_item() and not writer.has_room()
  writer.stop()


def test_the_thread_writes_what_comes_and_says_so(serve, coded_unrolls):
  server = serve(queue_size=64, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=8)
  rooms, failures = [], []
  writer.start(on_room=lambda: rooms.append(writer.has_room()), on_failure=failures.append)
  number = _put_in_parts(writer, coded_unrolls, [1, 4, 3, 1, 1])
  _wait_until(lambda: len(rooms) == number // 2)
  _wait_until(lambda: _num_items(server.address) == number // 2)  # the last item is in flight
  assert writer.num_confirmed == number - 2  # the last may be in flight
  for i, data in enumerate(_read(server.address, number // 2)):
    np.testing.assert_array_equal(data[-1], coded_unrolls(2 * i, 2).policy_version)
  writer.stop()
  assert not failures


def test_a_full_table_holds_the_thread_and_memory_is_bounded(serve, coded_unrolls):
  server = serve(queue_size=4, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=6)
  rooms, failures = [], []
  writer.start(on_room=lambda: rooms.append(None), on_failure=failures.append)
  first = 0
  pause = threading.Event()
  for _ in range(50):  # an inference server that checks before every row
    if writer.has_room():
      writer.put(coded_unrolls(first, 1))
      first += 1
    pause.wait(0.005)
  assert not writer.has_room()
  # 2 items in the table, one in flight that it does not admit, and one that waits for that one.
  assert first <= 4 + 2 * 2 + 6
  assert _num_items(server.address) == 2
  data = _read(server.address, 4)  # makes room: the thread continues, and nothing was lost
  for i, item in enumerate(data):
    np.testing.assert_array_equal(item[-1], coded_unrolls(2 * i, 2).policy_version)
  _wait_until(writer.has_room)
  writer.stop()
  assert not failures


@pytest.mark.parametrize('number', [0, 1, 40])
def test_stop_ends_the_thread_at_once_though_the_table_is_full(serve, coded_unrolls, number):
  server = serve(queue_size=4, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=4)
  failures = []
  writer.start(on_room=lambda: None, on_failure=failures.append)
  if number:
    writer.put(coded_unrolls(0, number))
  if number > 4:
    _wait_until(lambda: _num_items(server.address) == 2)
  writer.stop()  # the test's time-out guards against a hang
  assert not [thread for thread in threading.enumerate() if thread.name == 'replay_writer']
  assert not failures


def test_a_failure_ends_the_thread_and_reaches_its_owner(serve, coded_unrolls):
  server = serve(queue_size=64, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=8)
  failures = []
  writer.start(on_room=lambda: None, on_failure=failures.append)
  wrong = coded_unrolls(0, 2)
  writer.put(wrong._replace(policy_version=wrong.policy_version[:, :1]))
  for i in range(4):  # an item in flight is refused when the next one is confirmed
    writer.put(coded_unrolls(2 * i, 2))
  _wait_until(lambda: failures)
  assert len(failures) == 1
  writer.stop()
