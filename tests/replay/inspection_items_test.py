"""Items that an inspection samples or reads."""

import numpy as np
import pytest
import reverb

from seed_acme import types
from seed_acme.replay import inspection_sample
from seed_acme.replay import tables as tables_lib
from tests.replay import table_server

pytestmark = pytest.mark.timeout(120)


def _mirror(name=tables_lib.MIRROR, limiter=None, times=0):
  return table_server.table(
    limiter or table_server.limiters.MinSize(1), max_size=16, name=name, times=times
  )


def test_looking_into_the_mirror_changes_no_other_table(serve_tables):
  served = serve_tables([reverb.Table.queue('t', 4, signature=table_server.SIGNATURE), _mirror()])
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


def test_more_items_than_the_mirror_has_are_those_it_has(serve_tables):
  served = serve_tables(_mirror())
  served.insert(3, name=tables_lib.MIRROR)
  items = inspection_sample.draw(served.address, served.table(tables_lib.MIRROR), 50, timeout_s=5)
  assert len(items) == len({item.key for item in items}) == 3


@pytest.mark.parametrize(
  'table',
  [
    lambda: _mirror('other'),
    lambda: _mirror(times=1),
    lambda: _mirror(limiter=table_server.limiters.SampleToInsertRatio(1.0, 1, 2.0)),
  ],
)
def test_only_a_mirror_that_is_one_counts_as_harmless(serve_tables, table):
  made = table()
  assert not serve_tables(made).table(made.name).is_harmless_to_sample


@pytest.mark.parametrize('has_signature', [True, False])
def test_exactly_so_many_are_drawn_from_a_queue(serve_tables, has_signature):
  served = serve_tables(
    reverb.Table.queue('t', 9, signature=table_server.SIGNATURE if has_signature else None)
  )
  served.insert(6)
  items = inspection_sample.draw(served.address, served.table(), 4, timeout_s=5)
  names = ('x', 'y/0') if has_signature else ('leaf_0', 'leaf_1')
  assert [item.leaves[names[1]].item() for item in items] == [0, 1, 2, 3]
  assert all(tuple(item.leaves) == names and item.times_sampled == 1 for item in items)
  assert (served.table().limiter.size, served.table().limiter.samples) == (2, 4)
  # Two are left, and it does not wait for more.
  assert len(inspection_sample.draw(served.address, served.table(), 3, timeout_s=0.2)) == 2


@pytest.mark.parametrize('has_signature', [True, False])
def test_an_empty_table_is_an_error_and_leaves_no_request_behind(serve_tables, has_signature):
  served = serve_tables(
    reverb.Table.queue('t', 9, signature=table_server.SIGNATURE if has_signature else None)
  )
  with pytest.raises(types.UserError, match='holds 0 items, of which it needs 1'):
    inspection_sample.draw(served.address, served.table(), 2, timeout_s=0.2)
  served.insert(2)
  assert served.table().limiter.samples == 0


def test_a_table_whose_ratio_is_used_up_says_so(serve_tables):
  served = serve_tables(table_server.table(table_server.limiters.SampleToInsertRatio(1.0, 2, 2.0)))
  served.insert(3)
  served.sample(table_server.MANY)
  with pytest.raises(types.UserError, match='of its 3 items as many .* rate limiter admits'):
    inspection_sample.draw(served.address, served.table(), 1, timeout_s=0.2)


def test_items_of_several_steps_under_a_signature_of_one(serve_tables):
  """Writers of the old kind insert such items, which the dataset refuses."""
  served = serve_tables(table_server.table(table_server.limiters.MinSize(1)))
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
