"""Files through TensorFlow's file systems; front_end/bucket_folder_test.py tests gs://."""

import pytest

from seed_acme.files import bucket


@pytest.fixture(params=['file', 'ram'])
def root(request, tmp_path):
  """Returns a folder on two of TensorFlow's file systems other than the local one."""
  if request.param == 'file':
    return f'file://{tmp_path}/bucket'
  return f'ram://{tmp_path.name}'


@pytest.mark.parametrize(
  'path, is_url',
  [
    ('gs://bucket/run', True),
    ('file:///run', True),
    ('runs/latest', False),
    ('/run', False),
    ('', False),
  ],
)
def test_what_is_a_url(path, is_url):
  assert bucket.is_url(path) == is_url


def test_missing_files_and_folders_are_no_errors(root):
  assert bucket.read_bytes(bucket.join(root, 'a')) is None
  assert bucket.names(bucket.join(root, 'a')) == []
  assert bucket.files_below(bucket.join(root, 'a')) == []
  bucket.delete(bucket.join(root, 'a'))
  bucket.delete_folder(bucket.join(root, 'a'))


def test_a_download_that_finds_nothing_leaves_nothing(root, tmp_path):
  assert not bucket.download(bucket.join(root, 'absent'), tmp_path / 'here')
  assert not (tmp_path / 'here').exists()


def test_files_go_there_and_come_back(root, tmp_path):
  (tmp_path / 'here').write_bytes(b'one')
  bucket.upload(tmp_path / 'here', bucket.join(root, 'a', 'b', 'one'))
  bucket.write_bytes(bucket.join(root, 'a', 'two'), b'two')
  assert bucket.names(bucket.join(root, 'a')) == ['b', 'two']
  assert bucket.files_below(bucket.join(root, 'a')) == ['b/one', 'two']
  assert bucket.read_bytes(bucket.join(root, 'a', 'two')) == b'two'
  assert bucket.download(bucket.join(root, 'a', 'b', 'one'), tmp_path / 'again')
  assert (tmp_path / 'again').read_bytes() == b'one'


def test_a_file_is_moved(root):
  bucket.write_bytes(bucket.join(root, 'a', 'b'), b'text')
  bucket.rename(bucket.join(root, 'a', 'b'), bucket.join(root, 'c', 'd', 'b'))
  assert bucket.files_below(root) == ['c/d/b']
  assert bucket.read_bytes(bucket.join(root, 'c', 'd', 'b')) == b'text'


def test_a_file_is_replaced_whole(tmp_path):
  url = f'file://{tmp_path}/file'  # TensorFlow's ram:// appends
  bucket.write_bytes(url, b'a longer text')
  (tmp_path / 'short').write_bytes(b'short')
  bucket.upload(tmp_path / 'short', url)
  assert bucket.read_bytes(url) == b'short'


def test_folders_are_deleted_with_all_in_them(root):
  bucket.write_bytes(bucket.join(root, 'a', 'b', 'c'), b'')
  bucket.write_bytes(bucket.join(root, 'd'), b'')
  bucket.delete_folder(bucket.join(root, 'a'))
  assert bucket.files_below(root) == ['d']


def test_a_file_that_is_gone_is_told_apart(root, tmp_path):
  with pytest.raises(FileNotFoundError):
    bucket.upload(tmp_path / 'absent', bucket.join(root, 'a'))


def test_errors_name_the_file_the_reason_and_the_fix():
  with pytest.raises(bucket.BucketError) as caught:
    bucket.write_bytes('nowhere://bucket/file', b'')
  message = str(caught.value)
  assert message.startswith('cannot write nowhere://bucket/file: ')
  assert "'nowhere' not implemented" in message and 'check the path' in message
  assert '\n' not in message
