"""User code named in a run folder's configuration, and when it may be imported."""

import dataclasses
import json
import sys

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust

_NOBODY = trust.Trust()


def _record(change):
  record = saved_config.to_json(registry.load('catch_vtrace'))
  change(record)
  return record


@pytest.mark.parametrize(
  'field, change, path',
  [
    ('environment.id', lambda r: r['environment'].update(id='evil:make'), 'evil:make'),
    ('environment.id', lambda r: r['environment'].update(id='evil.make'), 'evil.make'),
    ('environment.id', lambda r: r['environment'].update(id='evil:Cart-v0'), 'evil:Cart-v0'),
    (
      'environment.id',
      lambda r: r['environment'].update(id='gymnasium:evil:Cart-v0'),
      'gymnasium:evil:Cart-v0',
    ),
    (
      'environment.id',
      lambda r: r['environment'].update(id='seed_acme_evil:make'),
      'seed_acme_evil:make',
    ),
    ('network.module', lambda r: r['network'].update(module='evil:Net'), 'evil:Net'),
    ('network.torso', lambda r: r['network'].update(torso='evil.deep:Torso'), 'evil.deep:Torso'),
    ('agent', lambda r: r['agent'].update(type='evil:Config'), 'evil:Config'),
    (
      'environment.settings.x',
      lambda r: r['environment'].update(settings={'x': {'type': 'evil:Config'}}),
      'evil:Config',
    ),
  ],
)
def test_code_of_others_is_refused_by_field_and_path(field, change, path):
  with pytest.raises(types.UserError) as error:
    trust.require(_record(change), 'folder/config.json', _NOBODY)
  message = str(error.value)
  assert 'folder/config.json names code' in message and f"{field}='{path}'" in message
  assert '--trust_run_dir (trust=True in Python)' in message and len(message.splitlines()) <= 4
  trust.require(_record(change), 'folder', trust.EVERYTHING)
  trust.require(_record(change), 'folder', trust.Trust(paths=frozenset([path])))


@pytest.mark.parametrize(
  'environment_id',
  [
    'catch',
    'atari:Pong',
    'CartPole-v1',
    'ALE/Pong-v5',
    'gym:CartPole-v1',
    'gymnasium:Cart-v1',
    'dm_control:cheetah/run',
    'seed_acme.envs.catch:Catch',
  ],
)
def test_what_is_installed_needs_no_trust(environment_id):
  trust.require(_record(lambda r: r['environment'].update(id=environment_id)), 'folder', _NOBODY)


def test_every_shipped_configuration_is_trusted():
  for name in registry.names():
    trust.require(saved_config.to_json(registry.load(name)), name, _NOBODY)


@pytest.fixture
def run(tmp_path, monkeypatch):
  """Makes a run folder whose environment is in a module that raises when it is imported."""
  (tmp_path / 'somebodys.py').write_text('def make(seed):\n  raise AssertionError\n')
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.delitem(sys.modules, 'somebodys', raising=False)
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text(json.dumps(_record(lambda r: r['environment'].update(id='somebodys:make'))))
  return run


@pytest.mark.parametrize(
  'command',
  [
    ['evaluate', '{run}'],
    ['train', '--run_dir={run}'],
    ['train', '--run_dir={run}', '--config.environment.settings', 'size', '3'],
  ],
)
def test_a_command_imports_nothing_that_it_does_not_trust(run, command, capsys, monkeypatch):
  monkeypatch.setattr(evaluation.opening, 'find_checkpoint', lambda *_: None)
  assert cli.main([part.format(run=run.path) for part in command]) == 2
  error = capsys.readouterr().err
  assert "environment.id='somebodys:make'" in error and '--trust_run_dir' in error
  assert 'somebodys' not in sys.modules
  with pytest.raises(types.UserError, match='names code'):
    evaluation.load_policy(str(run.path))


@pytest.mark.parametrize('option', ['--trust_run_dir', '--config.environment.id=somebodys:make'])
def test_with_trust_or_the_path_itself_the_code_is_imported(run, option, capsys):
  cli.main(['train', f'--run_dir={run.path}', '--config.total_steps=0', option])
  assert 'names code' not in capsys.readouterr().err


def test_a_command_that_names_the_code_goes_on_with_a_folder_that_does(run):
  config = saved_config.load(run.config)
  lifecycle.check_resume(config, run)
  other = dataclasses.replace(config, environment=registry.load('catch_vtrace').environment)
  with pytest.raises(types.UserError, match='environment.id'):
    lifecycle.check_resume(other, run)
