"""Chosen checkpoints and packed runs are played, exported and started from."""

import dataclasses
import json

import numpy as np
import pytest

import seed_acme
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.learning import saved_variables
from seed_acme.learning import training_loop
from seed_acme.programs import cli
from seed_acme.programs import single_process
from seed_acme.storage import checkpoint
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests.programs import evaluated_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)


@pytest.fixture(scope='module', name='run')
def _run(tmp_path_factory):
  """Makes a run with two checkpoints; the first, of update 0, is the best."""
  folder = evaluated_runs.train(
    tmp_path_factory.mktemp('runs') / 'catch',
    'catch_vtrace',
    config_lib.EnvironmentConfig('catch'),
    {},
    mlp_sizes=(8,),
  )
  run = opening.open_run(folder)
  last = opening.load_of_run(run)
  random = np.random.default_rng(2)
  drawn = {  # weights that act unlike the first ones, which needs more than these few updates
    name: random.normal(size=array.shape).astype(array.dtype) if array.ndim == 2 else array
    for name, array in last.arrays.items()
  }
  checkpoint.save(
    run.checkpoints,
    last.counts.updates,
    drawn,
    {**last.meta, 'best': checkpoint.Best(0, 1.0, 10)._asdict()},
    keep=3,
  )
  return run


@pytest.fixture(scope='module', name='zips')
def _zips(run, tmp_path_factory):
  """Returns packs of the best and of the newest checkpoint."""
  folder, found = tmp_path_factory.mktemp('packs'), {}
  for choice in ('best', 'newest'):
    out = folder / f'{choice}.zip'
    arguments = ['pack', str(run.path), str(out), f'--checkpoint={choice}', '--episodes=8']
    assert cli.main(arguments) == 0
    found[choice] = out
  return found


def _newest(run):
  return opening.load_of_run(run).counts.updates


def test_evaluate_plays_the_checkpoint_that_is_named(run, capsys):
  newest, first = _newest(run), run.checkpoints / f'{0:012d}'
  assert newest > 0
  for choice, updates in (('newest', newest), ('best', 0), ('0', 0), (newest, newest), (first, 0)):
    arguments = (run.path, f'--checkpoint={choice}', '--episodes=2', '--json')
    record = json.loads(evaluated_runs.evaluate(capsys, *arguments).out)
    assert record['checkpoint_updates'] == updates
  assert seed_acme.evaluate(str(run.path), 2, checkpoint='best')['checkpoint_updates'] == 0
  plain = json.loads(evaluated_runs.evaluate(capsys, run.path, '--episodes=2', '--json').out)
  assert plain['checkpoint_updates'] == newest
  several = (run.path, run.path, '--checkpoint=best', '--episodes=2', '--json')
  records = json.loads(evaluated_runs.evaluate(capsys, *several).out)['runs']
  assert [record['checkpoint_updates'] for record in records] == [0, 0]


def test_a_checkpoint_that_is_not_there_is_refused_by_the_names_of_those_that_are(run, capsys):
  newest = _newest(run)
  listed = f'Its checkpoints are 0 (best), {newest} (newest)'
  for choice in ('77', 'nothing'):
    assert listed in evaluated_runs.refusal(capsys, run.path, f'--checkpoint={choice}')
  several = (run.path, run.path, f'--checkpoint={run.checkpoints}')
  assert 'is that of one run' in evaluated_runs.refusal(capsys, *several)
  for function in (seed_acme.evaluate, seed_acme.load_policy):
    with pytest.raises(types.UserError, match='has no checkpoint of update 77'):
      function(str(run.path), checkpoint=77)


def test_load_policy_and_export_take_the_weights_that_are_named(run, tmp_path, capsys):
  observations = np.random.default_rng(1).random((64, 50)).astype(np.float32)
  drawn = {}
  for choice in ('best', 'newest', 0):
    policy = seed_acme.load_policy(str(run.path), greedy=False, seed=5, checkpoint=choice)
    policy.reset(batch_size=64)
    drawn[choice] = policy(observations)
  assert (drawn['best'] == drawn[0]).all() and (drawn['best'] != drawn['newest']).any()
  record = seed_acme.export_policy(str(run.path), tmp_path / 'a', checkpoint='best')
  assert record['checkpoint_updates'] == 0
  out = tmp_path / 'b'
  assert cli.main(['export', str(run.path), f'--out={out}', '--checkpoint=best', '--json']) == 0
  assert json.loads(capsys.readouterr().out)['checkpoint_updates'] == 0
  assert cli.main(['export', str(run.path), f'--out={out}2', '--checkpoint=9', '--json']) == 2
  assert 'has no checkpoint of update 9' in capsys.readouterr().err


def test_the_score_on_the_card_is_of_the_weights_in_the_pack(run, zips, capsys):
  for choice, path in zips.items():
    plain = evaluated_runs.evaluate(
      capsys, run.path, f'--checkpoint={choice}', '--episodes=8', '--json'
    )
    expected = json.loads(plain.out)
    score = json.loads(_part(path, 'pack.json'))['score']
    assert score['of'] == 'played' and score['episodes'] == 8
    for name in ('return_mean', 'return_standard_error'):
      assert score[name] == expected[name]
    assert 'of 8 greedy episodes that these weights played' in _part(path, 'README.md')


def _part(path, name):
  return (opening.open_run(path).path / name).read_text()


def test_a_pack_is_played_as_it_is_and_unpacked(run, zips, tmp_path, capsys):
  path = zips['best']
  assert cli.main(['unpack', str(path), str(tmp_path / 'theirs')]) == 0
  capsys.readouterr()
  expected = seed_acme.evaluate(str(run.path), 8, checkpoint='best')
  for place in (path, tmp_path / 'theirs'):
    record = json.loads(evaluated_runs.evaluate(capsys, place, '--episodes=8', '--json').out)
    assert record == {**expected, 'run_dir': str(place)}
  assert 'Its checkpoints are 0' in evaluated_runs.refusal(capsys, path, '--checkpoint=5')
  policy = seed_acme.load_policy(str(path))
  assert policy.spec.action.num_values == 3
  assert seed_acme.export_policy(str(path), tmp_path / 'out')['checkpoint_updates'] == 0


def _first_weights(run, folder, initial_checkpoint):
  """Returns the weights that a run begins with if it starts from this checkpoint."""
  config = dataclasses.replace(
    saved_config.load(run.config), initial_checkpoint=initial_checkpoint, total_steps=1, seed=9
  )
  started = run_directory.create(folder)
  saved_config.save(config, started.config)
  assert single_process.run(config, started) == training_loop.FINISHED
  arrays = checkpoint.load(checkpoint.at(started.checkpoints, 0)).arrays
  return {k: v for k, v in arrays.items() if k.startswith(f'{saved_variables.ACTING}/')}


def test_a_run_starts_from_the_best_of_another_and_from_a_pack(run, zips, tmp_path):
  best, newest = (opening.load_of_run(run, choice).arrays for choice in ('best', 'newest'))
  for number, (name, expected) in enumerate(
    ((f'{run.path}@best', best), (str(zips['best']), best), (str(zips['newest']), newest))
  ):
    found = _first_weights(run, tmp_path / str(number), name)
    assert found
    for key, array in found.items():
      np.testing.assert_array_equal(array, expected[key], err_msg=f'{name} {key}')
  assert any((best[key] != newest[key]).any() for key in found)
