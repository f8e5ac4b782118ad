"""The local folder of a run in a bucket, if the copy at the end fails or is interrupted."""

import errno

import numpy as np
import pytest

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.programs.front_end import bucket_folder
from seed_acme.storage import bucket_copy
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import lease
from seed_acme.storage import run_directory


@pytest.fixture(name='end')
def _end(tmp_path, monkeypatch):
  """`end(url, raised)`: ends a run, with a checkpoint, by a last copy that raises `raised`."""
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  monkeypatch.setattr(bucket_folder.tempfile, 'tempdir', None)  # so that it is read again
  monkeypatch.setattr(bucket_folder.processes, 'set_tensorflow_defaults', lambda: None)
  monkeypatch.setattr(bucket_folder, '_require_credentials', lambda path: None)
  monkeypatch.setattr(bucket_copy.Mirror, 'start', lambda self: None)

  def end(raised, url='file:///bucket/run', saves=True, body=lambda: None, id='catch'):
    def stop(self):
      raise raised

    monkeypatch.setattr(bucket_copy.Mirror, 'stop', stop)
    with bucket_folder.opened(url) as run:
      run_directory.create(run.path)
      local.write_json(run.config, {'environment': {'id': id}})
      if saves:
        checkpoint_writer.save(run.checkpoints, 7, {'w': np.ones(2)}, {'value': 1}, keep=1)
      body()

  yield end
  monkeypatch.undo()
  bucket_folder.tempfile.tempdir = None


@pytest.mark.parametrize(
  'raised, seen',
  [
    (KeyboardInterrupt(), KeyboardInterrupt),
    (SystemExit(143), SystemExit),
    (OSError(errno.ENOSPC, 'No space left on device'), bucket_folder.BucketLost),
    (bucket.BucketError('cannot write file:///bucket/run'), bucket_folder.BucketLost),
  ],
)
def test_the_only_whole_copy_stays_and_is_named(end, tmp_path, capsys, raised, seen):
  with pytest.raises(seen):
    end(raised)
  [scratch] = tmp_path.iterdir()
  run = run_directory.RunDirectory(scratch / 'run')
  assert checkpoint.load_newest(run.checkpoints).meta['value'] == 1
  lines = capsys.readouterr().err.splitlines()
  assert lines[0] == f'error: the run is whole in {run.path} only'
  assert lines[1].endswith(f'train --run_dir={run.path}')
  assert lines[2] == 'or copy what it holds to file:///bucket/run'


def test_the_way_into_a_bucket_of_google_is_a_command(end, tmp_path, capsys):
  with pytest.raises(KeyboardInterrupt):
    end(KeyboardInterrupt(), url='gs://bucket/run/')
  [scratch] = tmp_path.iterdir()
  command = f'gcloud storage rsync --recursive {scratch}/run gs://bucket/run'
  assert f'or copy it to the bucket: {command}' in capsys.readouterr().err.splitlines()


def test_the_command_trusts_code_of_the_users_own(end, capsys):
  with pytest.raises(KeyboardInterrupt):
    end(KeyboardInterrupt(), id='corridor:Corridor')
  assert capsys.readouterr().err.splitlines()[1].endswith('/run --trust_run_dir')


def test_so_it_does_if_something_else_had_ended_the_run(end, tmp_path, capsys):
  def fail():
    raise LookupError

  with pytest.raises(KeyboardInterrupt):
    end(KeyboardInterrupt(), body=fail)
  [scratch] = tmp_path.iterdir()
  assert f'whole in {scratch}/run only' in capsys.readouterr().err


@pytest.mark.parametrize(
  'raised, saves', [(lease.TakenOver('by another program'), True), (KeyboardInterrupt(), False)]
)
def test_what_is_another_programs_or_holds_nothing_is_deleted(end, tmp_path, capsys, raised, saves):
  with pytest.raises((types.UserError, KeyboardInterrupt)):
    end(raised, saves=saves)
  assert not list(tmp_path.iterdir()) and not capsys.readouterr().err


def test_a_start_that_failed_leaves_nothing(end, tmp_path, capsys, monkeypatch):
  """The bucket still has all that was fetched."""

  def start(mirror):
    run = run_directory.create(tmp_path / next(tmp_path.iterdir()) / 'run')
    checkpoint_writer.save(run.checkpoints, 7, {'w': np.ones(2)}, {}, keep=1)
    raise bucket.BucketError('cannot read file:///bucket/run')

  monkeypatch.setattr(bucket_copy.Mirror, 'start', start)
  with pytest.raises(types.UserError, match='cannot read'):
    end(KeyboardInterrupt())
  assert not list(tmp_path.iterdir()) and not capsys.readouterr().err
