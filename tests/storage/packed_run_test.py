"""Packed runs survive a round trip, and a malicious file does no harm."""

import errno
import json
import os
import pathlib
import shutil
import stat
import struct
import warnings
import zipfile

import pytest

from seed_acme import types
from seed_acme.files import disk
from seed_acme.storage import checkpoint
from seed_acme.storage import opening
from seed_acme.storage import packed_run
from tests.storage import saved

_NAME = 'checkpoints/000000000012'
_RECORD = {'format': packed_run.FORMAT}


@pytest.fixture(name='contents')
def _contents(tmp_path):
  """Returns the contents of a pack, by name."""
  path = saved.save(tmp_path / 'made' / 'checkpoints', 12)
  return {
    'pack.json': json.dumps(_RECORD).encode(),
    'README.md': b'# A run\n',
    'config.json': b'{"name": "catch"}',
    f'{_NAME}/arrays.npz': path / 'arrays.npz',
    f'{_NAME}/meta.json': path / 'meta.json',
    'metrics.csv': b'agent_steps\n' * 1000,
    'video.mp4': b'pictures',
  }


@pytest.fixture(name='file')
def _file(tmp_path, contents):
  packed_run.write(tmp_path / 'new' / 'run.zip', contents)
  return tmp_path / 'new' / 'run.zip'


def _rewritten(file, change):
  """Rewrites the zip `file` with `change(archive, name, content)` for each part."""
  out = file.with_name('changed.zip')
  with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, 'w') as new:
    for member in old.infolist():
      change(new, member.filename, old.read(member))
  return out


def _added(name, content=b'x', kind=zipfile.ZIP_STORED, mode=0):
  """Returns a change that adds a part."""

  def change(archive, old_name, old):
    archive.writestr(old_name, old)
    if old_name == 'pack.json':
      info = zipfile.ZipInfo(name)
      info.external_attr = mode << 16
      with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about duplicate names
        archive.writestr(info, content, kind)

  return change


def _replaced(name, content, kind=zipfile.ZIP_STORED):
  def change(archive, old_name, old):
    is_it = old_name == name
    if is_it and content is None:
      return
    archive.writestr(old_name, content if is_it else old, kind if is_it else None)

  return change


def _refusal(file, tmp_path):
  """Returns the message, after checking that every reader refuses and leaves no file behind."""
  out = tmp_path / 'out'
  before = sorted(tmp_path.rglob('*'))
  with pytest.raises(types.UserError) as error:
    packed_run.unpack(file, out)
  assert sorted(tmp_path.rglob('*')) == before
  for door in (opening.open_run, lambda path: opening.load_checkpoint(str(path))):
    with pytest.raises(types.UserError):
      door(file)
  message = str(error.value)
  assert str(file) in message and len(message.splitlines()) <= 4
  assert str(out) not in message and '.out.' not in message
  return message


def test_what_is_packed_is_unpacked(file, contents, tmp_path):
  run = packed_run.unpack(file, tmp_path / 'out')
  assert run.holds_run() and run.path == tmp_path / 'out'
  there = {p.relative_to(run.path).as_posix(): p for p in run.path.rglob('*') if p.is_file()}
  assert there.keys() == contents.keys()
  for name, path in there.items():
    expected = contents[name]
    assert path.read_bytes() == (expected if isinstance(expected, bytes) else expected.read_bytes())
    assert not path.stat().st_mode & stat.S_IXUSR
  assert checkpoint.load(checkpoint.newest(run.checkpoints)).meta == saved.META
  assert file.stat().st_size < 8000  # the log is compressed
  assert [path.name for path in file.parent.iterdir()] == ['run.zip']


def test_it_is_opened_as_it_is_once_and_anew_when_the_file_has_changed(file, contents):
  run = opening.open_run(str(file))
  assert run.name == str(file) and run.holds_run()
  assert opening.open_run(file).path == run.path
  assert opening.load_of_run(run).meta == saved.META
  assert opening.load_checkpoint(str(file)).meta == saved.META
  assert opening.load_checkpoint(f'{file}@12').meta == saved.META
  with pytest.raises(types.UserError, match=f'{file} has no checkpoint of update 3'):
    opening.load_of_run(run, 3)
  file.unlink()
  packed_run.write(file, {**contents, 'config.json': b'{"name": "other"}'})
  assert json.loads(opening.open_run(file).config.read_text()) == {'name': 'other'}


@pytest.mark.parametrize(
  'name',
  [
    '../evil',
    '/tmp/evil',
    'checkpoints/../../evil',
    'checkpoints/000000000012/../../../evil',
    'checkpoints\\..\\evil',
    'checkpoints/000000000012/evil.pkl',
    'checkpoints/000000000012/replay/chunk',
    'checkpoints/12/arrays.npz',
    'evil.py',
    'seed_acme.py',
    'config.json/x',
    'checkpoints/',
    'PACK.JSON',
    '',
    'x' * 5000,
  ],
)
def test_no_other_name_is_taken(file, tmp_path, name):
  message = _refusal(_rewritten(file, _added(name)), tmp_path)
  assert 'which is no file of a packed run' in message and len(message) < 600
  assert not list(tmp_path.rglob('*evil*'))


@pytest.mark.parametrize(
  'change, said',
  [
    (_added('plot.png', b'/etc/passwd', mode=stat.S_IFLNK | 0o777), 'a link or no plain file'),
    (_added('plot.png', mode=stat.S_IFIFO), 'a link or no plain file'),
    (_added('pack.json', b'{}'), "'pack.json' more than once"),
    (_added('checkpoints/000000000013/meta.json'), 'it holds 2 checkpoints'),
    (_replaced('config.json', None), 'it lacks config.json'),
    (_replaced('pack.json', None), 'it lacks pack.json'),
    (_replaced(f'{_NAME}/arrays.npz', None), 'is no readable checkpoint'),
    (_replaced(f'{_NAME}/arrays.npz', b'x'), 'is corrupt (its checksum differs)'),
    (_replaced(f'{_NAME}/meta.json', b'{}'), 'is no readable checkpoint'),
    (_replaced('pack.json', b'{"format": 2}'), "format '2', and this version reads 1"),
    (_replaced('pack.json', b'[]'), "format 'None'"),
    (_replaced('config.json', b'{'), 'config.json is not readable as JSON'),
    (_replaced('config.json', b'\xff\xfe\x00'), 'config.json is not readable as JSON'),
    (_replaced('config.json', b'[' * 100_000), 'config.json is not readable as JSON'),
    (_replaced('video.mp4', bytes(10**7), zipfile.ZIP_DEFLATED), 'must be stored as it is'),
    (_replaced('metrics.csv', b'1', zipfile.ZIP_LZMA), 'must be stored as it is'),
    (
      _replaced('README.md', bytes((1 << 24) + 1), zipfile.ZIP_DEFLATED),
      "'README.md' in it is larger than 16 MiB",
    ),
  ],
)
def test_what_is_no_pack_is_refused_in_words(file, tmp_path, change, said):
  assert said in _refusal(_rewritten(file, change), tmp_path)


@pytest.mark.parametrize('kept', [0, 10, 300, -30, -1])
def test_a_file_that_was_cut_short_is_refused(file, tmp_path, kept):
  file.write_bytes(file.read_bytes()[:kept])
  assert 'it is not whole, or no zip at all' in _refusal(file, tmp_path)


def test_other_files_and_folders_are_no_packs(tmp_path):
  other = tmp_path / 'other.zip'
  other.write_text('a text')
  assert 'no zip at all' in _refusal(other, tmp_path)
  with zipfile.ZipFile(other, 'w') as archive:
    archive.writestr('holiday.jpg', b'x')
  assert "it holds 'holiday.jpg'" in _refusal(other, tmp_path)
  for path in (tmp_path / 'absent.zip', tmp_path):
    with pytest.raises(types.UserError, match='cannot read'):
      packed_run.unpack(path, tmp_path / 'out')


@pytest.mark.slow
def test_every_byte_that_is_changed_is_found_or_does_no_harm(file, tmp_path):
  whole = file.read_bytes()
  for at in range(0, len(whole), 7):
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    try:
      run = packed_run.unpack(file, tmp_path / 'out')
    except types.UserError as error:
      assert str(file) in str(error)
    else:
      assert checkpoint.load(checkpoint.newest(run.checkpoints)).meta == saved.META
      shutil.rmtree(run.path)
    assert not list(tmp_path.glob('.*'))


def _with_end(file, **changes):
  """Changes numbers in the record at the end of the zip."""
  fields = dict(zip(('signature', *'abcd', 'size', 'offset', 'comment'), range(8)))
  content = bytearray(file.read_bytes())
  numbers = list(struct.unpack('<4s4H2LH', content[-22:]))
  for name, value in changes.items():
    numbers[fields[name]] = value
  file.write_bytes(content[:-22] + struct.pack('<4s4H2LH', *numbers))


def test_a_zip_that_promises_more_than_it_holds_is_refused(file, tmp_path):
  _with_end(file, size=1 << 17)
  assert 'it holds too many files' in _refusal(file, tmp_path)


def test_many_names_are_not_read(file, tmp_path, monkeypatch):
  with zipfile.ZipFile(file, 'a') as archive:
    for i in range(100, 2000):
      archive.writestr(f'checkpoints/{i:012d}/meta.json', b'')
  monkeypatch.setattr(zipfile.ZipFile, 'infolist', None)  # would list them
  assert 'it holds too many files' in _refusal(file, tmp_path)


def test_parts_that_lie_over_each_other_are_refused(file, tmp_path):
  """A zip bomb does this: two names for the same bytes."""
  arrays = os.urandom(1 << 20)
  big = _rewritten(file, _replaced('video.mp4', arrays))
  with zipfile.ZipFile(big, 'a') as archive:
    [video] = [member for member in archive.infolist() if member.filename == 'video.mp4']
    twin = zipfile.ZipInfo('plot.png')
    for name in ('header_offset', 'CRC', 'file_size', 'compress_size', 'compress_type'):
      setattr(twin, name, getattr(video, name))
    archive.filelist.append(twin)
    archive.NameToInfo['plot.png'] = twin
    archive.writestr('environment.json', b'{}')
  assert 'its parts are larger than the file' in _refusal(big, tmp_path)


def test_the_64_bit_form_is_refused(file, tmp_path):
  content = file.read_bytes()
  file.write_bytes(content[:-22] + b'PK\x06\x07' + bytes(16) + content[-22:])
  assert '64-bit form' in _refusal(file, tmp_path)


def test_an_encrypted_part_is_refused(file, tmp_path):
  content = file.read_bytes()
  at = content.rindex(b'PK\x01\x02')
  file.write_bytes(content[: at + 8] + b'\x01' + content[at + 9 :])
  assert 'is encrypted' in _refusal(file, tmp_path)


def test_it_needs_room_and_leaves_nothing_where_there_is_none(file, tmp_path, monkeypatch):
  before = sorted(tmp_path.rglob('*'))
  with monkeypatch.context() as patch:
    patch.setattr(disk, 'free_bytes', lambda path: 1000)
    with pytest.raises(types.Failure, match='MB free.*: make room there'):
      packed_run.unpack(file, tmp_path / 'out')
  assert sorted(tmp_path.rglob('*')) == before

  def full(*_):
    raise OSError(errno.ENOSPC, 'No space left on device')

  monkeypatch.setattr(shutil, 'copyfileobj', full)
  with pytest.raises(types.Failure, match='is full'):
    packed_run.unpack(file, tmp_path / 'out')
  with pytest.raises(types.Failure, match='is full'):
    monkeypatch.setattr(zipfile.ZipFile, 'writestr', full)
    packed_run.write(tmp_path / 'again.zip', {'pack.json': b'{}'})
  assert sorted(tmp_path.rglob('*')) == before


def test_no_folder_is_written_over(file, tmp_path):
  out = tmp_path / 'out'
  out.mkdir()
  packed_run.unpack(file, out)  # an empty folder
  link = tmp_path / 'link'
  link.symlink_to(tmp_path / 'elsewhere')
  for taken in (out, file, link):
    with pytest.raises(types.UserError, match='is there already: give a new or an empty folder'):
      packed_run.unpack(file, taken)
  with pytest.raises(types.UserError, match='is in a bucket'):
    packed_run.unpack(file, 'gs://bucket/run')
  with pytest.raises(types.UserError, match='cannot write'):
    packed_run.unpack(file, pathlib.Path(file) / 'below')


def test_nothing_of_more_than_4_gib_is_read(file, tmp_path):
  with open(file, 'ab') as sparse:
    sparse.truncate(2**32)
  assert 'it is larger than 4 GiB' in _refusal(file, tmp_path)
