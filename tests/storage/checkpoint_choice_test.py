"""The checkpoint that a user means: `newest`, `best`, a number or a path; `RUN@best`."""

import pathlib

import pytest

from seed_acme import types
from seed_acme.storage import checkpoint
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from tests.storage import saved


@pytest.fixture(name='run')
def _run(tmp_path):
  """Makes checkpoints 5, 20 and 30, of which 20 is the best."""
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text('{}')
  for updates, best in ((5, 5), (20, 5), (30, 20)):
    record = checkpoint.Best(best, 1.0, 10)._asdict()
    saved.save(run.checkpoints, updates, meta={**saved.META, 'best': record})
  return run


@pytest.mark.parametrize(
  'choice, updates',
  [
    ('newest', 30),
    ('best', 20),
    ('5', 5),
    (5, 5),
    ('000000000020', 20),
    ('{run}/checkpoints/000000000005', 5),
    (pathlib.Path('{run}/checkpoints/000000000020'), 20),
  ],
)
def test_each_way_to_name_one(run, choice, updates):
  if not isinstance(choice, int):
    choice = type(choice)(str(choice).format(run=run.path))
  path = opening.find_checkpoint(run, choice)
  assert path == run.checkpoints / f'{updates:012d}'
  assert opening.load_of_run(run, choice).path == path


@pytest.mark.parametrize('below', ['', '/checkpoints'])
@pytest.mark.parametrize('choice, updates', [('', 30), ('@newest', 30), ('@best', 20), ('@5', 5)])
def test_what_initial_checkpoint_names(run, below, choice, updates):
  assert opening.load_checkpoint(f'{run.path}{below}{choice}').path.name == f'{updates:012d}'


def test_a_folder_that_is_called_so_is_what_is_meant(run):
  other = run.path.with_name('run@best')
  saved.save(other / 'checkpoints', 77)
  assert opening.load_checkpoint(str(other)).path.name == f'{77:012d}'
  assert opening.load_checkpoint(f'{other}@77').path.name == f'{77:012d}'


@pytest.mark.parametrize(
  'choice, said',
  [
    ('6', 'has no checkpoint of update 6'),
    (7, 'has no checkpoint of update 7'),
    ('latest', "has no checkpoint 'latest': give newest, best"),
  ],
)
def test_an_error_names_those_that_there_are(run, choice, said):
  with pytest.raises(types.UserError) as error:
    opening.find_checkpoint(run, choice)
  assert said in str(error.value)
  assert 'Its checkpoints are 5, 20 (best), 30 (newest)' in str(error.value)


@pytest.mark.parametrize('choice', ['', True, -1, 1.5, None])
def test_what_is_no_choice(run, choice):
  with pytest.raises(types.UserError, match='must be newest, best, the number'):
    opening.find_checkpoint(run, choice)


def test_without_a_best_one_the_error_says_how_a_run_comes_by_it(tmp_path):
  saved.save(tmp_path / 'checkpoints', 3)
  with pytest.raises(types.UserError) as error:
    opening.load_checkpoint(f'{tmp_path}@best')
  assert 'knows no best checkpoint: one is kept where evaluation environments' in str(error.value)
  assert 'Its checkpoints are 3 (newest)' in str(error.value)
  with pytest.raises(types.UserError, match='no checkpoint in .*absent: give a run folder'):
    opening.load_checkpoint(f'{tmp_path / "absent"}@best')


def test_a_best_one_that_was_deleted_is_missed_by_its_number(run):
  checkpoint.at(run.checkpoints, 20).rename(run.path / 'elsewhere')
  with pytest.raises(types.UserError, match='names the checkpoint of update 20 as its best, which'):
    opening.load_of_run(run, 'best')


def test_the_best_is_found_where_the_newest_is_damaged_and_refused_where_it_is_damaged_itself(run):
  (run.checkpoints / f'{30:012d}' / 'meta.json').write_text('{')
  # according to the checkpoint before it
  assert opening.load_of_run(run, 'best').path.name == f'{5:012d}'
  (run.checkpoints / f'{5:012d}' / 'arrays.npz').write_bytes(b'x')
  with pytest.raises(checkpoint.Damaged, match='is corrupt'):
    opening.load_of_run(run, 'best')
