"""Damaged or forged checkpoints: refused by name, skipped or set aside."""

import hashlib
import json
import zipfile

import pytest

from seed_acme import types
from seed_acme.storage import checkpoint
from tests.storage import saved


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
  path = saved.save(tmp_path, 12)
  spoil(path / file)
  message = saved.error(path)
  assert str(path) in message


def test_the_file_that_is_corrupt_is_named(tmp_path):
  path = saved.save(tmp_path, 12)
  _corrupt(path / 'arrays.npz')
  assert f'{path / "arrays.npz"} is corrupt (its checksum differs)' in saved.error(path)
  path = saved.save(tmp_path, 13)
  _edit_meta(lambda record: record['meta'].update(resumptions=0))(path / 'meta.json')
  assert str(path / 'meta.json') in saved.error(path)


def test_another_format_is_refused(tmp_path):
  path = saved.save(tmp_path, 12)
  _edit_meta(lambda record: record.update(format=99))(path / 'meta.json')
  assert 'format 99' in saved.error(path)


def _damaged_last(folder):
  """Makes three checkpoints, the last two damaged."""
  paths = [saved.save(folder, i, keep=3) for i in (1, 2, 3)]
  for path in paths[1:]:
    _truncate(path / 'arrays.npz')
  return paths


def test_the_newest_whole_checkpoint_is_taken_and_those_skipped_are_named(tmp_path):
  paths = _damaged_last(tmp_path / 'checkpoints')
  told = []
  assert checkpoint.load_newest(tmp_path / 'checkpoints', told.append).path == paths[0]
  assert [path.name in text for path, text in zip(reversed(paths), told)] == [True, True]
  assert all(f'for {paths[0].name}' in text and 'corrupt' in text for text in told)
  assert checkpoint.load_found(tmp_path).path == paths[0]
  assert checkpoint.num_resumptions(tmp_path / 'checkpoints') == saved.META['resumptions'] + 1
  with pytest.raises(checkpoint.Damaged):  # a checkpoint requested by name
    checkpoint.load_found(paths[2])


def test_damaged_checkpoints_are_set_aside_so_that_none_counts_as_the_newest(tmp_path):
  paths = _damaged_last(tmp_path)
  assert len(checkpoint.set_damaged_aside(tmp_path)) == 2
  assert saved.names(tmp_path) == [paths[0].name, *(f'{path.name}.damaged' for path in paths[1:])]
  assert checkpoint.set_damaged_aside(tmp_path) == []
  # Even if only one is kept, it is the one written last.
  again = saved.save(tmp_path, 2, keep=1)
  assert checkpoint.newest(tmp_path) == again and not paths[0].exists()


def test_where_no_checkpoint_is_whole_the_error_says_so_and_nothing_is_renamed(tmp_path):
  paths = _damaged_last(tmp_path)
  _truncate(paths[0] / 'arrays.npz')
  before = saved.names(tmp_path)
  assert checkpoint.set_damaged_aside(tmp_path) == []
  with pytest.raises(checkpoint.Damaged, match=f'no checkpoint in {tmp_path} is whole') as error:
    checkpoint.load_newest(tmp_path)
  assert '(3 tried)' in str(error.value) and saved.names(tmp_path) == before


def _header(text):
  """Returns an array file with this header and four bytes of data."""
  padded = text.encode().ljust(118) + b'\n'
  return b'\x93NUMPY\x01\x00' + len(padded).to_bytes(2, 'little') + padded + bytes(4)


def _bomb(path):
  with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr('a.npy', bytes(1 << 20))


def _forge(header):

  def forge(path):
    with zipfile.ZipFile(path, 'w') as archive:
      archive.writestr('a.npy', _header(header))

  return forge


@pytest.mark.parametrize(
  'forge',
  [
    _forge("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}"),
    _forge("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
    _forge("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
    _forge('(' * 110),
    _forge('1'),
    _forge("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"[:-1]),
    _forge("{'descr': '<f4', 'fortran_order': False}"),
    _forge("{'descr': ['f4', 'f4', 'f4'], 'fortran_order': False, 'shape': (1,)}"),
    _bomb,
  ],
)
def test_forged_arrays_are_refused_in_one_line_though_their_checksum_is_right(tmp_path, forge):
  path = saved.save(tmp_path, 12)
  forge(path / 'arrays.npz')
  digest = hashlib.sha256((path / 'arrays.npz').read_bytes()).hexdigest()
  _edit_meta(lambda record: record.update(sha256=digest))(path / 'meta.json')
  message = saved.error(path)
  assert str(path) in message and len(message.splitlines()) == 1
  with pytest.raises(types.UserError):  # exit code 2
    checkpoint.load(path)


@pytest.mark.parametrize('error', [EOFError, IndexError, AttributeError, OverflowError])
def test_whatever_reading_forged_arrays_raises_is_told_in_one_line(tmp_path, monkeypatch, error):
  path = saved.save(tmp_path, 12)

  def read(*_):
    raise error

  monkeypatch.setattr(zipfile.ZipFile, 'read', read)
  with pytest.raises(
    checkpoint.Forged, match=f'{path}/arrays.npz holds no arrays .{error.__name__}'
  ):
    checkpoint.load(path)


def _forge_meta(path, meta):
  text = json.dumps(meta, sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()
  _edit_meta(lambda record: record.update(meta=meta, meta_sha256=digest))(path / 'meta.json')


@pytest.mark.parametrize(
  'meta, words',
  [
    ([], '"meta" is a list, no object'),
    (None, '"meta" is a NoneType'),
    ({'counts': [1, 2]}, '"counts" is a list, no object'),
    ({'counts': {'agent_steps': '7'}}, 'agent_steps of "counts" is \'7\', no count'),
    ({'counts': {'agent_steps': -1}}, 'is -1, no count'),
    ({'counts': {'updates': 1.5}}, 'updates of "counts" is 1.5, no count'),
    ({'counts': {'updates': 2**70}}, 'no count'),
    ({'counts': {'wall_s': float('nan')}}, 'wall_s of "counts" is nan'),
    ({'counts': {'steps': 3}}, "unknown 'steps'"),
    ({'resumptions': {}}, '"resumptions" is {}, no count'),
    ({'resumptions': True}, '"resumptions" is True'),
    ({'episodes': []}, '"episodes" is a list'),
    ({'best': [3, 1.0, 10]}, '"best" is [3, 1.0, 10], not updates'),
    ({'best': {'updates': 3}}, 'not updates, evaluation_return and num_episodes'),
    (
      {'best': {'updates': 1.5, 'evaluation_return': 1.0, 'num_episodes': 10}},
      'updates of "best" is 1.5, no number',
    ),
    (
      {'best': {'updates': 1, 'evaluation_return': float('inf'), 'num_episodes': 10}},
      'evaluation_return of "best" is inf, no number',
    ),
    ({'episodes': {'training': {}}}, 'training of "episodes" is a dict, no list'),
    ({'episodes': {'training': [[1.0, 2.0]]}}, 'holds [1.0, 2.0], not score'),
    ({'episodes': {'training': [[1.0, 'a', 3]]}}, 'not score, return, length and step'),
    ({'episodes': {'training': [[1.0, 2.0, 3, 4, 5]]}}, 'not score, return, length and step'),
  ],
)
def test_a_forged_record_is_refused_and_an_older_checkpoint_taken(tmp_path, meta, words):
  older, path = saved.save(tmp_path, 11), saved.save(tmp_path, 12)
  _forge_meta(path, meta)
  with pytest.raises(types.UserError) as error:
    checkpoint.load(path)
  assert str(path / 'meta.json') in str(error.value) and words in str(error.value)
  assert checkpoint.load_newest(tmp_path).path == older
  _forge_meta(older, meta)
  with pytest.raises(types.UserError, match='2 tried'):
    checkpoint.load_newest(tmp_path)


@pytest.mark.parametrize('key', ['counts', 'resumptions'])
def test_what_a_record_lacks_is_named_when_it_is_asked_for(tmp_path, key):
  path = saved.save(tmp_path, 12)
  _forge_meta(path, {name: value for name, value in saved.META.items() if name != key})
  with pytest.raises(types.UserError, match=f'"meta" lacks "{key}"'):
    getattr(checkpoint.load(path), key)
