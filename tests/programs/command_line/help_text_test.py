"""`--help`: the common options first, the others by group, a meaning for each."""

import dataclasses

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given
from seed_acme.programs.command_line import help_text
from seed_acme.programs.command_line import meanings
from seed_acme.programs.command_line import options as options_lib
from seed_acme.programs.tools.reports import list_command
from tests import command_names


def _described(command='train', config=''):
  return given.described(command_lib.find(command), config)


def _help(capsys, *arguments):
  assert cli.main(list(arguments)) == 0
  return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setenv('COLUMNS', '100')


def test_every_field_of_every_configuration_has_a_meaning():
  without = {
    option.name
    for name in registry.names()
    for option in options_lib.options(*_described(config=name))
    if not option.meaning
  }
  assert not without


@pytest.mark.parametrize('command', command_names.listed())
def test_every_option_of_every_command_has_a_meaning_and_is_shown(command, capsys):
  kind, default = _described(command)
  options = options_lib.options(kind, default)
  assert options and not [option.name for option in options if not option.meaning]
  shown = _help(capsys, command, '--help=all')
  words = {line.strip().partition('  ')[0] for line in shown.splitlines()}
  assert {option.flag for option in options} <= words
  assert meanings.summary(kind).split('.')[0][:60] in shown
  assert f'usage: seed-acme {command}' in _help(capsys, command, '-h')


def test_the_short_help_has_the_common_options_and_names_the_groups(capsys):
  shown = _help(capsys, 'train', '--help')
  assert len(shown.splitlines()) < 90
  for name in help_text.COMMON:
    assert f'--{name}' in shown, name
  assert shown.index('--config.total_steps') < shown.index('--config.agent.unroll_length')
  assert '--config.agent.optimizer.adam_beta1' not in shown and 'adam_beta1' not in shown
  assert '--run_dir=STR' in shown
  assert '(>= 1, default: 300000)' in ' '.join(shown.split())  # lines may break anywhere
  kind, default = _described()
  names = [
    line.split()[0]
    for line in shown.partition('All fields')[2].splitlines()[1:]
    if line.startswith('  ') and line[2] != ' '
  ]
  assert names[:4] == ['config', 'environment', 'network', 'agent']
  in_groups = {
    line.strip().partition('  ')[0]
    for name in names
    for line in help_text.describe(kind, default, 'train', name).splitlines()
    if line.startswith('  --')
  }
  assert in_groups == {option.flag for option in options_lib.options(kind, default) if option.group}


def test_a_group_and_a_field_of_the_configuration_that_is_named(capsys):
  shown = _help(capsys, 'train', '--config=pendulum_ppo', '--help=agent')
  assert '--config.agent.ppo_epsilon=FLOAT' in shown and 'config.agent.entropy: ' in shown
  assert '--config.num_actors' not in shown
  only = _help(capsys, 'train', '--help=total_steps')
  assert only.startswith('--config.total_steps=INT') and 'after which the run ends' in only


def test_an_unknown_group_is_refused(capsys):
  assert cli.main(['train', '--help=agnt']) == 2
  error = capsys.readouterr().err
  assert 'agnt' in error and 'agent' in error and len(error.splitlines()) <= 4


def test_meanings_of_a_docstring():
  @dataclasses.dataclass
  class Base:
    """A base.

    inherited: from here. overridden: not this.
    """

    inherited: int = 0
    overridden: int = 0

  @dataclasses.dataclass
  class Derived(Base):
    """Several
    lines.

    overridden: this, with a note: see there.
      It goes on.
    a, b: shared. *_size: by pattern. last: 0 = off.
    """

    a: int = 0
    b: int = 0
    x_size: int = 0
    last: int = 0
    nothing: int = 0

  assert meanings.summary(Derived) == 'Several lines.'
  assert [
    meanings.meaning(Derived, name)
    for name in ('inherited', 'overridden', 'a', 'b', 'x_size', 'last', 'nothing')
  ] == [
    'from here.',
    'this, with a note: see there. It goes on.',
    'shared.',
    'shared.',
    'by pattern.',
    '0 = off.',
    '',
  ]


def test_a_group_of_a_command_that_has_none_is_refused():
  with pytest.raises(types.UserError):
    help_text.describe(list_command.ListArguments, None, 'list', 'agent')


@pytest.mark.parametrize(
  'command, meaning',
  [('train', '(default: catch_vtrace)'), ('sweep', '(must be given for a new sweep;')],
)
def test_whether_the_configuration_must_be_given(command, meaning):
  text = help_text.describe(*_described(command), command, '')
  assert meaning in ' '.join(text.split())
