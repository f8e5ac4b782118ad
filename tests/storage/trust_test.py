"""User code named in a run folder's configuration, and when it may be imported."""

import dataclasses
import json
import sys

import pytest

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.tools.reports import evaluation
from seed_acme.programs.tools.reports import played_config
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
    # A function of seed_acme that starts the program that it is given.
    (
      'network.torso',
      lambda r: r['network'].update(
        torso='seed_acme.envs.interpreters.interpreter:probe', torso_settings={'python': 'evil'}
      ),
      'seed_acme.envs.interpreters.interpreter:probe',
    ),
    (
      'environment.id',
      lambda r: r['environment'].update(id='seed_acme.envs.interpreters.interpreter:probe'),
      'seed_acme.envs.interpreters.interpreter:probe',
    ),
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
  ],
)
def test_what_is_installed_needs_no_trust(environment_id):
  trust.require(_record(lambda r: r['environment'].update(id=environment_id)), 'folder', _NOBODY)


@pytest.mark.parametrize('nested', [True, False])
def test_another_python_is_started_only_with_trust(nested, tmp_path):
  program = tmp_path / 'python'
  record = _record(lambda r: r['actor'].update(python=str(program)))
  trust.require(record, 'folder', _NOBODY)  # there is nothing to start
  program.touch()
  record = {'actor.python': str(program)}  # as a sweep saves it
  if nested:
    record = _record(lambda r: r['actor'].update(python=str(program)))
  with pytest.raises(types.UserError) as error:
    trust.require(record, 'folder/config.json', _NOBODY)
  assert f"another Python, actor.python='{program}', which would be started" in str(error.value)
  assert f'--config.actor.python={program} (evaluate: --python)' in str(error.value)
  trust.require(record, 'folder', _NOBODY, only_types=True)
  trust.require(record, 'folder', trust.Trust(fields=frozenset(['actor.python'])))
  trust.require(record, 'folder', trust.EVERYTHING)
  for own in ('', sys.executable):
    trust.require(_record(lambda r: r['actor'].update(python=own)), 'folder', _NOBODY)  # noqa: B023


@pytest.mark.parametrize('command', [['evaluate', '{run}'], ['train', '--run_dir={run}']])
def test_a_program_in_the_folder_is_not_started(command, tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(evaluation.opening, 'find_checkpoint', lambda *_: None)
  run = run_directory.create(tmp_path / 'run')
  program = run.path / 'videos' / 'python'
  program.parent.mkdir()
  program.write_text(f'#!/bin/sh\ntouch {tmp_path}/started\n')
  program.chmod(0o755)
  record = _record(lambda r: r['actor'].update(python=str(program)))
  run.config.write_text(json.dumps(record))
  assert cli.main([part.format(run=run.path) for part in command]) == 2
  assert 'another Python' in capsys.readouterr().err
  assert not (tmp_path / 'started').exists()
  cli.main(['evaluate', str(run.path), f'--python={program}'])
  assert (tmp_path / 'started').exists()


def test_what_only_reads_weights_needs_no_trust_in_a_python_that_it_does_not_start(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  program = tmp_path / 'python'
  program.touch()
  record = _record(lambda r: r['actor'].update(python=str(program)))
  run.config.write_text(json.dumps(record))
  with pytest.raises(types.UserError, match='another Python'):
    played_config.load(run, plays=False)  # it would be started for the specification
  run.specification.touch()
  assert played_config.load(run, plays=False).actor.python == str(program)
  with pytest.raises(types.UserError, match='another Python'):
    played_config.load(run)


def test_a_name_that_is_not_checked_is_not_imported(tmp_path, monkeypatch):
  """A module with a hyphen can be imported, but not by a name of this form."""
  (tmp_path / 'my-torso.py').write_text('raise AssertionError')
  monkeypatch.syspath_prepend(tmp_path)
  record = _record(lambda r: r['network'].update(torso='my-torso:Torso'))
  trust.require(record, 'folder', _NOBODY)
  with pytest.raises(types.UserError, match=r"'my-torso:Torso'\) must be written package.module"):
    dotted_path.load_object('my-torso:Torso', 'network.torso')


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
