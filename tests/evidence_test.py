"""What docs/evidence keeps of runs can be played and drawn, and the docs quote it rightly."""

import json
import pathlib

import pytest

import seed_acme
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.reports import plot
from seed_acme.programs.reports import published
from seed_acme.storage import checkpoint
from seed_acme.storage import saved_config

_ROOT = pathlib.Path(__file__).parent.parent
_FOLDER = _ROOT / 'docs' / 'evidence'
_RUNS = sorted(path.parent for path in _FOLDER.rglob('config.json'))
_PLAYED = [run for run in _RUNS if (run / 'checkpoints').is_dir()]
_MAX_BYTES = 8_000_000  # of a run that everybody clones


def _name(run):
  return run.relative_to(_FOLDER).as_posix()


@pytest.mark.parametrize('run', _PLAYED, ids=_name)
def test_a_checkpoint_acts(run, monkeypatch):
  monkeypatch.chdir(_ROOT)
  config = saved_config.load(run / 'config.json')
  if config.actor.python and not pathlib.Path(config.actor.python).exists():
    pytest.skip(f'{config.actor.python} was not made here (docs/environments.md)')
  environment = environments.make(config, 1, seed=1)
  row = environment.reset()
  policy = seed_acme.load_policy(str(run))
  policy.reset(batch_size=1)
  for _ in range(3):
    row = environment.step(policy(row.observation, row.reward, row.discount))
  environment.close()


@pytest.mark.parametrize('run', _PLAYED, ids=_name)
def test_a_checkpoint_holds_what_acting_needs_and_no_more(run):
  assert all(name.startswith('acting/') for name in checkpoint.load_found(run).arrays)


@pytest.mark.parametrize('run', _RUNS, ids=_name)
def test_a_run_is_small_and_has_a_curve(run):
  assert sum(path.stat().st_size for path in run.rglob('*') if path.is_file()) < _MAX_BYTES
  assert plot.read_curve(run, 'label').steps.size > 10


@pytest.mark.parametrize(
  'path', sorted((_FOLDER / 'published').glob('*.csv')), ids=lambda path: path.name
)
def test_published_points_can_be_read(path):
  assert published.read(path)


def test_the_returns_of_halfcheetah_are_quoted_as_they_were_reached():
  text = (_FOLDER.parent / 'agents.md').read_text(encoding='utf-8')
  runs = [run for run in _RUNS if _name(run).startswith('halfcheetah_sac/')]
  assert len(runs) == 3
  for run in runs:
    summary = json.loads((run / 'summary.json').read_text())
    assert summary['agent_steps'] >= 500_000
    assert f'{summary["episode_return_last_100"]:,.0f}' in text, run
