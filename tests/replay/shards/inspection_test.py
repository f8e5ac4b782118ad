"""Two servers inspected as one."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.replay import inspection
from seed_acme.replay.shards import inspection as shards_inspection
from tests.replay import table_server

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(name='serve_two')
def _serve_two():
  """`serve_two(make_table)`: two servers with such a table, and both as one."""
  served = []

  def serve(make_table):
    served.extend(table_server.Served(make_table()) for _ in range(2))
    addresses = [one.address for one in served]
    return (*served, shards_inspection.Servers(addresses, timeout_s=20))

  yield serve
  for one in served:
    one.stop()


def _memory():
  return table_server.table(table_server.limiters.SampleToInsertRatio(2.0, 3, 100.0))


def test_counts_add_up_and_limits_too(serve_two):
  first, second, both = serve_two(_memory)
  first.insert(4)
  second.insert(6)
  second.sample(5)
  table = both.snapshot().tables['t']
  assert table.limiter.size == table.limiter.inserts == 10
  assert (table.limiter.samples, table.limiter.max_size) == (5, 60)
  assert table.limiter.min_size_to_sample == 6
  assert table.limiter.samples_per_insert == 2.0
  assert [shard.limiter.size for shard in table.shards] == [4, 6]
  assert table.leaves == table.shards[0].leaves
  unique = [shard.num_unique_samples for shard in table.shards]
  assert unique[0] == 0 < table.num_unique_samples == unique[1]


def test_rates_are_those_of_both(serve_two):
  first, second, both = serve_two(_memory)
  first.insert(1)
  before = both.snapshot()
  first.insert(2)
  second.insert(3)
  after = both.snapshot()
  rates = inspection.rates(before, after, 't')
  assert rates.inserts_per_s == pytest.approx(5 / rates.interval_s)


def test_waits_are_the_mean_of_all_shards(serve_two):
  first, _, both = serve_two(lambda: table_server.table(table_server.limiters.Queue(2)))
  assert first.insert(3) == 2  # the third one waits
  table = both.snapshot().tables['t']
  assert 0 < table.inserts_waited_s <= first.table().inserts_waited_s / 2


def test_one_server_is_shown_as_ever(serve_two):
  first, _, _ = serve_two(_memory)
  first.insert(2)
  alone = shards_inspection.Servers([first.address], timeout_s=20).snapshot().tables['t']
  assert alone.shards == ()
  assert alone == first.table()


def test_items_come_from_all_shards_with_their_probability_in_the_whole(serve_two):
  first, second, both = serve_two(_memory)
  first.insert(4)
  second.insert(8)
  table = both.snapshot().tables['t']
  items = shards_inspection.draw(both.addresses, table, 5, timeout_s=5)
  assert len(items) == 5
  assert [item.probability for item in items] == pytest.approx([1 / 8] * 3 + [1 / 16] * 2)
  assert all(item.leaves['x'].dtype == np.float32 for item in items)


def test_a_shard_without_items_leaves_them_to_the_others(serve_two):
  first, _, both = serve_two(_memory)
  table = both.snapshot().tables['t']
  with pytest.raises(types.UserError, match='let no sample out'):
    shards_inspection.draw(both.addresses, table, 2, timeout_s=0.2)
  first.insert(4)
  table = both.snapshot().tables['t']
  assert len(shards_inspection.draw(both.addresses, table, 2, timeout_s=0.2)) == 1
