"""Checkpoints with a replay memory."""

import os
import pathlib
import shutil

import pytest

from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from tests.storage import saved


def _replay(folder, content=b'first'):
  """Writes a memory as Reverb does: a folder beside the checkpoints, with files in it."""
  folder.mkdir(parents=True)
  (folder / 'chunks.tfrecord').write_bytes(content)
  (folder / 'DONE').touch()
  return folder


def _save_with_replay(folder, updates, content, keep=3):
  replay = _replay(folder / 'replay_in_progress' / '2020', content)
  return checkpoint_writer.save(folder, updates, saved.ARRAYS, saved.META, keep, replay)


def _content(path):
  folder = checkpoint.replay_folder(path)
  return folder and (folder / 'chunks.tfrecord').read_bytes()


def test_a_replay_memory_moves_in_and_older_checkpoints_lose_theirs(tmp_path):
  paths = [_save_with_replay(tmp_path, i, b'%d' % i, keep=2) for i in range(3)]
  assert saved.names(tmp_path) == [paths[1].name, paths[2].name, 'replay_in_progress']
  assert not list((tmp_path / 'replay_in_progress').iterdir())
  assert _content(paths[1]) is None
  assert _content(paths[2]) == b'2'
  for path in paths[1:]:
    assert checkpoint.load(path).meta == saved.META
  assert checkpoint.newest(tmp_path) == paths[2]


def test_a_second_save_at_the_same_update_has_the_second_memory(tmp_path):
  _save_with_replay(tmp_path, 7, b'first')
  path = _save_with_replay(tmp_path, 7, b'second')
  assert _content(path) == b'second'
  assert saved.names(tmp_path) == [path.name, 'replay_in_progress']


def test_a_second_save_without_a_memory_keeps_the_first(tmp_path):
  """A resumption saves like this, before its first update."""
  first = _save_with_replay(tmp_path, 7, b'first') / 'replay' / 'chunks.tfrecord'
  saved_s = first.stat().st_mtime_ns
  path = saved.save(tmp_path, 7, meta={'resumptions': 3})
  assert checkpoint.load(path).meta == {'resumptions': 3}
  assert _content(path) == b'first'
  assert (path / 'replay' / 'chunks.tfrecord').stat().st_mtime_ns == saved_s
  path.rename(path.with_name(f'{path.name}.replaced'))  # as after a kill between two renames
  assert _content(saved.save(tmp_path, 7)) == b'first'
  assert saved.names(tmp_path) == [path.name, 'replay_in_progress']


def test_a_memory_that_is_not_whole_is_not_vouched_for_by_a_second_save(tmp_path):
  path = _save_with_replay(tmp_path, 7, b'first')
  (path / 'replay' / 'chunks.tfrecord').write_bytes(b'fir')
  assert _content(saved.save(tmp_path, 7)) is None


def test_checkpoints_without_a_memory_leave_the_last_one_alone(tmp_path):
  """If a full disk prevents saving the memory, the existing one must not be lost."""
  older = _save_with_replay(tmp_path, 1, b'first')
  newer = [saved.save(tmp_path, updates, keep=2) for updates in (2, 3, 4, 5)]
  assert saved.names(tmp_path) == [older.name, newer[2].name, newer[3].name, 'replay_in_progress']
  assert _content(older) == b'first'
  assert checkpoint.newest(tmp_path) == newer[3]
  last = _save_with_replay(tmp_path, 6, b'second', keep=2)
  assert saved.names(tmp_path) == [newer[3].name, last.name, 'replay_in_progress']
  assert _content(last) == b'second'


@pytest.mark.parametrize('updates', [6, 5])
def test_a_kill_at_any_moment_leaves_a_memory(tmp_path, monkeypatch, updates):
  """This holds whether the next save is of the same update or a later one, without a memory."""
  for wanted in range(1, 50):
    folder = tmp_path / str(wanted)
    _save_with_replay(folder, 5, b'first', keep=1)
    calls: list[str] = []
    with monkeypatch.context() as patch:
      for module, name in [(os, 'rename'), (os, 'link'), (os, 'unlink'), (os, 'rmdir')]:
        patch.setattr(module, name, saved.killing(module, name, wanted, calls))
      try:
        saved.save(folder, updates, keep=1)
      except saved.Killed:
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
  assert saved.names(tmp_path) == [older.name, newest.name, 'replay_in_progress']
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
  with pytest.raises(checkpoint.Damaged) as error:
    checkpoint.replay_folder(path)
  assert str(path) in str(error.value)
  assert len(str(error.value).splitlines()) <= 4


def _spoil(path):
  (path / 'arrays.npz').write_bytes(b'')


def test_the_memory_of_a_damaged_checkpoint_goes_to_the_one_that_is_resumed_from(tmp_path):
  older = _save_with_replay(tmp_path, 1, b'first')
  donor = _save_with_replay(tmp_path, 2, b'second')
  last = saved.save(tmp_path, 3)
  _spoil(donor)
  _spoil(last)
  told = checkpoint.set_damaged_aside(tmp_path)
  assert (
    told[-1] == f'checkpoint {older.name} gets the replay memory of {donor.name}, which is whole'
  )
  assert _content(older) == b'second'
  assert checkpoint.load_newest(tmp_path).path == older
  assert not list(tmp_path.glob('*.damaged/replay'))  # no second copy of gigabytes stays


def test_a_damaged_memory_goes_nowhere_and_the_one_that_is_there_stays(tmp_path):
  older = _save_with_replay(tmp_path, 1, b'first')
  donor = saved.save(tmp_path, 2)
  _replay(donor / 'replay', b'as if killed before it was complete')
  _spoil(donor)
  assert len(checkpoint.set_damaged_aside(tmp_path)) == 1
  assert _content(older) == b'first'


@pytest.mark.parametrize('wanted', range(1, 6))
def test_a_kill_while_the_memory_moves_loses_it_at_no_moment(tmp_path, monkeypatch, wanted):
  older = _save_with_replay(tmp_path, 1, b'first')
  _spoil(_save_with_replay(tmp_path, 2, b'second'))
  calls = []
  with monkeypatch.context() as patch:
    for module, name in ((shutil, 'rmtree'), (shutil, 'copytree'), (os, 'replace'), (os, 'rename')):
      patch.setattr(module, name, saved.killing(module, name, wanted, calls))
    try:
      checkpoint.set_damaged_aside(tmp_path)
    except saved.Killed:
      pass
  checkpoint.set_damaged_aside(tmp_path)
  assert _content(older) == b'second'


def test_a_full_disk_does_not_keep_a_run_from_resuming_with_the_memory_that_it_has(
  tmp_path, monkeypatch
):
  older = _save_with_replay(tmp_path, 1, b'first')
  donor = _save_with_replay(tmp_path, 2, b'second')
  _replay(older / 'replay', b'first')  # as if killed before it was deleted
  _spoil(donor)

  def full(*_, **__):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(os, 'fsync', full)
    told = checkpoint.set_damaged_aside(tmp_path)
  assert 'cannot be copied' in told[-1] and 'No space left' in told[-1]
  assert f'{donor.name}.damaged' in told[-1]
  assert (tmp_path / f'{donor.name}.damaged' / 'replay' / 'DONE').exists()
  assert checkpoint.load_newest(tmp_path).path == older and _content(older) == b'first'
  assert sorted(path.name for path in older.iterdir()) == ['arrays.npz', 'meta.json', 'replay']


@pytest.mark.parametrize('wanted', [22, 9])
def test_a_disk_that_cannot_sync_folders_saves_all_the_same(tmp_path, monkeypatch, wanted):
  real = os.fsync

  def sync(handle):
    if os.path.isdir(f'/proc/self/fd/{handle}'):
      raise OSError(wanted, os.strerror(wanted))
    real(handle)

  monkeypatch.setattr(os, 'fsync', sync)
  path = _save_with_replay(tmp_path, 1, b'first')
  assert checkpoint.load(path) and _content(path) == b'first'


def test_a_checkpoint_that_is_in_place_is_saved_whatever_comes_after(tmp_path, monkeypatch):
  older = _save_with_replay(tmp_path, 1, b'first', keep=1)
  real = os.fsync

  def sync(handle):
    if os.readlink(f'/proc/self/fd/{handle}') == str(tmp_path):
      raise OSError(5, 'Input/output error')
    real(handle)

  with monkeypatch.context() as patch:
    patch.setattr(os, 'fsync', sync)
    path = _save_with_replay(tmp_path, 2, b'second', keep=1)
  assert _content(path) == b'second' and _content(older) == b'first'  # nothing is deleted


def test_a_new_memory_is_on_the_disk_before_the_old_one_is_deleted(tmp_path, monkeypatch):
  """A file system may delete at once, and write contents half a minute later."""
  older = _save_with_replay(tmp_path, 1, b'first')
  synced, at_deletion = [], []
  real_sync, real_rmtree = os.fsync, shutil.rmtree

  def sync(handle):
    synced.append(os.path.basename(os.readlink(f'/proc/self/fd/{handle}')))
    real_sync(handle)

  def rmtree(path, **options):
    if pathlib.Path(path) == older / 'replay':
      at_deletion.append(set(synced))
    real_rmtree(path, **options)

  monkeypatch.setattr(os, 'fsync', sync)
  monkeypatch.setattr(shutil, 'rmtree', rmtree)
  newer = _save_with_replay(tmp_path, 2, b'second')
  [known] = at_deletion
  assert known >= {'chunks.tfrecord', 'DONE', 'replay', f'{newer.name}.partial', tmp_path.name}
