"""Distances to blocking against real servers: filled, and sampled, until they block; rates."""

import threading

import pytest
import reverb
import tensorflow as tf

from seed_acme.replay import inspection
from seed_acme.replay import rate_limit
from tests.replay import table_server

pytestmark = pytest.mark.timeout(120)

_TABLES = {
  'queue': lambda: reverb.Table.queue('t', 5, signature=table_server.SIGNATURE),
  'stack': lambda: reverb.Table.stack('t', 4, signature=table_server.SIGNATURE),
  'minimum size': lambda: table_server.table(table_server.limiters.MinSize(3)),
  'minimum size, full table': lambda: table_server.table(
    table_server.limiters.MinSize(3), max_size=4
  ),
  'ratio': lambda: table_server.table(table_server.limiters.SampleToInsertRatio(2.0, 10, 10.0)),
  'slow ratio': lambda: table_server.table(table_server.limiters.SampleToInsertRatio(0.3, 4, 3.0)),
  'given bounds': lambda: table_server.table(
    table_server.limiters.SampleToInsertRatio(1.5, 3, (1.0, 11.5))
  ),
  'ratio, full table': lambda: table_server.table(
    table_server.limiters.SampleToInsertRatio(0.7, 3, 4.1), max_size=4
  ),
  'at the minimum for ever': lambda: table_server.table(
    table_server.limiters.RateLimiter(1.0, 6, -20.0, 2.0), max_size=5
  ),
  'minimum above the bound': lambda: table_server.table(
    table_server.limiters.RateLimiter(1.0, 6, -20.0, 2.0)
  ),
}


@pytest.mark.slow
@pytest.mark.parametrize('inserts, samples', [(0, 0), (3, 0), (4, 2), (12, 3)])
@pytest.mark.parametrize('kind', sorted(_TABLES))
def test_the_distances_are_what_the_server_does(serve_tables, kind, inserts, samples):
  for side in ('inserts', 'samples'):
    served = serve_tables(_TABLES[kind]())
    if inserts:
      # A blocked insert would be admitted by the following samples, so stay below the limit.
      left = served.table().limiter.until_inserts_block().at_least
      served.insert(inserts if left is None else min(inserts, left))
    if samples:
      left = served.table().limiter.until_samples_block().at_least
      if left != 0:
        served.sample(samples if left is None else min(samples, left))
    limiter = served.table().limiter
    assert limiter.inserts - limiter.size >= 0
    distance = limiter.until_inserts_block() if side == 'inserts' else limiter.until_samples_block()
    assert distance.is_exact
    wanted = table_server.MANY if distance.at_least is None else distance.at_least
    assert wanted <= table_server.MANY
    if side == 'inserts':
      assert served.insert(table_server.MANY) == wanted
    else:
      before = limiter.samples
      assert served.sample(table_server.MANY) == wanted
      assert served.table().limiter.samples - before == wanted
      assert served.table().limiter.until_samples_block().is_blocked == (wanted < table_server.MANY)


@pytest.mark.parametrize('times, least', [(1, 1), (3, 2), (2, 3)])
def test_samples_that_wear_items_out_are_bounded_from_both_sides(serve_tables, times, least):
  served = serve_tables(table_server.table(table_server.limiters.MinSize(least), times=times))
  served.insert(6)
  served.sample(2)
  distance = served.table().limiter.until_samples_block()
  assert distance.is_exact == (times == 1)
  assert (
    0
    < distance.at_least
    <= served.sample(table_server.MANY)
    <= distance.at_most
    < table_server.MANY
  )
  assert served.table().limiter.until_samples_block() == rate_limit.Distance(0, 0)


def _limiter(**changes):
  numbers = {
    'samples_per_insert': 1.0,
    'min_size_to_sample': 1,
    'min_diff': 0.0,
    'max_diff': 8.0,
    'inserts': 0,
    'samples': 0,
    'size': 0,
    'max_size': 8,
    'max_times_sampled': 1,
  }
  return rate_limit.Limiter(**{**numbers, **changes})


def test_a_ratio_of_which_the_double_is_not_exact():
  """In doubles 0.1 x 3 > 0.3, and Reverb computes in doubles."""
  limiter = _limiter(samples_per_insert=0.1, max_diff=0.3, max_size=99, max_times_sampled=0)
  assert limiter.until_inserts_block().at_least == 2


def test_far_distances_are_without_end():
  assert _limiter(samples_per_insert=1e-30).until_inserts_block().at_least is None
  assert (
    _limiter(min_diff=-1e200, inserts=1, size=1, max_times_sampled=0).until_samples_block().at_least
    is None
  )


@pytest.mark.parametrize('ratio', [0.0, -1.0])
def test_a_ratio_that_inserts_cannot_exhaust(ratio):
  assert _limiter(samples_per_insert=ratio).until_inserts_block().at_least is None
  assert _limiter(samples_per_insert=ratio, max_diff=-9.0, size=3).until_inserts_block().is_blocked


def test_the_settings_and_counts_of_a_table(serve_tables):
  served = serve_tables(
    [
      reverb.Table(
        'per',
        reverb.selectors.Prioritized(0.7),
        reverb.selectors.MaxHeap(),
        50,
        table_server.limiters.MinSize(2),
        max_times_sampled=4,
        signature=table_server.SIGNATURE,
      ),
      reverb.Table(
        'bare', table_server.UNIFORM(), reverb.selectors.Lifo(), 9, table_server.limiters.MinSize(1)
      ),
    ]
  )
  served.insert(3, name='per')
  served.sample(2, name='per')
  tables = served.inspected.snapshot().tables
  assert list(tables) == ['bare', 'per']
  per = tables['per']
  assert (per.sampler, per.remover) == (
    'prioritized (exponent 0.7)',
    'heap (highest priority first)',
  )
  assert (per.limiter.size, per.limiter.max_size, per.limiter.max_times_sampled) == (3, 50, 4)
  assert (per.limiter.inserts, per.limiter.samples) == (3, 2)
  assert 1 <= per.num_unique_samples <= 2 and per.num_episodes == 1
  assert not per.is_fifo and not per.is_harmless_to_sample and not per.holds_unrolls
  assert per.leaves == (inspection.Leaf('x', (2,), 'float32'), inspection.Leaf('y/0', (), 'int32'))
  assert (tables['bare'].remover, tables['bare'].leaves) == ('lifo', None)


def test_leaves_are_named_by_the_signature_if_its_names_differ(serve_tables):
  named = [tf.TensorSpec((1, None), tf.uint8, 'a/b'), tf.TensorSpec(None, tf.string, 'c')]
  twice = [tf.TensorSpec((), tf.uint8, 'a'), tf.TensorSpec((), tf.uint8, 'a')]
  served = serve_tables(
    [
      table_server.table(table_server.limiters.MinSize(1), name='named', signature=named),
      table_server.table(table_server.limiters.MinSize(1), name='twice', signature=twice),
    ]
  )
  tables = served.inspected.snapshot().tables
  assert tables['named'].leaves == (
    inspection.Leaf('a/b', (1, None), 'uint8'),
    inspection.Leaf('c', None, 'string'),
  )
  assert [leaf.name for leaf in tables['twice'].leaves] == ['0', '1']


def test_waiting_calls_show_in_the_rates_of_their_side(serve_tables):
  served = serve_tables(
    [
      reverb.Table.queue('t', 2, signature=table_server.SIGNATURE),
      reverb.Table.queue('empty', 2, signature=table_server.SIGNATURE),
    ]
  )
  assert served.insert(3) == 2  # the third one waits from here on
  waiting = threading.Thread(target=served.sample, args=(1, 'empty'))
  before = served.inspected.snapshot()
  waiting.start()
  waiting.join()  # its time-out of 100 ms has passed
  after = served.inspected.snapshot()
  full, empty = (inspection.rates(before, after, name) for name in ('t', 'empty'))
  assert full.inserts_per_s == full.samples_per_s == 0
  assert full.inserts_waiting > 0.5 and full.samples_waiting == 0
  assert empty.samples_waiting > 0 and empty.inserts_waiting == 0


def test_rates_count_calls_over_the_interval_and_notice_a_reset(serve_tables):
  served = serve_tables(table_server.table(table_server.limiters.MinSize(1)))
  served.insert(2)
  before = served.inspected.snapshot()
  served.insert(6)
  served.sample(3)
  after = served.inspected.snapshot()
  found = inspection.rates(before, after, 't')
  assert found.inserts_per_s * found.interval_s == pytest.approx(6)
  assert found.samples_per_s * found.interval_s == pytest.approx(3)
  reverb.Client(served.address).reset('t')
  reset = inspection.rates(after, served.inspected.snapshot(), 't')
  assert reset.inserts_per_s is None and reset.samples_waiting is None


def test_an_address_where_nobody_answers():
  with pytest.raises(inspection.NoAnswer, match=r'localhost:1 .*1 s'):
    inspection.Server('localhost:1', timeout_s=1).snapshot()
