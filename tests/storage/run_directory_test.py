"""The run folder: creation, `latest`, the lock, JSON files, refusals."""

import json
import os
import pathlib

import numpy as np
import pytest

from seed_acme import types
from seed_acme.files import local
from seed_acme.storage import opening
from seed_acme.storage import run_directory


def test_new_folders_never_coincide_and_have_the_layout(tmp_path):
  runs = [run_directory.new('catch', tmp_path) for _ in range(3)]
  assert len({run.path for run in runs}) == 3
  for run in runs:
    assert run.path.parent == tmp_path / 'catch'
    assert run.logs.is_dir() and run.checkpoints.is_dir() and run.tensorboard.is_dir()
    assert not run.holds_run()
    assert sorted(os.listdir(run.path)) == ['checkpoints', 'logs', 'tensorboard']


@pytest.mark.parametrize('name', ['', '..', 'a/b', '.hidden', 'latest'])
def test_a_name_that_leaves_the_root_is_refused(tmp_path, name):
  with pytest.raises(types.UserError, match='cannot name a folder'):
    run_directory.new(name, tmp_path)


def test_create_keeps_what_a_run_left(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text('{}')
  run.metrics.write_text('agent_steps\n1\n')
  again = run_directory.create(tmp_path / 'run')
  assert again == run and again.holds_run()
  assert run.metrics.read_text() == 'agent_steps\n1\n'


def test_create_takes_a_folder_whose_first_start_was_killed_while_it_wrote(tmp_path):
  (tmp_path / '.write-probe.4711').touch()
  with local.replacing(tmp_path / 'config.json') as temporary:
    temporary.touch()
    run_directory.create(tmp_path)
  (tmp_path / 'config.json').unlink()
  (tmp_path / '.4711.letter.txt').touch()
  with pytest.raises(types.UserError, match=r'belong to no run \(.4711.letter.txt\)'):
    run_directory.create(tmp_path)


def test_create_refuses_a_folder_of_somebody_else(tmp_path):
  (tmp_path / 'thesis.tex').write_text('')
  with pytest.raises(types.UserError, match='thesis.tex'):
    run_directory.create(tmp_path)
  assert os.listdir(tmp_path) == ['thesis.tex']


def test_create_below_a_file_is_a_user_error(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(types.UserError, match='cannot write into'):
    run_directory.create(tmp_path / 'file' / 'run')
  with pytest.raises(types.UserError, match='cannot write into'):
    run_directory.create(tmp_path / 'file')


def test_an_unwritable_folder_is_a_user_error():
  with pytest.raises(types.UserError, match='/proc/no_such_run') as caught:
    run_directory.create('/proc/no_such_run')  # not even root can write there
  assert len(str(caught.value).splitlines()) <= 4


def test_open_existing(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text('{}')
  (tmp_path / 'link').symlink_to('run')
  assert opening.open_run(tmp_path / 'link').path == run.path.resolve()
  with pytest.raises(types.UserError, match='is no folder'):
    opening.open_run(tmp_path / 'absent')
  with pytest.raises(types.UserError, match='not the folder of a run'):
    opening.open_run(tmp_path)


def test_latest_follows_the_newest_run_and_is_relative(tmp_path):
  first, second = run_directory.new('a', tmp_path), run_directory.new('b', tmp_path)
  assert run_directory.point_latest(first, tmp_path)
  assert run_directory.point_latest(second, tmp_path)
  link = tmp_path / 'latest'
  assert link.resolve() == second.path.resolve()
  assert not os.path.isabs(os.readlink(link))  # the folder may be moved as a whole
  assert sorted(os.listdir(tmp_path)) == ['a', 'b', 'latest']


def test_a_run_that_is_opened_by_the_link_is_its_real_folder(tmp_path):
  first, second = (run_directory.new(name, tmp_path) for name in 'ab')
  run_directory.point_latest(first, tmp_path)
  opened = run_directory.create(tmp_path / 'latest')
  assert opened.path == first.path
  run_directory.point_latest(opened, tmp_path)
  assert (tmp_path / 'latest').resolve() == first.path
  run_directory.point_latest(second, tmp_path)  # while the first is trained on
  assert opened.path == first.path


def test_latest_is_that_of_the_last_of_two_starts_at_once(tmp_path, monkeypatch):
  """Two containers with one volume may start as processes of the same number."""
  first, second = (run_directory.new(name, tmp_path) for name in 'ab')
  replace = os.replace

  def start_another(*paths):
    monkeypatch.setattr(os, 'replace', replace)
    run_directory.point_latest(first, tmp_path)
    replace(*paths)

  monkeypatch.setattr(os, 'replace', start_another)
  run_directory.point_latest(second, tmp_path)
  assert (tmp_path / 'latest').resolve() == second.path
  assert sorted(os.listdir(tmp_path)) == ['a', 'b', 'latest']


def test_latest_replaces_a_dangling_link(tmp_path):
  (tmp_path / 'latest').symlink_to('deleted')
  run = run_directory.new('a', tmp_path)
  assert run_directory.point_latest(run, tmp_path)
  assert (tmp_path / 'latest').resolve() == run.path.resolve()


@pytest.mark.parametrize('is_folder', [True, False])
def test_latest_never_replaces_something_real(tmp_path, is_folder):
  latest = tmp_path / 'latest'
  if is_folder:
    latest.mkdir()
    (latest / 'mine').write_text('x')
  else:
    latest.write_text('x')
  assert not run_directory.point_latest(run_directory.new('a', tmp_path), tmp_path)
  assert (latest / 'mine' if is_folder else latest).read_text() == 'x'


def test_json_round_trip_and_values_without_json(tmp_path):
  path = tmp_path / 'summary.json'
  local.write_json(
    path,
    {
      'nan': float('nan'),
      'inf': -np.inf,
      'steps': np.int64(3),
      'lag': np.float32(0.5),
      'list': (1, None),
      'path': pathlib.Path('a'),
    },
  )
  assert local.read_json(path) == {
    'nan': None,
    'inf': None,
    'steps': 3,
    'lag': 0.5,
    'list': [1, None],
    'path': 'a',
  }
  assert os.listdir(tmp_path) == ['summary.json']


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
  path = tmp_path / 'status.json'
  local.write_json(path, {'steps': 1})
  with pytest.raises(TypeError):
    local.write_json(path, {'steps': object()})
  assert json.loads(path.read_text()) == {'steps': 1}
  assert os.listdir(tmp_path) == ['status.json']


def test_writing_json_where_it_cannot_be_written(tmp_path):
  with pytest.raises(types.UserError, match='cannot write'):
    local.write_json(tmp_path / 'absent' / 'a.json', {})


@pytest.mark.parametrize('content', [b'', b'{"a": 1', b'\xff\xfe\x00'])
def test_unreadable_json_names_the_file(tmp_path, content):
  path = tmp_path / 'config.json'
  path.write_bytes(content)
  with pytest.raises(types.UserError, match='config.json') as caught:
    local.read_json(path)
  assert len(str(caught.value).splitlines()) <= 4
  with pytest.raises(types.UserError, match='absent.json'):
    local.read_json(tmp_path / 'absent.json')


def test_a_file_is_no_run_folder_and_a_packed_run_is_to_be_unpacked(tmp_path):
  path = tmp_path / 'packed.zip'
  path.write_text('')
  with pytest.raises(
    types.UserError, match='it is a file, and run_dir is a folder .seed-acme unpack'
  ):
    run_directory.create(path)
