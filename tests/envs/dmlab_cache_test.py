"""The level cache: names, folders, buckets, and errors of reading and writing."""

import os

import pytest

from seed_acme import types
from seed_acme.envs import dmlab_cache


@pytest.fixture(name='pk3')
def fixture_pk3(tmp_path):
  path = tmp_path / 'compiled.pk3'
  path.write_bytes(b'a level')
  return str(path)


@pytest.fixture(name='folder', params=['local', 'file', 'ram'])
def fixture_folder(request, tmp_path):
  """Returns a local folder, or one on TensorFlow's file systems, which also serve gs://."""
  return {
    'local': f'{tmp_path}/levels',
    'file': f'file://{tmp_path}/levels',
    'ram': f'ram://{tmp_path.name}/levels',
  }[request.param]


def test_a_key_names_a_file_by_its_md5():
  # md5 of `hello`: 5d41402abc4b2a76b9719d911017c592.
  path = dmlab_cache.LevelCache('gs://bucket/levels').path('hello')
  assert path == 'gs://bucket/levels/5d4/1402abc4b2a76b9719d911017c592'
  assert dmlab_cache.LevelCache('levels/').path('hello') == (
    'levels/5d4/1402abc4b2a76b9719d911017c592'
  )


def test_what_is_written_is_fetched(folder, pk3, tmp_path):
  cache, again = dmlab_cache.LevelCache(folder), str(tmp_path / 'again.pk3')
  assert cache.fetch('a key', again) is False
  assert not os.path.exists(again)
  cache.write('a key', pk3)
  assert cache.fetch('another key', again) is False
  assert dmlab_cache.LevelCache(folder).fetch('a key', again) is True
  with open(again, 'rb') as file:
    assert file.read() == b'a level'


def test_two_writers_of_one_key(folder, pk3, tmp_path):
  for _ in range(2):
    dmlab_cache.LevelCache(folder).write('a key', pk3)
  assert dmlab_cache.LevelCache(folder).fetch('a key', str(tmp_path / 'again.pk3'))


def test_a_write_that_fails_leaves_no_part_of_a_file(tmp_path):
  cache = dmlab_cache.LevelCache(str(tmp_path / 'levels'))
  with pytest.raises(types.UserError, match=r'cannot write a level .*level_cache \(.*levels\)'):
    cache.write('a key', str(tmp_path / 'absent.pk3'))
  assert [path for path in (tmp_path / 'levels').rglob('*') if path.is_file()] == []


def test_a_folder_that_is_none_is_a_user_error(tmp_path, pk3):
  (tmp_path / 'levels').write_text('a file')
  cache = dmlab_cache.LevelCache(str(tmp_path / 'levels'))
  with pytest.raises(types.UserError, match='check the path and its permissions'):
    cache.write('a key', pk3)


def test_a_level_that_cannot_be_copied_here_is_a_user_error(tmp_path, pk3):
  cache = dmlab_cache.LevelCache(str(tmp_path / 'levels'))
  cache.write('a key', pk3)
  with pytest.raises(types.UserError, match='cannot read a level'):
    cache.fetch('a key', str(tmp_path / 'no' / 'folder' / 'again.pk3'))


def test_a_file_of_the_cache_may_be_read_by_others(tmp_path, pk3):
  cache = dmlab_cache.LevelCache(str(tmp_path / 'levels'))
  cache.write('a key', pk3)
  assert os.stat(cache.path('a key')).st_mode & 0o777 == 0o644
