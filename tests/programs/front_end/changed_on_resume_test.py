"""What `train` says of fields: of those that another configuration changes in a saved run, and of
those that it was given in vain."""

import dataclasses

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


def _saved(folder, **changes):
  run = run_directory.create(folder)
  saved_config.save(dataclasses.replace(registry.load('catch_vtrace'), **changes), run.config)
  return f'--run_dir={run.path}'


def test_what_a_configuration_changes_in_a_saved_run_is_told(tmp_path, capsys):
  """Else a run of 3 million steps ends at the 300,000 of its configuration."""
  run = _saved(tmp_path, total_steps=3_000_000, num_actors=3)
  named = ['train', '--show_layout', '--config=catch_vtrace']
  assert cli.main([*named, run, '--config.num_actors=1']) == 0
  said = capsys.readouterr().err
  assert said.startswith('Notice: total_steps: 3000000 -> 300000, by --config=catch_vtrace; leave')
  assert 'num_actors' not in said  # was asked for
  for others in (['train', '--show_layout', run], [*named, f'--run_dir={tmp_path / "new"}']):
    assert cli.main(others) == 0
    assert capsys.readouterr().err == ''


def test_what_was_given_in_vain_is_told(capsys):
  command = ['train', '--show_layout', '--config=cartpole_ppo']
  given = ['--config.network.core-size=32', '--config.agent.optimizer.rmsprop_decay=0.9']
  assert cli.main([*command, '--config.agent.ppo_epsilon=0.1', *given]) == 0
  assert capsys.readouterr().err.splitlines() == [
    f'Notice: --config.{field} has no effect on learning, because {reason}'
    for field, reason in (
      ('agent.optimizer.rmsprop_decay', 'agent.optimizer.name is adam'),
      ('network.core_size', 'network.core is none'),
    )
  ]
