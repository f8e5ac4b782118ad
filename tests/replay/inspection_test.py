"""Distances to blocking against real servers: filled, and sampled, until they block."""

import threading

import numpy as np
import pytest
import reverb
import tensorflow as tf

from seed_acme import types
from seed_acme.replay import inspection
from seed_acme.replay import inspection_sample
from seed_acme.replay import rate_limit
from seed_acme.replay import tables as tables_lib

pytestmark = pytest.mark.timeout(120)

_FIFO, _UNIFORM = reverb.selectors.Fifo, reverb.selectors.Uniform
_limiters = reverb.rate_limiters
_SIGNATURE = {'x': tf.TensorSpec((2,), tf.float32), 'y': [tf.TensorSpec((), tf.int32)]}
_MANY = 60  # calls after which a side that should never block is believed


class Served:
  """A server with one table, a writer of it, and its figures."""

  def __init__(self, table):
    self.server = reverb.Server([table] if isinstance(table, reverb.Table) else table)
    self.address = f'localhost:{self.server.port}'
    self.inspected = inspection.Server(self.address, timeout_s=20)
    self._client = reverb.Client(self.address)
    self._writers = []

  def table(self, name='t'):
    return self.inspected.snapshot().tables[name]

  def insert(self, number, name='t', priority=1.0):
    """Inserts one after the other; returns how many were admitted before one had to wait.

    Decided by the server's state, not by time: either the count rises, or its worker reports
    an insert that waits.
    """
    writer = self._client.trajectory_writer(num_keep_alive_refs=1)
    self._writers.append(writer)
    pause = threading.Event()
    for i in range(number):
      before = self.table(name)
      assert before.inserts_waited_s == 0
      writer.append({'x': np.full(2, i, np.float32), 'y': [np.int32(i)]})
      writer.create_item(
        name, priority, {'x': writer.history['x'][-1], 'y': [writer.history['y'][0][-1]]}
      )
      writer.flush(block_until_num_items=1)
      while True:
        now = self.table(name)
        if now.limiter.inserts > before.limiter.inserts:
          break
        if now.inserts_waited_s > 0:
          return i
        pause.wait(0.005)
    return number

  def sample(self, number, name='t'):
    """Samples until one is refused; returns how many came."""
    shapes = {'x': tf.TensorShape((2,)), 'y': (tf.TensorShape(()),)}
    dataset = reverb.TrajectoryDataset(
      self.address,
      name,
      dtypes={'x': tf.float32, 'y': (tf.int32,)},
      shapes=shapes,
      max_in_flight_samples_per_worker=1,
      num_workers_per_iterator=1,
      rate_limiter_timeout_ms=100,
      max_samples=number,
    )
    return sum(1 for _ in dataset)

  def stop(self):
    for name in self.inspected.snapshot().tables:
      self._client.reset(name)  # admits the insert that waits, for which it would wait, too
    for writer in self._writers:
      writer.close()
    self.server.stop()


@pytest.fixture
def serve():
  served = []

  def start(table):
    served.append(Served(table))
    return served[-1]

  yield start
  for one in served:
    one.stop()


def _table(limiter, max_size=30, sampler=_UNIFORM, times=0, name='t', signature=_SIGNATURE):
  return reverb.Table(
    name, sampler(), _FIFO(), max_size, limiter, max_times_sampled=times, signature=signature
  )


_TABLES = {
  'queue': lambda: reverb.Table.queue('t', 5, signature=_SIGNATURE),
  'stack': lambda: reverb.Table.stack('t', 4, signature=_SIGNATURE),
  'minimum size': lambda: _table(_limiters.MinSize(3)),
  'minimum size, full table': lambda: _table(_limiters.MinSize(3), max_size=4),
  'ratio': lambda: _table(_limiters.SampleToInsertRatio(2.0, 10, 10.0)),
  'slow ratio': lambda: _table(_limiters.SampleToInsertRatio(0.3, 4, 3.0)),
  'given bounds': lambda: _table(_limiters.SampleToInsertRatio(1.5, 3, (1.0, 11.5))),
  'ratio, full table': lambda: _table(_limiters.SampleToInsertRatio(0.7, 3, 4.1), max_size=4),
  'at the minimum for ever': lambda: _table(_limiters.RateLimiter(1.0, 6, -20.0, 2.0), max_size=5),
  'minimum above the bound': lambda: _table(_limiters.RateLimiter(1.0, 6, -20.0, 2.0)),
}


@pytest.mark.parametrize('inserts, samples', [(0, 0), (3, 0), (4, 2), (12, 3)])
@pytest.mark.parametrize('kind', sorted(_TABLES))
def test_the_distances_are_what_the_server_does(serve, kind, inserts, samples):
  for side in ('inserts', 'samples'):
    served = serve(_TABLES[kind]())
    if inserts:
      # A blocked insert would be admitted by the samples that follow: stay below.
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
    wanted = _MANY if distance.at_least is None else distance.at_least
    assert wanted <= _MANY
    if side == 'inserts':
      assert served.insert(_MANY) == wanted
    else:
      before = limiter.samples
      assert served.sample(_MANY) == wanted
      assert served.table().limiter.samples - before == wanted
      assert served.table().limiter.until_samples_block().is_blocked == (wanted < _MANY)


@pytest.mark.parametrize('times, least', [(1, 1), (3, 2), (2, 3)])
def test_samples_that_wear_items_out_are_bounded_from_both_sides(serve, times, least):
  served = serve(_table(_limiters.MinSize(least), times=times))
  served.insert(6)
  served.sample(2)
  distance = served.table().limiter.until_samples_block()
  assert distance.is_exact == (times == 1)
  assert 0 < distance.at_least <= served.sample(_MANY) <= distance.at_most < _MANY
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
  """0.1 x 3 > 0.3 in doubles, and Reverb computes in doubles."""
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


def test_the_settings_and_counts_of_a_table(serve):
  served = serve(
    [
      reverb.Table(
        'per',
        reverb.selectors.Prioritized(0.7),
        reverb.selectors.MaxHeap(),
        50,
        _limiters.MinSize(2),
        max_times_sampled=4,
        signature=_SIGNATURE,
      ),
      reverb.Table('bare', _UNIFORM(), reverb.selectors.Lifo(), 9, _limiters.MinSize(1)),
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


def test_leaves_are_named_by_the_signature_if_its_names_differ(serve):
  named = [tf.TensorSpec((1, None), tf.uint8, 'a/b'), tf.TensorSpec(None, tf.string, 'c')]
  twice = [tf.TensorSpec((), tf.uint8, 'a'), tf.TensorSpec((), tf.uint8, 'a')]
  served = serve(
    [
      _table(_limiters.MinSize(1), name='named', signature=named),
      _table(_limiters.MinSize(1), name='twice', signature=twice),
    ]
  )
  tables = served.inspected.snapshot().tables
  assert tables['named'].leaves == (
    inspection.Leaf('a/b', (1, None), 'uint8'),
    inspection.Leaf('c', None, 'string'),
  )
  assert [leaf.name for leaf in tables['twice'].leaves] == ['0', '1']


def test_waiting_calls_show_in_the_rates_of_their_side(serve):
  served = serve(
    [
      reverb.Table.queue('t', 2, signature=_SIGNATURE),
      reverb.Table.queue('empty', 2, signature=_SIGNATURE),
    ]
  )
  assert served.insert(3) == 2  # the third waits from here on
  waiting = threading.Thread(target=served.sample, args=(1, 'empty'))
  before = served.inspected.snapshot()
  waiting.start()
  waiting.join()  # it asked in vain for 100 ms
  after = served.inspected.snapshot()
  full, empty = (inspection.rates(before, after, name) for name in ('t', 'empty'))
  assert full.inserts_per_s == full.samples_per_s == 0
  assert full.inserts_waiting > 0.5 and full.samples_waiting == 0
  assert empty.samples_waiting > 0 and empty.inserts_waiting == 0


def test_rates_count_calls_over_the_interval_and_notice_a_reset(serve):
  served = serve(_table(_limiters.MinSize(1)))
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


def _mirror(name=tables_lib.MIRROR, limiter=None, times=0):
  return _table(limiter or _limiters.MinSize(1), max_size=16, name=name, times=times)


def test_looking_into_the_mirror_changes_no_other_table(serve):
  served = serve([reverb.Table.queue('t', 4, signature=_SIGNATURE), _mirror()])
  assert served.insert(4) == 4
  served.insert(5, name=tables_lib.MIRROR, priority=2.5)
  before = served.inspected.snapshot().tables
  items = inspection_sample.draw(served.address, before[tables_lib.MIRROR], 5, timeout_s=5)
  after = served.inspected.snapshot().tables
  assert after['t'].limiter == before['t'].limiter
  assert after[tables_lib.MIRROR].limiter.samples >= 5
  assert after[tables_lib.MIRROR].limiter.size == 5
  assert len({item.key for item in items}) == len(items) == 5
  assert {item.priority for item in items} == {2.5}
  assert {item.probability for item in items} == {0.2}
  assert sorted(item.leaves['y/0'].item() for item in items) == list(range(5))
  for item in items:
    np.testing.assert_array_equal(item.leaves['x'], np.full(2, item.leaves['y/0'], np.float32))


def test_more_items_than_the_mirror_has_are_those_it_has(serve):
  served = serve(_mirror())
  served.insert(3, name=tables_lib.MIRROR)
  items = inspection_sample.draw(served.address, served.table(tables_lib.MIRROR), 50, timeout_s=5)
  assert len(items) == len({item.key for item in items}) == 3


@pytest.mark.parametrize(
  'table',
  [
    lambda: _mirror('other'),
    lambda: _mirror(times=1),
    lambda: _mirror(limiter=_limiters.SampleToInsertRatio(1.0, 1, 2.0)),
  ],
)
def test_only_a_mirror_that_is_one_counts_as_harmless(serve, table):
  made = table()
  assert not serve(made).table(made.name).is_harmless_to_sample


@pytest.mark.parametrize('has_signature', [True, False])
def test_exactly_so_many_are_drawn_from_a_queue(serve, has_signature):
  served = serve(reverb.Table.queue('t', 9, signature=_SIGNATURE if has_signature else None))
  served.insert(6)
  items = inspection_sample.draw(served.address, served.table(), 4, timeout_s=5)
  names = ('x', 'y/0') if has_signature else ('leaf_0', 'leaf_1')
  assert [item.leaves[names[1]].item() for item in items] == [0, 1, 2, 3]
  assert all(tuple(item.leaves) == names and item.times_sampled == 1 for item in items)
  assert (served.table().limiter.size, served.table().limiter.samples) == (2, 4)
  # Two are left: no waiting for more of them than that.
  assert len(inspection_sample.draw(served.address, served.table(), 3, timeout_s=0.2)) == 2


@pytest.mark.parametrize('has_signature', [True, False])
def test_an_empty_table_is_an_error_and_leaves_no_request_behind(serve, has_signature):
  served = serve(reverb.Table.queue('t', 9, signature=_SIGNATURE if has_signature else None))
  with pytest.raises(types.UserError, match='holds 0 items, of which it needs 1'):
    inspection_sample.draw(served.address, served.table(), 2, timeout_s=0.2)
  served.insert(2)
  assert served.table().limiter.samples == 0


def test_a_table_whose_ratio_is_used_up_says_so(serve):
  served = serve(_table(_limiters.SampleToInsertRatio(1.0, 2, 2.0)))
  served.insert(3)
  served.sample(_MANY)
  with pytest.raises(types.UserError, match='of its 3 items as many .* rate limiter admits'):
    inspection_sample.draw(served.address, served.table(), 1, timeout_s=0.2)


def test_items_of_several_steps_under_a_signature_of_one(serve):
  """What writers of the old kind insert, and the dataset refuses."""
  served = serve(_table(_limiters.MinSize(1)))
  with reverb.Client(served.address).writer(3) as writer:
    for i in range(3):
      writer.append({'x': np.full(2, i, np.float32), 'y': [np.int32(i)]})
    writer.create_item('t', 3, 1.0)
  (item,) = inspection_sample.draw(served.address, served.table(), 1, timeout_s=5)
  np.testing.assert_array_equal(item.leaves['y/0'], [0, 1, 2])


def test_what_the_numbers_of_a_leaf_span():
  array = np.array([[1.0, np.nan], [4.0, np.nan]], np.float32)
  assert inspection_sample.value_range(array) == inspection_sample.Range(
    (2, 2), 'float32', 1.0, 4.0, 2.5, 2
  )
  whole = inspection_sample.value_range(np.array([250, 255], np.uint8))
  assert (whole.minimum, whole.maximum, whole.mean, whole.num_nan) == (250, 255, 252.5, 0)
  for nothing in (np.zeros((0, 3), np.float32), np.array([b'ab']), np.full(2, np.nan)):
    found = inspection_sample.value_range(nothing)
    assert found.minimum is found.maximum is found.mean is None
  assert found.num_nan == 2


def test_saved_items_hold_every_leaf_and_no_pickle(tmp_path):
  leaves = {
    'inputs/a': np.arange(6).reshape(2, 3),
    'file': np.float32(7),
    '../../up': np.array([b'text']),
  }
  item = inspection_sample.Item(2**64 - 1, 0.5, 3, 0.25, leaves)
  (path,) = inspection_sample.save([item], tmp_path / 'new' / 'folder')
  with np.load(path, allow_pickle=False) as saved:
    assert set(saved.files) == {
      'inputs/a',
      'file',
      'up',
      'info/key',
      'info/priority',
      'info/times_sampled',
      'info/probability',
    }
    np.testing.assert_array_equal(saved['inputs/a'], leaves['inputs/a'])
    assert saved['file'] == 7 and saved['up'] == b'text' and saved['info/key'] == 2**64 - 1
