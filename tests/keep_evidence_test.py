"""The evidence of a run is a run folder that can be played and drawn without learner variables."""

import csv

import pytest

from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs import single_process
from seed_acme.programs.pictures import plot
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests import sources


def _script():
  return sources.script('keep_evidence')


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  config = registry.load('catch_vtrace')
  config = config.__class__(**{**vars(config), 'total_steps': 4_000})
  folder = run_directory.create(tmp_path_factory.mktemp('run'))
  saved_config.save(config, folder.config)
  single_process.run(config, folder)
  local.write_json(folder.summary, {'status': 'finished'})
  return folder


@pytest.mark.slow
def test_what_is_kept_is_played_and_drawn(run, tmp_path):
  folder = tmp_path / 'kept'
  _script().keep(run.path, folder, max_rows=2)
  kept = checkpoint.load_found(folder)
  assert kept.arrays and all(name.startswith('acting/') for name in kept.arrays)
  assert (
    evaluation.evaluate(str(folder), num_episodes=20, seed=3)['return_mean']
    == (evaluation.evaluate(str(run.path), num_episodes=20, seed=3)['return_mean'])
  )
  assert plot.plot([folder], tmp_path / 'plot.png').is_file()
  rows = {
    name: list(csv.DictReader((path / 'metrics.csv').read_text().splitlines()))
    for name, path in (('run', run.path), ('kept', folder))
  }
  with_episodes = [row for row in rows['run'] if row['episode/return']]
  assert [row for row in rows['kept'] if row['episode/return']] == with_episodes
  assert rows['kept'][-1] == rows['run'][-1]


def test_a_further_seed_is_kept_without_a_checkpoint(run, tmp_path):
  folder = tmp_path / 'curve'
  _script().keep(run.path, folder, curve_only=True)
  names = sorted(path.name for path in folder.iterdir())
  assert names == ['config.json', 'metrics.csv', 'summary.json']
  assert plot.read_curve(folder, 'label').steps[-1] >= 4_000


def test_nothing_is_written_over(run, tmp_path):
  with pytest.raises(FileExistsError):
    _script().keep(run.path, tmp_path)
