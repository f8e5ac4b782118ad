"""The output of `seed-acme train` at the end of a run."""

import dataclasses
import shlex

import numpy as np
import pytest

from seed_acme.configs import registry
from seed_acme.programs.command_line import own_name
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import train_command
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory


def _summary(**changes):
  return {
    'status': 'finished',
    'agent_steps': 1_024,
    'updates': 8,
    'episodes': 9,
    'wall_s': 5.0,
    'steps_per_s': 205.0,
    'steps_per_cpu_s': 99.0,
    'episode_return_last_100': None,
    'has_checkpoint': True,
    'saved_updates': 8,
    'lost_updates': 0,
    'lost_agent_steps': 0,
    **changes,
  }


def _printed(capsys, run, launch='', **changes):
  config = dataclasses.replace(registry.load('catch_vtrace'), total_steps=1_000)
  options = train_command.Options(
    launch=launch or 'local_mp', is_launch_given=bool(launch), max_restarts=0, prints_json=False
  )
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(own_name, 'command', lambda name: name)
    train_command._print_summary(config, _summary(**changes), run, options)
  return capsys.readouterr().out


@pytest.mark.parametrize('status', ['finished', 'stopped', 'failed'])
def test_it_offers_to_go_on_only_where_there_is_a_checkpoint(tmp_path, capsys, status):
  run = run_directory.create(tmp_path)
  words = ('Evaluate: ', 'Extend: ' if status == 'finished' else 'Resume: ')
  out = _printed(capsys, run, status=status)
  assert not any(word in out for word in ('Evaluate: ', 'Extend: ', 'Resume: '))
  checkpoint_writer.save(run.checkpoints, 0, {'w': np.zeros(2)}, {}, keep=1)
  out = _printed(capsys, run, status=status)
  assert all(word in out for word in words)
  assert '--launch' not in out
  assert f'train --run_dir={run.path} --launch=auto' in _printed(capsys, run, 'auto', status=status)


def test_a_run_without_an_update_is_resumed_but_not_evaluated(tmp_path, capsys):
  run = run_directory.create(tmp_path)
  checkpoint_writer.save(run.checkpoints, 0, {'w': np.zeros(2)}, {}, keep=1)
  out = _printed(capsys, run, status='failed', updates=0, saved_updates=0)
  assert 'Resume: ' in out and 'Evaluate: ' not in out


def test_what_is_lost_stands_before_the_way_to_go_on(tmp_path, capsys):
  run = run_directory.create(tmp_path)
  checkpoint_writer.save(run.checkpoints, 0, {'w': np.zeros(2)}, {}, keep=1)
  lines = _printed(
    capsys, run, status='stopped', saved_updates=1, lost_updates=1_234, lost_agent_steps=9
  ).splitlines()
  assert lines[-3].startswith('Lost: 1,234 updates and 9 steps are lost since checkpoint 000000')
  assert lines[-1].startswith('Resume: ')


@pytest.mark.parametrize(
  'total_steps, max_wall_s, steps, wall_s, expected',
  [
    (1_000, 0.0, 1_024, 5.0, '--config.total_steps=2048'),
    (1_000, 60.0, 1_000, 5.0, '--config.total_steps=2000'),
    (1_000_000, 20.0, 0, 20.1, '--config.max_wall_s=41'),
    (1_000_000, 20.0, 90_000, 20.0, '--config.max_wall_s=40'),
    (1_000, 20.0, 1_000, 20.0, '--config.total_steps=2000 --config.max_wall_s=40'),
  ],
)
def test_a_run_is_extended_by_the_budget_that_it_used_up(
  total_steps, max_wall_s, steps, wall_s, expected
):
  config = dataclasses.replace(
    registry.load('catch_vtrace'), total_steps=total_steps, max_wall_s=max_wall_s
  )
  assert train_command.extension(config, _summary(agent_steps=steps, wall_s=wall_s)) == expected


def test_the_commands_at_the_end_can_be_given_to_a_shell(tmp_path, capsys):
  run = run_directory.create(tmp_path / "a user's run (ü)")
  checkpoint_writer.save(run.checkpoints, 0, {'w': np.zeros(2)}, {}, keep=1)
  commands = {}
  for status in ('finished', 'stopped'):
    for line in _printed(capsys, run, 'auto', status=status).splitlines():
      label, _, command = line.partition(': ')
      if label in ('Evaluate', 'Extend', 'Resume'):
        commands[label] = shlex.split(command)
  assert commands['Evaluate'] == ['seed-acme', 'evaluate', str(run.path)]
  assert commands['Resume'] == ['seed-acme', 'train', f'--run_dir={run.path}', '--launch=auto']
  assert commands['Extend'][:-1] == commands['Resume']


def test_what_is_shown_of_a_path_needs_no_working_folder(tmp_path, monkeypatch):
  folder = tmp_path / 'gone'
  folder.mkdir()
  monkeypatch.chdir(folder)
  folder.rmdir()
  assert own_name.shorter('/a/b') == '/a/b'
  assert own_name.command('seed-acme')


@pytest.mark.parametrize('has_begun', [True, False])
def test_wrong_input_is_followed_by_the_summary_once_training_has_begun(
  tmp_path, capsys, monkeypatch, has_begun
):
  run = run_directory.create(tmp_path / 'run')
  failure = {'message': 'reward: expected a finite scalar, got nan', 'is_user_error': True}
  summary = _summary(status='failed', lost_updates=3) if has_begun else {}

  class Launch(launches.Launch):
    def start(self, *_):
      return launches.Outcome(2, summary, failure)

  monkeypatch.setattr(launches, 'load', lambda name: Launch())
  monkeypatch.setattr(lifecycle, 'prepare', lambda config, *_: (config, run))
  options = train_command.Options(
    launch='local_mp', is_launch_given=True, max_restarts=0, prints_json=False
  )
  assert train_command.train(registry.load('catch_vtrace'), run, options) == 2
  out, err = capsys.readouterr()
  assert err == f'error: {failure["message"]}\n'
  assert ('Failed: 1,024 steps' in out) == ('Lost: 3 updates' in out) == has_begun
