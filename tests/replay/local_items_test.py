"""Queue items that stay in the process: the same samples as through Reverb, and no item is left."""

import subprocess
import sys

import numpy as np
import pytest
import reverb
import tree

from seed_acme import core
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_items
from seed_acme.replay import server as server_lib
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def queue(coded_unrolls, iterate):
  """`queue(batch_size, unrolls_per_item, queue_size, items)` -> writer and samples."""
  started = []

  def start(batch_size, unrolls_per_item, queue_size, items, drop=print):
    example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
    queue_of = 'tickets' if items else 'items'
    server = server_lib.ReplayServer(
      core.ReplaySpec(), batch_size, queue_size, unrolls_per_item, example, 0, queue_of=queue_of
    )
    writer = writer_lib.ReplayWriter(server.address, unrolls_per_item, 1000, None, items)
    started.extend([writer, server])
    samples = dataset_lib.make_samples(server.address, batch_size, unrolls_per_item, 1, items, drop)
    return server, writer, iterate(samples)

  yield start
  for part in started:
    part.stop()


def _insert(writer, unrolls):
  writer.put(unrolls)
  while writer.has_item():
    writer.write_item()


@pytest.mark.slow
@pytest.mark.parametrize('unrolls_per_item', [1, 4, 16])
def test_samples_are_those_of_a_table_that_holds_the_items(queue, coded_unrolls, unrolls_per_item):
  both = [queue(16, unrolls_per_item, 48, items) for items in (None, local_items.LocalItems())]
  for _, writer, _ in both:
    for first, number in ((0, 7), (7, 1), (8, 40)):
      _insert(writer, coded_unrolls(first, number))
  for _ in range(3):
    one, other = (next(samples) for _, _, samples in both)
    tree.assert_same_structure(one, other)
    for name in ('unroll', 'probabilities'):
      for x, y in zip(tree.flatten(getattr(one, name)), tree.flatten(getattr(other, name))):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)
    keys = np.reshape(other.keys, (-1, unrolls_per_item))  # all unrolls of an item have its key
    assert other.keys.dtype == one.keys.dtype and (keys == keys[:, :1]).all()


def test_what_waits_is_what_the_table_has_tickets_of(queue, coded_unrolls):
  items = local_items.LocalItems()
  server, writer, samples = queue(4, 2, 8, items)
  for first in (0, 8, 16):
    _insert(writer, coded_unrolls(first, 8))
    assert items.num_waiting() == 4
    for second in (0, 4):
      sample = next(samples)
      np.testing.assert_array_equal(
        sample.unroll.policy_version[0] // 100, np.arange(first + second, first + second + 4)
      )
  assert items.num_waiting() == 0
  table = reverb.Client(server.address).server_info(timeout=10)[tables.UNROLLS]
  assert (table.current_size, table.rate_limiter_info.insert_stats.completed) == (0, 12)


def test_items_whose_tickets_somebody_else_drew_do_not_stay(queue, coded_unrolls):
  items = local_items.LocalItems()
  server, writer, samples = queue(2, 2, 8, items)
  _insert(writer, coded_unrolls(0, 8))
  thief = reverb.Client(server.address).sample(tables.UNROLLS, 2, emit_timesteps=False)
  assert [int(sample.data[0]) for sample in thief] == [0, 1]
  np.testing.assert_array_equal(next(samples).unroll.policy_version[0] // 100, [4, 5])
  assert items.num_waiting() == 1


@pytest.mark.parametrize('ticket', [2**62, -1, 4, 0])
def test_a_ticket_that_stands_for_nothing_is_dropped(queue, coded_unrolls, ticket):
  dropped = []
  server, writer, samples = queue(8, 2, 24, local_items.LocalItems(), dropped.append)
  _insert(writer, coded_unrolls(0, 2))  # ticket 0, which is sampled before the others
  with reverb.Client(server.address).trajectory_writer(1) as stranger:
    stranger.append({local_items.TICKET: np.array(ticket, np.int64)})
    stranger.create_item(
      tables.UNROLLS, 1.0, {local_items.TICKET: stranger.history[local_items.TICKET][-1]}
    )
    stranger.flush()
  for first in (2, 8):
    _insert(writer, coded_unrolls(first, 6 if first == 2 else 8))
    found = next(samples).unroll.policy_version[0] // 100
    np.testing.assert_array_equal(found, np.arange(8) + (0 if first == 2 else 8))
  assert len(dropped) == 1 and str(ticket) in dropped[0]


_INSERT = """
import sys, numpy as np, reverb
reverb.Client(sys.argv[1]).insert({'ticket': np.array(1, np.int64)}, {sys.argv[2]: 1.0})
"""


@pytest.mark.slow
def test_an_item_of_another_shape_is_dropped(queue, coded_unrolls):
  dropped = []
  server, writer, samples = queue(4, 2, 12, local_items.LocalItems(), dropped.append)
  _insert(writer, coded_unrolls(0, 2))
  # From another process, because in this one Reverb compares the shapes itself.
  subprocess.run([sys.executable, '-c', _INSERT, server.address, tables.UNROLLS], check=True)
  _insert(writer, coded_unrolls(2, 6))
  for first in (0, 4):
    found = next(samples).unroll.policy_version[0] // 100
    np.testing.assert_array_equal(found, np.arange(first, first + 4))
  assert len(dropped) == 1 and 'incompatible tensor' in dropped[0]


def test_the_mirror_holds_whole_items(queue, coded_unrolls):
  server, writer, _ = queue(4, 2, 8, local_items.LocalItems())
  _insert(writer, coded_unrolls(0, 4))
  [sample] = reverb.Client(server.address).sample(tables.MIRROR, 1, emit_timesteps=False)
  for found, wanted in zip(sample.data, tree.flatten(coded_unrolls(0, 2))):
    np.testing.assert_array_equal(found, wanted)


def test_a_full_table_stops_the_writer(queue, coded_unrolls):
  items = local_items.LocalItems()
  _, writer, samples = queue(2, 2, 4, items)
  writer.put(coded_unrolls(0, 8))
  waits = iter([False, False, True])  # for the third item, after one time-out
  for _ in range(3):
    writer.write_item(lambda: next(waits, True))
  assert writer.num_confirmed == 4
  np.testing.assert_array_equal(next(samples).unroll.policy_version[0] // 100, [0, 1])
