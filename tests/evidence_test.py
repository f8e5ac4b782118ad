"""The runs kept in docs/evidence can be played and drawn, and the docs quote them correctly."""

import collections
import json
import pathlib

import pytest

import seed_acme
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs import registry
from seed_acme.programs import cli
from seed_acme.programs.pictures import plot
from seed_acme.programs.pictures import published
from seed_acme.storage import checkpoint
from seed_acme.storage import saved_config

_ROOT = pathlib.Path(__file__).parent.parent
_FOLDER = _ROOT / 'docs' / 'evidence'
_RUNS = sorted(path.parent for path in _FOLDER.rglob('config.json'))
_PLAYED = [run for run in _RUNS if (run / 'checkpoints').is_dir()]
_MAX_BYTES = 8_000_000  # size of a run, which every clone downloads
_MAX_BYTES_OF_ALL = 34_000_000


def _name(run):
  return run.relative_to(_FOLDER).as_posix()


def _of_each_kind(runs):
  """The first run of each agent and suite of environments, whose networks are loaded alike."""
  found = {}
  for run in runs:
    config = saved_config.load(run / 'config.json')
    found.setdefault((type(config.agent), registry.find(config.environment.id)), run)
  return list(found.values())


@pytest.mark.slow  # makes a network for each
@pytest.mark.parametrize('run', _of_each_kind(_PLAYED), ids=_name)
def test_a_checkpoint_acts(run, monkeypatch):
  monkeypatch.chdir(_ROOT)
  config = saved_config.load(run / 'config.json')
  if config.actor.python and not pathlib.Path(config.actor.python).exists():
    pytest.skip(f'{config.actor.python} was not made here (docs/environments.md)')
  try:
    environment = environments.make(config, 1, seed=1)
  except types.MissingPackage as error:
    pytest.skip(str(error))
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


def _twice(runs):
  """The runs that are of an agent, with its loss, and of a game that another one is of, too."""
  found = collections.defaultdict(list)
  for run in runs:
    config = saved_config.load(run / 'config.json')
    loss = getattr(config.agent, 'policy_loss', None)
    found[type(config.agent), loss, config.environment.id].append(_name(run))
  return [names for names in found.values() if len(names) > 1]


def test_an_agent_has_one_checkpoint_and_one_video_of_a_game():
  assert len(_PLAYED) > 5
  assert not _twice(_PLAYED)
  assert not _twice([run for run in _RUNS if list(run.glob('*.mp4'))])


def test_everything_together_is_small():
  sizes = [path.stat().st_size for path in _FOLDER.rglob('*') if path.is_file()]
  assert sum(sizes) < _MAX_BYTES_OF_ALL


@pytest.mark.parametrize(
  'path', sorted((_FOLDER / 'published').glob('*.csv')), ids=lambda path: path.name
)
def test_published_points_can_be_read(path):
  assert published.read(path)


def test_the_plan_is_quoted_as_it_is_made(capsys):
  records = sorted((_FOLDER / 'plan').glob('catch_*.json'))
  given = [f'--from={path}' for path in sorted(records, key=lambda path: '2x256' not in path.name)]
  scale = ['--learners=8', '--actors=48', '--environments_per_actor=260', '--json']
  assert cli.main(['plan', *given, *scale]) == 0
  plan = json.loads(capsys.readouterr().out)
  text = (_FOLDER.parent / 'scaling.md').read_text(encoding='utf-8')
  assert plan['environments'] == 12_480
  for way in ('central', 'actor_side'):
    rate, dollars = plan[way]['frames_per_s'], plan[way]['dollars_per_billion_frames']
    assert f'{rate:,.0f} frames/s at ${dollars:.2f}' in text


def test_the_returns_of_halfcheetah_are_quoted_as_they_were_reached():
  text = (_FOLDER.parent / 'results.md').read_text(encoding='utf-8')
  runs = [run for run in _RUNS if _name(run).startswith('halfcheetah_sac/')]
  assert len(runs) == 3
  for run in runs:
    summary = json.loads((run / 'summary.json').read_text())
    assert summary['agent_steps'] >= 500_000
    assert f'{summary["episode_return_last_100"]:,.0f}' in text, run
