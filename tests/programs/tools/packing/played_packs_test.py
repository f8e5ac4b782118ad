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
from seed_acme.storage import checkpoint_writer
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
  checkpoint_writer.save(
    run.checkpoints,
    last.counts.updates,
    drawn,
    {**last.meta, 'best': checkpoint.Best(0, 1.0, 10)._asdict()},
    keep=3,
  )
  return run


@pytest.fixture(scope='module', name='pack')
def _pack(run, tmp_path_factory):
  """Returns a pack of the best checkpoint."""
  out = tmp_path_factory.mktemp('packs') / 'best.zip'
  assert cli.main(['pack', str(run.path), str(out), '--checkpoint=best', '--episodes=8']) == 0
  return out


def _newest(run):
  return opening.load_of_run(run).counts.updates


def test_evaluate_plays_the_checkpoint_that_is_named(run, capsys):
  """`storage/checkpoint_choice_test.py` has all the ways to name it."""
  newest, first = _newest(run), run.checkpoints / f'{0:012d}'
  assert newest > 0
  arguments = (run.path, f'--checkpoint={first}', '--episodes=2', '--json')
  assert json.loads(evaluated_runs.evaluate(capsys, *arguments).out)['checkpoint_updates'] == 0
  assert seed_acme.evaluate(str(run.path), 2)['checkpoint_updates'] == newest
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


def test_load_policy_takes_the_weights_that_are_named(run):
  observations = np.random.default_rng(1).random((64, 50)).astype(np.float32)
  drawn = []
  for choice in ('best', 'newest'):
    policy = seed_acme.load_policy(str(run.path), greedy=False, seed=5, checkpoint=choice)
    policy.reset(batch_size=64)
    drawn.append(policy(observations))
  assert (drawn[0] != drawn[1]).any()


def test_export_takes_the_weights_that_are_named(run, tmp_path, capsys):
  out = ['export', str(run.path), f'--out={tmp_path / "out"}', '--json']
  assert cli.main([*out, '--checkpoint=9']) == 2
  assert 'has no checkpoint of update 9' in capsys.readouterr().err
  assert cli.main([*out, '--checkpoint=best']) == 0
  assert json.loads(capsys.readouterr().out)['checkpoint_updates'] == 0


def _part(path, name):
  return (opening.open_run(path).path / name).read_text()


def test_a_pack_is_played_as_it_is_and_its_card_has_the_score_of_its_weights(run, pack, capsys):
  expected = seed_acme.evaluate(str(run.path), 8, checkpoint='best')
  score = json.loads(_part(pack, 'pack.json'))['score']
  assert score['of'] == 'played' and score['episodes'] == 8
  for name in ('return_mean', 'return_standard_error'):
    assert score[name] == expected[name]
  assert 'of 8 greedy episodes that these weights played' in _part(pack, 'README.md')
  record = json.loads(evaluated_runs.evaluate(capsys, pack, '--episodes=8', '--json').out)
  assert record == {**expected, 'run_dir': str(pack)}
  assert 'Its checkpoints are 0' in evaluated_runs.refusal(capsys, pack, '--checkpoint=5')


def test_a_run_starts_from_a_pack(run, pack, tmp_path):
  best, newest = (opening.load_of_run(run, choice).arrays for choice in ('best', 'newest'))
  config = dataclasses.replace(
    saved_config.load(run.config), initial_checkpoint=str(pack), total_steps=1, seed=9
  )
  started = run_directory.create(tmp_path)
  saved_config.save(config, started.config)
  assert single_process.run(config, started) == training_loop.FINISHED
  arrays = checkpoint.load(checkpoint.at(started.checkpoints, 0)).arrays
  found = [name for name in arrays if name.startswith(f'{saved_variables.ACTING}/')]
  assert any((best[name] != newest[name]).any() for name in found)
  for name in found:
    np.testing.assert_array_equal(arrays[name], best[name], err_msg=name)
