"""Items in a saved memory: equal to those that Reverb's library reads, and invalid files."""

import pathlib
import shutil
import time
import zlib

import numpy as np
import pytest
import reverb
from reverb.cc import schema_pb2
from reverb.platform.default import checkpointers
import tensorflow as tf

from seed_acme.replay import saved_items
from seed_acme.storage import checkpoint_writer

pytestmark = pytest.mark.timeout(120)
_PRIORITIES = (0.0, 0.25, 3.5, 1e9, 1e-12)


def _table(name):
  return reverb.Table(
    name,
    reverb.selectors.Prioritized(1.0),
    reverb.selectors.Fifo(),
    99,
    reverb.rate_limiters.MinSize(1),
  )


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Saves a memory: table `a` with _PRIORITIES and 40 samples, `b` with one item, `c` empty."""
  path = tmp_path_factory.mktemp('run')
  server = reverb.Server(
    [_table('a'), _table('b'), _table('c')],
    checkpointer=checkpointers.DefaultCheckpointer(str(path / 'replay_in_progress')),
  )
  client = reverb.Client(f'localhost:{server.port}')
  for priority in _PRIORITIES:
    client.insert(np.zeros(300), {'a': priority})
  client.insert([np.zeros(3)], {'b': 2.0})
  list(client.sample('a', 40))
  written = pathlib.Path(client.checkpoint())
  checkpoint_writer.save(path / 'checkpoints', 12, {}, {}, keep=1, replay=written)
  server.stop()
  return path / 'checkpoints' / '000000000012' / 'replay'


def test_they_are_what_reverbs_own_library_reads(folder):
  found = saved_items.read(folder)
  assert found.updates == 12
  assert found.time_s == (folder / 'items.tfrecord').stat().st_mtime
  records = tf.data.TFRecordDataset(str(folder / 'items.tfrecord'), compression_type='ZLIB')
  expected = [
    schema_pb2.PrioritizedItem.FromString(record) for record in records.as_numpy_iterator()
  ]
  assert found.tables.keys() == {'a', 'b'}
  for name, items in found.tables.items():
    wanted = [item for item in expected if item.table == name]
    assert items.keys.dtype == np.uint64
    assert items.keys.tolist() == [item.key for item in wanted]
    assert items.priorities.tolist() == [item.priority for item in wanted]
    assert items.times_sampled.tolist() == [item.times_sampled for item in wanted]
    assert items.ages_s.tolist() == pytest.approx(
      [found.time_s - item.inserted_at.ToNanoseconds() / 1e9 for item in wanted], abs=1e-3
    )
  assert sorted(found.tables['a'].priorities) == sorted(_PRIORITIES)
  assert found.tables['a'].times_sampled.sum() == 40


def test_the_newest_that_has_a_memory_is_taken(folder):
  checkpoints = folder.parent.parent
  assert saved_items.newest(checkpoints).updates == 12
  newer = checkpoint_writer.save(checkpoints, 13, {}, {}, keep=2)
  assert saved_items.newest(checkpoints).updates == 12
  shutil.rmtree(newer)


def test_a_folder_without_any(tmp_path):
  checkpoint_writer.save(tmp_path, 1, {}, {}, keep=1)
  for path in (tmp_path, tmp_path / 'absent'):
    with pytest.raises(saved_items.NothingSaved, match='no checkpoint of the run has a replay'):
      saved_items.newest(path)


@pytest.mark.parametrize(
  'spoil',
  [
    lambda data: data[:-20],
    lambda data: b'x' * len(data),
    lambda data: b'',
    lambda data: zlib.compress(zlib.decompress(data)[:-9]),
    lambda data: zlib.compress(bytes(8) + bytes(8)),
    lambda data: zlib.compress(b'\x02' + bytes(11) + b'\x0f\x01' + bytes(4)),
  ],
)
def test_what_is_damaged_is_named(folder, tmp_path, spoil):
  spoilt = tmp_path / 'checkpoints' / '000000000012' / 'replay'
  spoilt.mkdir(parents=True)
  data = spoil((folder / 'items.tfrecord').read_bytes())
  (spoilt / 'items.tfrecord').write_bytes(data)
  with pytest.raises(ValueError, match='items.tfrecord is damaged|wire type'):
    saved_items.read(spoilt)


def test_a_checkpoint_that_is_replaced_meanwhile_is_looked_for_again(folder, monkeypatch):
  read, calls = saved_items.read, []

  def gone_twice(path):
    calls.append(path)
    if len(calls) < 3:
      raise FileNotFoundError(path)
    return read(path)

  monkeypatch.setattr(saved_items, 'read', gone_twice)
  assert saved_items.newest(folder.parent.parent).updates == 12
  monkeypatch.setattr(saved_items, 'read', lambda path: read(path / 'absent'))
  with pytest.raises(saved_items.NothingSaved, match='cannot be read'):
    saved_items.newest(folder.parent.parent)


def test_a_checkpoint_that_is_deleted_while_its_items_are_read_is_read_to_the_end(
  folder, tmp_path, monkeypatch
):
  expected = saved_items.read(folder)
  # Two servers' files: the second one is opened when the folder is gone.
  live = tmp_path / '12' / 'replay'
  for server in ('0', '1'):
    shutil.copytree(folder, live / server)
  dataset = tf.data.TFRecordDataset

  def opens_while_it_is_replaced(*args, **kwargs):
    shutil.rmtree(live, ignore_errors=True)
    return dataset(*args, **kwargs)

  monkeypatch.setattr(tf.data, 'TFRecordDataset', opens_while_it_is_replaced)
  found = saved_items.read(live)
  assert found.updates == 12 and found.time_s == expected.time_s
  for name, items in expected.tables.items():
    assert found.tables[name].keys.tolist() == 2 * items.keys.tolist()


def test_ages_are_not_begun_anew_by_a_restoration(folder, tmp_path):
  server = reverb.Server(
    [_table('a'), _table('b'), _table('c')],
    checkpointer=checkpointers.DefaultCheckpointer(
      str(tmp_path), fallback_checkpoint_path=str(folder)
    ),
  )
  before = saved_items.read(folder)
  again = checkpoint_writer.save(
    tmp_path / 'checkpoints',
    12,
    {},
    {},
    keep=1,
    replay=pathlib.Path(reverb.Client(f'localhost:{server.port}').checkpoint()),
  )
  server.stop()
  after = saved_items.read(again / 'replay')
  passed_s = after.time_s - before.time_s
  assert 0 < passed_s <= time.time() - before.time_s
  ages = lambda found: dict(zip(found.tables['a'].keys.tolist(), found.tables['a'].ages_s))
  assert ages(after) == pytest.approx({key: age + passed_s for key, age in ages(before).items()})
