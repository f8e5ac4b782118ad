"""Checkpoints: their files, the state after a kill, and which one is found."""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seed_acme import types
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import opening
from tests.storage import saved


def test_what_is_saved_is_loaded(tmp_path):
  path = saved.save(tmp_path / 'checkpoints', 12)
  assert path == tmp_path / 'checkpoints' / '000000000012'
  loaded = checkpoint.load(path)
  assert loaded.path == path
  assert loaded.meta == saved.META
  assert loaded.arrays.keys() == saved.ARRAYS.keys()
  for name, array in saved.ARRAYS.items():
    assert loaded.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(loaded.arrays[name], array)


def test_the_newest_are_kept_in_the_order_of_updates(tmp_path):
  for updates in (2, 9, 10, 100):
    saved.save(tmp_path, updates, keep=2)
  assert saved.names(tmp_path) == ['000000000010', '000000000100']
  assert checkpoint.newest(tmp_path).name == '000000000100'


def test_those_that_are_asked_for_stay_beyond_the_newest(tmp_path):
  for updates in (2, 9, 10, 100):
    checkpoint_writer.save(
      tmp_path, updates, saved.ARRAYS, saved.META, keep=1, keep_also={2, 10, 77}
    )
  assert saved.names(tmp_path) == ['000000000002', '000000000010', '000000000100']
  saved.save(tmp_path, 101, keep=1)
  assert saved.names(tmp_path) == ['000000000101']


def test_keeping_one(tmp_path):
  for updates in (1, 1, 2):
    saved.save(tmp_path, updates, keep=1)
  assert saved.names(tmp_path) == ['000000000002']


def test_saved_twice_at_one_update_the_later_counts(tmp_path):
  saved.save(tmp_path, 5)
  saved.save(tmp_path, 5, arrays={'a': np.ones(2)}, meta={'resumptions': 3})
  assert saved.names(tmp_path) == ['000000000005']
  loaded = checkpoint.load(checkpoint.newest(tmp_path))
  assert list(loaded.arrays) == ['a']
  assert loaded.meta == {'resumptions': 3}


def test_a_partial_folder_is_ignored_and_cleared_away(tmp_path):
  saved.save(tmp_path, 5)
  shutil.copytree(tmp_path / '000000000005', tmp_path / '000000000007.partial')
  (tmp_path / '000000000008.partial').mkdir()
  assert checkpoint.newest(tmp_path).name == '000000000005'
  assert checkpoint.find(tmp_path).name == '000000000005'
  saved.save(tmp_path, 9)
  assert saved.names(tmp_path) == ['000000000005', '000000000009']


@pytest.mark.parametrize('updates', [6, 5])
def test_a_kill_at_any_moment_leaves_a_whole_newest_checkpoint(tmp_path, monkeypatch, updates):
  """Each call that changes the folder fails in turn, as if the process had ended there."""

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
    saved.save(folder, 4, keep=1)
    saved.save(folder, 5, keep=1)
    calls: list[str] = []
    with monkeypatch.context() as patch:
      for module, name in functions:
        patch.setattr(module, name, saved.killing(module, name, wanted, calls))
      try:
        saved.save(folder, updates, meta={'new': True}, keep=1)
      except saved.Killed:
        pass
      else:
        break
    newest = checkpoint.newest(folder)
    assert newest is not None, calls
    assert checkpoint.load(newest).meta in (saved.META, {'new': True}), calls
    for path in folder.iterdir():
      if path.name.isdigit():
        checkpoint.load(path)
    saved.save(folder, 7, keep=1)
    assert saved.names(folder) == ['000000000007'], calls
  assert wanted > 5
  assert checkpoint.load(checkpoint.newest(folder)).meta == {'new': True}


def test_nothing_saved_is_no_checkpoint(tmp_path):
  assert checkpoint.newest(tmp_path) is None
  assert checkpoint.newest(tmp_path / 'absent') is None


def test_find_takes_a_run_folder_its_checkpoints_or_one_of_them(tmp_path):
  run = tmp_path / 'run'
  older, newer = saved.save(run / 'checkpoints', 5), saved.save(run / 'checkpoints', 6)
  assert checkpoint.find(run) == newer
  assert checkpoint.find(run / 'checkpoints') == newer
  assert checkpoint.find(older) == older
  link = tmp_path / 'latest'
  link.symlink_to(run)
  assert checkpoint.find(link) == link / 'checkpoints' / newer.name
  assert opening.load_checkpoint(str(older)).path == older


def test_a_full_disk_leaves_the_older_checkpoints_and_no_part_of_the_new_one(tmp_path, monkeypatch):
  older = saved.save(tmp_path, 1)

  def full(*_, **__):
    raise OSError(errno.ENOSPC, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match='No space'):
      saved.save(tmp_path, 2)
  assert saved.names(tmp_path) == [older.name]
  assert checkpoint.load(older).meta == saved.META


def test_find_says_where_there_is_none(tmp_path):
  for path in (tmp_path, tmp_path / 'absent'):
    with pytest.raises(types.UserError, match='no checkpoint in') as error:
      checkpoint.find(path)
    assert str(path) in str(error.value)


def test_imports_no_tensorflow():
  code = (
    'import sys; from seed_acme.storage import checkpoint; '
    'sys.exit(any(m in sys.modules for m in ("tensorflow", "reverb", "sonnet")))'
  )
  assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0
