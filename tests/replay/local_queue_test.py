"""The queue of the single-process program: the samples in order, and what inspection sees."""

import numpy as np
import pytest
import tree

from seed_acme import core
from seed_acme.replay import inspection
from seed_acme.replay import local_queue
from seed_acme.replay import server as server_lib
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib
from tests.inference import unroll_rows

pytestmark = pytest.mark.timeout(60)


def _put(writer, unrolls):
  writer.put(unrolls)
  while writer.has_item():
    writer.write_item()


@pytest.fixture
def served(coded_unrolls):
  """`served(batch_size, unrolls_per_item, queue_size)` -> the server, a writer and the queue."""
  started = []

  def start(batch_size, unrolls_per_item, queue_size):
    example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
    server = server_lib.ReplayServer(
      core.ReplaySpec(), batch_size, queue_size, unrolls_per_item, example, 0, queue_of='counts'
    )
    queue = local_queue.LocalQueue(batch_size, unrolls_per_item)
    writer = writer_lib.ReplayWriter(server.address, unrolls_per_item, 1000, None, queue)
    started.extend([writer, server])
    return server, writer, queue

  yield start
  for part in started:
    part.stop()


@pytest.mark.parametrize('unrolls_per_item', [1, 4, 8])
def test_samples_hold_the_unrolls_in_order_time_major(served, coded_unrolls, unrolls_per_item):
  _, writer, queue = served(8, unrolls_per_item, 24)
  for first, number in ((0, 3), (3, 1), (4, 20)):
    _put(writer, coded_unrolls(first, number))
  for i in range(3):
    sample = queue.next(0.0)
    expected = coded_unrolls(8 * i, 8)
    for x, y in zip(tree.flatten(sample.unroll.initial_state), expected.initial_state):
      np.testing.assert_array_equal(x, y)
    for name in ('inputs', 'outputs', 'policy_version'):
      found, wanted = getattr(sample.unroll, name), getattr(expected, name)
      tree.assert_same_structure(found, wanted)
      for x, y in zip(tree.flatten(found), tree.flatten(wanted)):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y.swapaxes(0, 1))
    keys = np.repeat(np.arange(8 // unrolls_per_item), unrolls_per_item)
    np.testing.assert_array_equal(sample.keys, keys + i * 8 // unrolls_per_item)
    np.testing.assert_array_equal(sample.probabilities, np.ones(8))


def test_unrolls_of_inference_become_tensors_without_a_copy():
  assembler, queue = unroll_rows.make_assembler(2, 2, 1), local_queue.LocalQueue(2, 2)
  for number in (1, 2, 3):
    finished = unroll_rows.append(assembler, [0, 1], [number, 10 + number])
  queue.insert([finished])
  sample = queue.next(0.0)
  for part in ('inputs', 'outputs', 'policy_version'):
    for x, y in zip(*(tree.flatten(getattr(all_, part)) for all_ in (sample.unroll, finished))):
      assert np.shares_memory(memoryview(x), y)
  for number in range(4, 12):
    unroll_rows.append(assembler, [0, 1], [number, 10 + number])
  assembler.reset(np.array([0, 1]))
  np.testing.assert_array_equal(sample.unroll.inputs.reward, [[0, 0], [1, 11], [2, 12], [3, 13]])


def test_a_sample_is_not_changed_by_later_ones(served, coded_unrolls):
  _, writer, queue = served(8, 8, 16)
  unrolls = coded_unrolls(0, 8)
  _put(writer, unrolls)
  sample = queue.next(0.0)
  before = [np.array(x) for x in tree.flatten(sample.unroll)]
  for first in (8, 16):
    _put(writer, coded_unrolls(first, 8))
    queue.next(0.0)
  for x, y in zip(tree.flatten(sample.unroll), before):
    np.testing.assert_array_equal(x, y)


def test_items_are_counted_at_each_end(served, coded_unrolls):
  _, writer, queue = served(4, 2, 12)
  _put(writer, coded_unrolls(0, 11))
  queue.next(0.0)
  assert tuple(queue.counts()) == (5, 2, 3)
  assert writer.num_confirmed == 10
  assert queue.num_fetched == queue.num_received == 1


def test_inspection_sees_a_fifo_queue_with_its_counts_and_whole_items_in_the_mirror(
  served, coded_unrolls
):
  server, writer, queue = served(4, 2, 12)
  shown = local_queue.ShownCounts(queue, server.address, max_items=6)
  _put(writer, coded_unrolls(0, 11))
  queue.next(0.0)
  inspected = inspection.Server(server.address, timeout_s=20)
  found = inspected.snapshot().tables
  while found[tables.UNROLLS].limiter.inserts < 5:  # written without waiting, and now and then
    shown.update()
    found = inspected.snapshot().tables
  shown.stop()
  table, mirror = found[tables.UNROLLS], found[tables.MIRROR]
  assert (table.limiter.inserts, table.limiter.samples) == (5, 2)
  assert (table.limiter.size, table.limiter.max_size) == (3, 6)
  assert table.is_fifo and table.is_in_learner and table.leaves == mirror.leaves
  assert mirror.limiter.size >= 1
