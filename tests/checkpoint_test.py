"""Checkpoints: what is written, what a kill leaves behind, what is refused."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seed_acme import checkpoint
from seed_acme import types

_ARRAYS = {
  'network/core/w:0': np.arange(6, dtype=np.float32).reshape(2, 3),
  'optimizer/000/t:0': np.array(7, np.int64),
  'empty': np.zeros((0, 3), np.float32),
}
_META = {'counts': {'agent_steps': 10, 'wall_s': 1.5}, 'resumptions': 2}


def _save(folder, updates, arrays=None, meta=None, keep=3):
  return checkpoint.save(
    folder, updates, _ARRAYS if arrays is None else arrays, _META if meta is None else meta, keep
  )


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


def _error(path):
  with pytest.raises(types.UserError) as error:
    checkpoint.load(path)
  assert len(str(error.value).splitlines()) <= 4
  return str(error.value)


def test_what_is_saved_is_loaded(tmp_path):
  path = _save(tmp_path / 'checkpoints', 12)
  assert path == tmp_path / 'checkpoints' / '000000000012'
  loaded = checkpoint.load(path)
  assert loaded.path == path
  assert loaded.meta == _META
  assert loaded.arrays.keys() == _ARRAYS.keys()
  for name, array in _ARRAYS.items():
    assert loaded.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(loaded.arrays[name], array)


def test_the_newest_are_kept_in_the_order_of_updates(tmp_path):
  for updates in (2, 9, 10, 100):
    _save(tmp_path, updates, keep=2)
  assert _names(tmp_path) == ['000000000010', '000000000100']
  assert checkpoint.newest(tmp_path).name == '000000000100'


def test_keeping_one(tmp_path):
  for updates in (1, 1, 2):
    _save(tmp_path, updates, keep=1)
  assert _names(tmp_path) == ['000000000002']


def test_saved_twice_at_one_update_the_later_counts(tmp_path):
  _save(tmp_path, 5)
  _save(tmp_path, 5, arrays={'a': np.ones(2)}, meta={'resumptions': 3})
  assert _names(tmp_path) == ['000000000005']
  loaded = checkpoint.load(checkpoint.newest(tmp_path))
  assert list(loaded.arrays) == ['a']
  assert loaded.meta == {'resumptions': 3}


def test_a_partial_folder_is_ignored_and_cleared_away(tmp_path):
  _save(tmp_path, 5)
  shutil.copytree(tmp_path / '000000000005', tmp_path / '000000000007.partial')
  (tmp_path / '000000000008.partial').mkdir()
  assert checkpoint.newest(tmp_path).name == '000000000005'
  assert checkpoint.find(tmp_path).name == '000000000005'
  _save(tmp_path, 9)
  assert _names(tmp_path) == ['000000000005', '000000000009']


class Killed(BaseException):
  """As if the process had ended."""


def killing(module, name, wanted, calls):
  """The function, but for its call that is the wanted-th of all that `calls` lists."""
  real = getattr(module, name)

  def call(*args, **kwargs):
    calls.append(name)
    if len(calls) == wanted:
      raise Killed
    return real(*args, **kwargs)

  return call


@pytest.mark.parametrize('updates', [6, 5])
def test_a_kill_at_any_moment_leaves_a_whole_newest_checkpoint(tmp_path, monkeypatch, updates):
  """Every call that changes the folder fails in turn, as if the process had ended there."""

  functions = [
    (os, 'rename'),
    (os, 'fsync'),
    (os, 'unlink'),
    (os, 'rmdir'),
    (np, 'savez'),
    (pathlib.Path, 'mkdir'),
    (json, 'dump'),
  ]
  for wanted in range(1, 50):
    folder = tmp_path / str(wanted)
    _save(folder, 4, keep=1)
    _save(folder, 5, keep=1)
    calls: list[str] = []
    with monkeypatch.context() as patch:
      for module, name in functions:
        patch.setattr(module, name, killing(module, name, wanted, calls))
      try:
        _save(folder, updates, meta={'new': True}, keep=1)
      except Killed:
        pass
      else:
        break
    newest = checkpoint.newest(folder)
    assert newest is not None, calls
    assert checkpoint.load(newest).meta in (_META, {'new': True}), calls
    for path in folder.iterdir():
      if path.name.isdigit():
        checkpoint.load(path)
    _save(folder, 7, keep=1)
    assert _names(folder) == ['000000000007'], calls
  assert wanted > 5
  assert checkpoint.load(checkpoint.newest(folder)).meta == {'new': True}


def test_nothing_saved_is_no_checkpoint(tmp_path):
  assert checkpoint.newest(tmp_path) is None
  assert checkpoint.newest(tmp_path / 'absent') is None


def _corrupt(path, offset=None):
  data = bytearray(path.read_bytes())
  data[len(data) // 2 if offset is None else offset] ^= 0xFF
  path.write_bytes(data)


def _truncate(path):
  path.write_bytes(path.read_bytes()[:-10])


def _edit_meta(change):

  def edit(path):
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))

  return edit


@pytest.mark.parametrize(
  'file, spoil',
  [
    ('arrays.npz', _corrupt),
    ('arrays.npz', _truncate),
    ('arrays.npz', lambda path: path.write_bytes(b'')),
    ('arrays.npz', lambda path: path.unlink()),
    ('meta.json', _truncate),
    ('meta.json', lambda path: path.unlink()),
    ('meta.json', lambda path: path.write_bytes(b'\xff\xfe\x00')),
    ('meta.json', lambda path: path.write_text('[1, 2]')),
    ('meta.json', lambda path: path.write_text('{}')),
    ('meta.json', _edit_meta(lambda record: record.update(sha256='0' * 64))),
    ('meta.json', _edit_meta(lambda record: record['meta']['counts'].update(agent_steps=11))),
    ('meta.json', _edit_meta(lambda record: record['meta'].pop('resumptions'))),
  ],
)
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path, file, spoil):
  path = _save(tmp_path, 12)
  spoil(path / file)
  message = _error(path)
  assert str(path) in message
  assert f'delete the folder {path.name}' in message


def test_the_file_that_is_corrupt_is_named(tmp_path):
  path = _save(tmp_path, 12)
  _corrupt(path / 'arrays.npz')
  assert str(path / 'arrays.npz') in _error(path)
  path = _save(tmp_path, 13)
  _edit_meta(lambda record: record['meta'].update(resumptions=0))(path / 'meta.json')
  assert str(path / 'meta.json') in _error(path)


def test_another_format_is_refused(tmp_path):
  path = _save(tmp_path, 12)
  _edit_meta(lambda record: record.update(format=99))(path / 'meta.json')
  assert 'format 99' in _error(path)


def test_find_takes_a_run_folder_its_checkpoints_or_one_of_them(tmp_path):
  run = tmp_path / 'run'
  older, newer = _save(run / 'checkpoints', 5), _save(run / 'checkpoints', 6)
  assert checkpoint.find(run) == newer
  assert checkpoint.find(run / 'checkpoints') == newer
  assert checkpoint.find(older) == older
  link = tmp_path / 'latest'
  link.symlink_to(run)
  assert checkpoint.find(link) == link / 'checkpoints' / newer.name
  assert checkpoint.load_from(str(older)).path == older


def test_find_says_where_there_is_none(tmp_path):
  for path in (tmp_path, tmp_path / 'absent'):
    with pytest.raises(types.UserError, match='no checkpoint in') as error:
      checkpoint.find(path)
    assert str(path) in str(error.value)


def _replay(folder, content=b'first'):
  """As Reverb leaves it: a folder beside the checkpoints, with files in it."""
  folder.mkdir(parents=True)
  (folder / 'chunks.tfrecord').write_bytes(content)
  (folder / 'DONE').touch()
  return folder


def _save_with_replay(folder, updates, content, keep=3):
  replay = _replay(folder / 'replay_in_progress' / '2020', content)
  return checkpoint.save(folder, updates, _ARRAYS, _META, keep, replay)


def _content(path):
  folder = checkpoint.replay_folder(path)
  return folder and (folder / 'chunks.tfrecord').read_bytes()


def test_a_replay_memory_moves_in_and_older_checkpoints_lose_theirs(tmp_path):
  paths = [_save_with_replay(tmp_path, i, b'%d' % i, keep=2) for i in range(3)]
  assert _names(tmp_path) == [paths[1].name, paths[2].name, 'replay_in_progress']
  assert not list((tmp_path / 'replay_in_progress').iterdir())
  assert _content(paths[1]) is None
  assert _content(paths[2]) == b'2'
  for path in paths[1:]:
    assert checkpoint.load(path).meta == _META
  assert checkpoint.newest(tmp_path) == paths[2]


def test_a_second_save_at_the_same_update_has_the_second_memory(tmp_path):
  _save_with_replay(tmp_path, 7, b'first')
  path = _save_with_replay(tmp_path, 7, b'second')
  assert _content(path) == b'second'
  assert _names(tmp_path) == [path.name, 'replay_in_progress']


def test_a_second_save_without_a_memory_keeps_the_first(tmp_path):
  """As a resumption saves, before it has learnt anything."""
  first = _save_with_replay(tmp_path, 7, b'first') / 'replay' / 'chunks.tfrecord'
  saved_s = first.stat().st_mtime_ns
  path = _save(tmp_path, 7, meta={'resumptions': 3})
  assert checkpoint.load(path).meta == {'resumptions': 3}
  assert _content(path) == b'first'
  assert (path / 'replay' / 'chunks.tfrecord').stat().st_mtime_ns == saved_s
  path.rename(path.with_name(f'{path.name}.replaced'))  # a kill between two renames
  assert _content(_save(tmp_path, 7)) == b'first'
  assert _names(tmp_path) == [path.name, 'replay_in_progress']


def test_a_memory_that_is_not_whole_is_not_vouched_for_by_a_second_save(tmp_path):
  path = _save_with_replay(tmp_path, 7, b'first')
  (path / 'replay' / 'chunks.tfrecord').write_bytes(b'fir')
  assert _content(_save(tmp_path, 7)) is None


def test_checkpoints_without_a_memory_leave_the_last_one_alone(tmp_path):
  """A full disk, which keeps the memory from being saved, must not cost the one there is."""
  older = _save_with_replay(tmp_path, 1, b'first')
  newer = [_save(tmp_path, updates, keep=2) for updates in (2, 3, 4, 5)]
  assert _names(tmp_path) == [older.name, newer[2].name, newer[3].name, 'replay_in_progress']
  assert _content(older) == b'first'
  assert checkpoint.newest(tmp_path) == newer[3]
  last = _save_with_replay(tmp_path, 6, b'second', keep=2)
  assert _names(tmp_path) == [newer[3].name, last.name, 'replay_in_progress']
  assert _content(last) == b'second'


@pytest.mark.parametrize('updates', [6, 5])
def test_a_kill_at_any_moment_leaves_a_memory(tmp_path, monkeypatch, updates):
  """Whether the next save is of the same update or of a later one, and has no memory."""
  for wanted in range(1, 50):
    folder = tmp_path / str(wanted)
    _save_with_replay(folder, 5, b'first', keep=1)
    calls: list[str] = []
    with monkeypatch.context() as patch:
      for module, name in [(os, 'rename'), (os, 'link'), (os, 'unlink'), (os, 'rmdir')]:
        patch.setattr(module, name, killing(module, name, wanted, calls))
      try:
        _save(folder, updates, keep=1)
      except Killed:
        pass
      else:
        break
    memories = [_content(path) for path in checkpoint.all_whole(folder)]
    assert b'first' in memories, calls
  assert wanted > 1


def test_a_kill_before_the_rename_leaves_the_older_memory(tmp_path, monkeypatch):
  older = _save_with_replay(tmp_path, 1, b'first')
  rename = os.rename

  def killed(source, target):
    if pathlib.Path(source).name.endswith('.partial'):
      raise KeyboardInterrupt
    rename(source, target)

  monkeypatch.setattr(os, 'rename', killed)
  with pytest.raises(KeyboardInterrupt):
    _save_with_replay(tmp_path, 2, b'second')
  monkeypatch.undo()
  assert checkpoint.newest(tmp_path) == older
  assert _content(older) == b'first'
  newest = _save_with_replay(tmp_path, 3, b'third')
  assert _names(tmp_path) == [older.name, newest.name, 'replay_in_progress']
  assert _content(newest) == b'third'


@pytest.mark.parametrize(
  'spoil',
  [
    lambda folder: (folder / 'chunks.tfrecord').write_bytes(b'fir'),
    lambda folder: (folder / 'chunks.tfrecord').write_bytes(b''),
    lambda folder: (folder / 'chunks.tfrecord').unlink(),
    lambda folder: (folder / 'DONE').unlink(),
    lambda folder: (folder / 'more').touch(),
    lambda folder: (folder.parent / 'meta.json').write_bytes(b'{'),
    lambda folder: (folder.parent / 'meta.json').write_text('{}'),
    lambda folder: (folder.parent / 'meta.json').unlink(),
  ],
)
def test_a_memory_that_is_not_whole_is_refused_by_name(tmp_path, spoil):
  path = _save_with_replay(tmp_path, 1, b'first')
  spoil(path / 'replay')
  with pytest.raises(types.UserError) as error:
    checkpoint.replay_folder(path)
  assert str(path) in str(error.value)
  assert len(str(error.value).splitlines()) <= 4


def test_imports_no_tensorflow():
  code = (
    'import sys; from seed_acme import checkpoint; '
    'sys.exit(any(m in sys.modules for m in ("tensorflow", "reverb", "sonnet")))'
  )
  assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
