"""Exceptions of the functions that `import seed_acme` offers, for a caller who catches them."""

import dataclasses

import pytest

import seed_acme
from seed_acme.configs import registry
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import lifecycle
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
from seed_acme.storage import saved_config
from tests.programs.tools.packing import packed

_TOO_LONG = 300 * 'x'


@pytest.fixture(name='damaged')
def _damaged(tmp_path):
  """Returns a run with one checkpoint, whose arrays cannot be read."""
  run = packed.make(tmp_path / 'run', updates=(3,))
  (checkpoint.newest(run.checkpoints) / 'arrays.npz').write_bytes(b'no arrays')
  return run


def test_a_run_whose_checkpoint_is_damaged_is_not_trained(damaged):
  with pytest.raises(seed_acme.TrainingFailed, match='damaged|cannot be read|checksum'):
    seed_acme.train(registry.load('catch_vtrace'), str(damaged.path), progress=False)


def test_a_full_disk_before_the_start_is_a_failure_of_the_training(tmp_path, monkeypatch):
  def prepare(*_):
    raise seed_acme.Failure('cannot write runs/x: no space left')

  monkeypatch.setattr(lifecycle, 'prepare', prepare)
  with pytest.raises(seed_acme.TrainingFailed, match='no space left'):
    seed_acme.train(registry.load('catch_vtrace'), str(tmp_path / 'run'), progress=False)


@pytest.mark.parametrize(
  'call',
  [
    lambda: seed_acme.train(registry.load('catch_vtrace'), _TOO_LONG, progress=False),
    lambda: seed_acme.train(
      dataclasses.replace(registry.load('catch_vtrace'), initial_checkpoint=_TOO_LONG),
      progress=False,
    ),
    lambda: seed_acme.load_policy(_TOO_LONG),
    lambda: seed_acme.evaluate(_TOO_LONG),
    lambda: seed_acme.export_policy(_TOO_LONG, 'out'),
  ],
)
def test_a_path_that_is_too_long_is_wrong_input(call, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(seed_acme.UserError, match='is too long'):
    call()
  assert not list(tmp_path.iterdir())


def test_a_run_that_is_trained_is_made_into_no_program(tmp_path, monkeypatch):
  config, run = registry.load('catch_vtrace'), run_directory.create(tmp_path / 'run')
  saved_config.save(config, run.config)
  monkeypatch.setattr(lifecycle, 'prepare', lambda config, *_: (config, run))
  with run_locks.trains(run):
    with pytest.raises(seed_acme.UserError, match='is being trained by another program'):
      seed_acme.make_program(dataclasses.replace(config, total_steps=7), str(run.path))
  assert saved_config.load(run.config) == config


def test_a_folder_that_may_not_be_entered_is_wrong_input(tmp_path, monkeypatch):
  def exists(path):
    raise PermissionError(13, 'Permission denied', str(path))

  monkeypatch.setattr(bucket_folder.pathlib.Path, 'exists', exists)
  with pytest.raises(seed_acme.UserError, match='cannot read .*inside/run: Permission denied'):
    with bucket_folder.opened(str(tmp_path / 'inside' / 'run')):
      pass
