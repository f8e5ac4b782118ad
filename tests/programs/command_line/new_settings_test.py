"""Settings that the configuration does not mention, given on the command line."""

import dataclasses

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import line as line_lib


def _parse(name, *argv):
  _, given = given_lib.split(
    command_lib.find('train'), line_lib.read(['train', f'--config={name}', *argv])
  )
  return given.config()


@pytest.mark.parametrize(
  'text, value',
  [('0.25', 0.25), ('3', 3), ('True', True), ('False', False), ('-1e3', -1e3), ('a', 'a')],
)
def test_a_new_setting_stands_beside_the_others(text, value):
  before = registry.load('atari_vtrace_small').environment
  found = _parse('atari_vtrace_small', f'--config.environment.settings.odd={text}').environment
  assert found.id == before.id
  assert found.settings == {**before.settings, 'odd': value}
  assert type(found.settings['odd']) is type(value)


def test_a_setting_that_the_configuration_has_keeps_its_type():
  changed = '--config.environment.settings.full_action_set=True'
  assert _parse('atari_vtrace_small', changed).environment.settings['full_action_set'] is True
  with pytest.raises(types.UserError, match='full_action_set'):
    _parse('atari_vtrace_small', '--config.environment.settings.full_action_set=perhaps')


@pytest.mark.parametrize(
  'words', [['.odd=false'], ['.odd=TRUE'], ['', 'rows', '5', 'odd', 'false'], ['', 'odd', 'true']]
)
def test_a_truth_in_small_letters_is_no_string(words):
  """An environment would take 'false' for true."""
  first, *rest = words
  with pytest.raises(types.UserError, match=r'^the setting odd .* write (Tru|Fals)e$'):
    _parse('catch_vtrace', f'--config.environment.settings{first}', *rest)


def test_a_whole_number_may_become_a_fraction_and_no_word():
  config = registry.load('catch_vtrace')
  environment = dataclasses.replace(config.environment, settings={'power': 1})
  config = dataclasses.replace(config, environment=environment)
  _, given = given_lib.split(
    command_lib.find('train'),
    line_lib.read(['train', '--config=catch_vtrace', '--config.environment.settings.power=0.5']),
  )
  assert given.config(config).environment.settings == {'power': 0.5}
  flag = '--config.environment.settings.power='
  for words, power in ((('3', '2.5'), 2.5), (('2.5', '3'), 3.0)):
    both = given._replace(overrides=tuple(f'{flag}{word}' for word in words))
    assert both.config(config).environment.settings == {'power': power}
  for text in ('a', 'nan', 'inf', '1e6'):
    with pytest.raises(types.UserError, match='must be a whole number'):
      given._replace(overrides=(f'{flag}{text}',)).config(config)


def test_a_text_may_be_true():
  config = registry.load('catch_vtrace')
  environment = dataclasses.replace(config.environment, settings={'mode': 'fast'})
  config = dataclasses.replace(config, environment=environment)
  words = ['train', '--config=catch_vtrace', '--config.environment.settings.mode=true']
  _, given = given_lib.split(command_lib.find('train'), line_lib.read(words))
  assert given.config(config).environment.settings == {'mode': 'true'}


def test_settings_of_a_torso_and_other_arguments_beside_it():
  found = _parse('catch_vtrace', '--config.network.torso_settings.size=128', '--config.seed=7')
  assert (found.network.torso_settings, found.seed) == ({'size': 128}, 7)


def test_a_setting_that_the_environment_does_not_know_is_named(monkeypatch, capsys):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  code = cli.main(['train', '--config=catch_vtrace', '--config.environment.settings.row=9'])
  error = capsys.readouterr().err
  assert code == 2 and 'row' in error and 'rows' in error
