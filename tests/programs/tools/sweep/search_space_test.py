"""Spaces of `seed-acme sweep --search`: parsing, and every error."""

import json

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep.search_space import Choices
from seed_acme.programs.tools.sweep.search_space import Range

_BASE = registry.load('catch_vtrace')
_RATE = 'agent.optimizer.learning_rate'


@pytest.mark.slow
@pytest.mark.parametrize(
  'written, space',
  [
    (f'{_RATE}=1e-5..1e-2:log', {_RATE: Range(1e-5, 1e-2, True)}),
    ('agent.discount=0.9..1', {'agent.discount': Range(0.9, 1.0)}),
    ('agent.discount=.9...99', {'agent.discount': Range(0.9, 0.99)}),
    ('agent.advantage_offset=-1..1', {'agent.advantage_offset': Range(-1.0, 1.0)}),
    ('agent.batch_size=8..64:log', {'agent.batch_size': Range(8, 64, True)}),
    (
      'network.mlp_sizes=[64,64],[128] agent.discount=0.9,0.99',
      {'network.mlp_sizes': Choices(((64, 64), (128,))), 'agent.discount': Choices((0.9, 0.99))},
    ),
    ('agent.entropy.threshold=None,0.5', {'agent.entropy.threshold': Choices((None, 0.5))}),
  ],
)
def test_ranges_and_choices_are_read_and_written_back(written, space):
  parsed = search_space.parse(written, _BASE)
  assert parsed == space
  kinds = [type(domain.low) for domain in parsed.values() if isinstance(domain, Range)]
  assert kinds == [type(domain.low) for domain in space.values() if isinstance(domain, Range)]
  assert search_space.parse(search_space.text(parsed), _BASE) == parsed


def test_a_field_that_may_be_none_takes_a_range_of_numbers():
  parsed = search_space.parse('agent.entropy.threshold=0.1..0.9', _BASE)
  assert parsed == {'agent.entropy.threshold': Range(0.1, 0.9)}


@pytest.mark.slow
def test_a_json_file(tmp_path):
  path = tmp_path / 'space.json'
  path.write_text(json.dumps({_RATE: '1e-4..1e-2:log', 'network.mlp_sizes': [[64, 64], []]}))
  assert search_space.parse(str(path), _BASE) == {
    _RATE: Range(1e-4, 1e-2, True),
    'network.mlp_sizes': Choices(((64, 64), ())),
  }


@pytest.mark.slow
@pytest.mark.parametrize(
  'written, words',
  [
    ('', ['--search', 'empty']),
    (_RATE, ['--search', f"'{_RATE}'"]),
    ('agent.discout=0.9..1', ['--search', 'agent.discout', 'agent.discount?']),
    ('seed=1..9', ["'seed'", '--seeds=N']),
    ('agent.discount=0.9', ['nothing to search', '--config.agent.discount']),
    ('agent.discount=1..0.9', ['LOW (1.0)', 'HIGH (0.9)']),
    ('agent.discount=0.9..0.9', ['below']),
    ('agent.discount=0..1:log', ['LOW (0.0)', 'logarithmic']),
    ('agent.discount=0.1..1:ln', ['0.1..1:ln', 'LOW..HIGH:log']),
    ('agent.discount=0.9..one', ['agent.discount=one', 'number']),
    ('agent.batch_size=1.5..8', ['agent.batch_size=1.5', 'whole number']),
    ('agent.discount=0.9..1,0.5', ['0.9..1', 'alone']),
    ('agent.optimizer.name=a..b', ['agent.optimizer.name=a']),
    ('environment.id=a..b', ['range is for numbers', 'environment.id=VALUE,VALUE']),
    ('replay.separate_process=False..True', ['range is for numbers']),
    ('agent.discount=0.9,0.90', ['twice']),
    ('agent.rho_clip=0.9..inf', ['range is for numbers']),
    ('nothing.json', ['--search file nothing.json']),
  ],
)
def test_what_is_no_space(written, words):
  with pytest.raises(types.UserError) as caught:
    search_space.parse(written, _BASE)
  for word in words:
    assert word in str(caught.value)


@pytest.mark.parametrize(
  'content, words',
  [([], ['must hold']), ({}, ['must hold']), ({'agent.discount': []}, ['no values'])],
)
def test_a_file_that_is_no_space(tmp_path, content, words):
  path = tmp_path / 'space.json'
  path.write_text(json.dumps(content))
  with pytest.raises(types.UserError) as caught:
    search_space.parse(str(path), _BASE)
  for word in [str(path), *words]:
    assert word in str(caught.value)


def test_numbers_that_are_drawn_get_six_digits_and_stay_within_the_range():
  assert search_space.rounded(0.00031415926, Range(1e-5, 1e-2, True)) == 0.000314159
  assert search_space.rounded(0.12345678, Range(0.1, 0.12345678)) == 0.12345678
  assert search_space.rounded(12, Range(8, 64)) == 12


def test_what_could_have_been_drawn():
  assert search_space.contains(Range(0.1, 0.9), 0.5)
  assert not search_space.contains(Range(0.1, 0.9), 0.95)
  assert not search_space.contains(Range(0.1, 0.9), None)
  assert not search_space.contains(Range(0.1, 0.9), 0.123456789)
  assert search_space.contains(Choices(((64, 64), ())), ())
  assert not search_space.contains(Choices(((64, 64), ())), (8,))
