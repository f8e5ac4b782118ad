"""Grids of `seed-acme sweep`: parsing, and every error."""

import json

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import grid as sweep_grid

_BASE = registry.load('catch_vtrace')


@pytest.mark.slow
@pytest.mark.parametrize(
  'grid, product',
  [
    ('agent.discount=0.9', {'agent.discount': (0.9,)}),
    (
      'agent.optimizer.learning_rate=1e-3,3e-4 agent.lambda_=1,0.95',
      {'agent.optimizer.learning_rate': (0.001, 0.0003), 'agent.lambda_': (1.0, 0.95)},
    ),
    ('  agent.batch_size=8,16\nnum_actors=1 ', {'agent.batch_size': (8, 16), 'num_actors': (1,)}),
    ('network.mlp_sizes=[64,64],[128],[],32', {'network.mlp_sizes': ((64, 64), (128,), (), (32,))}),
    (
      'network.mlp_sizes=[64, 64],[8] agent.discount=1',
      {'network.mlp_sizes': ((64, 64), (8,)), 'agent.discount': (1.0,)},
    ),
    ('agent.entropy.threshold=None,0.5', {'agent.entropy.threshold': (None, 0.5)}),
    ('agent.advantage_offset=-1,1', {'agent.advantage_offset': (-1.0, 1.0)}),
    ('agent.optimizer.name=adam,rmsprop', {'agent.optimizer.name': ('adam', 'rmsprop')}),
    ('replay.separate_process=True,False', {'replay.separate_process': (True, False)}),
    (
      'environment.settings=[rows,5,columns,3],[]',
      {'environment.settings': ({'rows': 5, 'columns': 3}, {})},
    ),
    (
      'environment.id=catch,gymnasium:CartPole-v1',
      {'environment.id': ('catch', 'gymnasium:CartPole-v1')},
    ),
  ],
)
def test_text(grid, product):
  assert sweep_grid.parse([grid], _BASE) == [product]


@pytest.mark.parametrize(
  'value, text',
  [
    (0.001, '0.001'),
    (3, '3'),
    (True, 'True'),
    (None, 'None'),
    ('adam', 'adam'),
    ((64, 64), '[64,64]'),
    ((), '[]'),
    ({'rows': 5, 'columns': 3}, '[rows,5,columns,3]'),
  ],
)
def test_a_value_is_written_as_it_is_read(value, text):
  assert sweep_grid.text(value) == text


@pytest.mark.slow
@pytest.mark.parametrize(
  'grid, words',
  [
    ('', ['empty', 'FIELD=VALUE']),
    ('agent.discount', ["'agent.discount'", 'FIELD=VALUE']),
    ('grid.txt', ["'grid.txt'", '.json']),
    ('agent.discount=', ['agent.discount=', 'missing']),
    ('agent.discount=0.9,', ['0.9,', 'missing']),
    ('agent.discount=0.9,,1', ['0.9,,1', 'missing']),
    ('agent.discount=0.9, 1', ['0.9,', 'missing', 'without spaces']),
    ('agent.discount = 0.9', ["'agent.discount'", 'without spaces']),
    ('agent.discount=0.9 agent.discount=1', ['agent.discount twice', '--grid']),
    ('agent.discount=0.9,0.90', ['agent.discount=0.90 twice']),
    ('agent.discount=many', ['agent.discount=many', 'must be a number']),
    ('agent.batch_size=1.5', ['agent.batch_size=1.5', 'must be a whole number']),
    ('agent.discount=[0.9,1]', ['one value', 'agent.discount=0.9,1']),
    ('agent.entropy.threshold=high', ['agent.entropy.threshold=high', 'must be a number']),
    ('agent.max_abs_reward=-1', ['agent.max_abs_reward (-1.0) must be >= 0']),
    ('agent.optimizer.name=sgd', ['sgd', 'adam', 'rmsprop']),
    ('agent.discout=0.9', ['agent.discout', 'agent.discount?']),
    ('learning_rate=0.9', ['learning_rate', 'agent.optimizer.learning_rate?']),
    ('agent.optimizer=adam', ['agent.optimizer', 'agent.optimizer.name']),
    (
      'environment.settings.rows=5',
      ['environment.settings.rows: write environment.settings=[rows,V'],
    ),
    ('zzz=1', ['zzz', '--help']),
    ('network.mlp_sizes=64,64', ['64 twice', '[64,64]']),
    ('network.mlp_sizes=(64,64)', ['(64', '[64,64]']),
    ('network.mlp_sizes=[64,64', ['[64', 'no value']),
    ('network.mlp_sizes=[64]x', ['[64]x', 'no value']),
    ('network.mlp_sizes=[[64]]', ['[[64]]', 'no value']),
    ('network.mlp_sizes=[a]', ['[a]', '[64,64]']),
    ('seed=1,2', ['seed', '--seeds=N']),
    ('name=a', ['name', '--config.name']),
    ('missing.json', ['missing.json', 'No such file']),
  ],
)
def test_wrong_text_is_answered_in_one_line(grid, words):
  with pytest.raises(types.UserError) as caught:
    sweep_grid.parse([grid], _BASE)
  message = str(caught.value)
  assert '\n' not in message
  for word in words:
    assert word in message


def test_settings_in_a_grid_stand_beside_those_of_the_configuration():
  base = registry.load('bitflip_sac_her')
  assert base.environment.settings == {'num_bits': 10}
  [product] = sweep_grid.parse(
    ['environment.settings=[num_bits,4],[odd,0.5],[odd,a,num_bits,5]'], base
  )
  assert product['environment.settings'] == (
    {'num_bits': 4},
    {'num_bits': 10, 'odd': 0.5},
    {'num_bits': 5, 'odd': 'a'},
  )
  with pytest.raises(
    types.UserError, match=r'settings=\[odd,false\]: the setting odd .* write False'
  ):
    sweep_grid.parse(['environment.settings=[odd,false]'], base)


def _file(tmp_path, text):
  path = tmp_path / 'grid.json'
  path.write_text(text)
  return str(path)


@pytest.mark.slow
def test_files_hold_one_product_or_several(tmp_path):
  one = {
    'agent.discount': [0.9, 1],
    'network.mlp_sizes': [[64, 64], []],
    'agent.entropy.threshold': [None, 0.5],
  }
  product = {
    'agent.discount': (0.9, 1.0),
    'network.mlp_sizes': ((64, 64), ()),
    'agent.entropy.threshold': (None, 0.5),
  }
  assert sweep_grid.parse([_file(tmp_path, json.dumps(one))], _BASE) == [product]
  other = {'environment.settings': [{'rows': 5}], 'replay.separate_process': [True, False]}
  assert sweep_grid.parse([_file(tmp_path, json.dumps([one, other])), 'num_actors=1'], _BASE) == [
    product,
    {'environment.settings': ({'rows': 5},), 'replay.separate_process': (True, False)},
    {'num_actors': (1,)},
  ]


@pytest.mark.parametrize(
  'text, words',
  [
    ('{', ['grid.json', 'no JSON']),
    ('3', ['grid.json', '3']),
    ('{}', ['grid.json', '{}']),
    ('{"agent.discount": 0.9}', ['agent.discount', 'list', '0.9']),
    ('{"agent.discount": []}', ['agent.discount', 'list', '[]']),
    ('{"network.mlp_sizes": [[[64]]]}', ['network.mlp_sizes', 'list within a list']),
    ('{"agent.discount": ["many"]}', ['agent.discount=many', 'must be a number']),
    ('{"agent.discout": [1]}', ['agent.discout', 'agent.discount?']),
  ],
)
def test_wrong_files(tmp_path, text, words):
  with pytest.raises(types.UserError) as caught:
    sweep_grid.parse([_file(tmp_path, text)], _BASE)
  for word in words:
    assert word in str(caught.value)


def test_a_field_of_a_nested_record_is_replaced_alone():
  changed = sweep_grid.replace(_BASE, 'agent.optimizer.learning_rate', 0.5)
  assert sweep_grid.get(changed, 'agent.optimizer.learning_rate') == 0.5
  assert (
    sweep_grid.replace(
      changed, 'agent.optimizer.learning_rate', _BASE.agent.optimizer.learning_rate
    )
    == _BASE
  )
