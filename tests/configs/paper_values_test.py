"""The Atari configurations have the values of paper_table.py, and docs/ says the same."""

import dataclasses
import pathlib
import re

import pytest

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.configs import registry
from seed_acme.envs import atari
from tests.configs import paper_table

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'reproduction.md'
_PROVENANCES = ('code', 'paper', 'unverified', 'own')


def _rows(config):
  return [
    row
    for row in paper_table.TABLE
    if config == row.configs or (config in row.configs and type(row.configs) is tuple)
  ]


def _flat(record, path):
  """`{'agent.optimizer.name': 'adam', ...}` of nested dataclasses."""
  values = {}
  for field in dataclasses.fields(record):
    value, name = getattr(record, field.name), f'{path}.{field.name}'
    values.update(_flat(value, name) if dataclasses.is_dataclass(value) else {name: value})
  return values


# Fields of the on-policy agent that V-trace uses. The others equal the preset's.
_OF_VTRACE = re.compile(
  r'agent\.(agent|unroll_length|overlap|batch_size|optimizer\..*|discount|lambda_|rho_clip|c_clip|'
  r'policy_rho_clip|value_cost|entropy\.(weight|threshold)|kl_cost|max_abs_reward)'
)


def _agent(config):
  fields = _flat(config, 'agent')
  if not isinstance(config, on_policy_config.OnPolicyConfig):
    return fields
  preset = _flat(presets.vtrace(), 'agent')
  if config.entropy.threshold is None:
    del fields['agent.entropy.speed']  # used by learnt weights only
  return {
    name: value
    for name, value in fields.items()
    if _OF_VTRACE.fullmatch(name) or value != preset[name]
  }


def _network(config):
  fields = _flat(config, 'network')
  if not config.torso_settings:  # used by custom torsos only
    del fields['network.torso_settings']
  return fields


def _resolved(config):
  """Returns everything that the table must mention, by the same names."""
  settings = atari.Settings(**config.environment.settings)
  return {
    **_agent(config.agent),
    **_network(config.network),
    **_flat(settings, 'settings'),
    'environment.id': config.environment.id,
    'num_actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'num_training_environments': layout_lib.Layout.of(config).num_training,
    'num_evaluation_environments': config.num_evaluation_environments,
    'inference_batch_size': layout_lib.Layout.of(config).batch_rows(0, 1)[0],
    'total_steps': config.total_steps,
    'total_frames': config.total_steps * settings.frames_per_step,
  }


def _differences(config, rows):
  """Returns fields that differ between table and configuration, or that one of them lacks."""
  resolved, stated = _resolved(config), {row.field: row.value for row in rows}
  # Compared with the type: otherwise True equals 1 and 1.0.
  return {
    name: (resolved.get(name, 'absent'), stated.get(name, 'absent'))
    for name in resolved.keys() | stated.keys()
    if repr(resolved.get(name, 'absent')) != repr(stated.get(name, 'absent'))
  }


@pytest.mark.parametrize('name', paper_table.ALL)
def test_the_configuration_is_the_table_field_by_field(name):
  assert _differences(registry.load(name), _rows(name)) == {}
  fields = [row.field for row in _rows(name)]
  assert len(fields) == len(set(fields)), 'a field is listed twice'


@pytest.mark.parametrize('name', paper_table.ALL)
def test_a_field_that_is_missing_wrong_or_unknown_is_found(name):
  config, rows = registry.load(name), _rows(name)
  for row in rows:
    rest = [other for other in rows if other.field != row.field]
    assert set(_differences(config, rest)) == {row.field}
    assert set(_differences(config, [*rest, row._replace(value='other')])) == {row.field}
  assert set(_differences(config, [*rows, paper_table.Row(name, 'agent.new', 1, 'own')])) == {
    'agent.new'
  }


def test_no_environment_setting_escapes_through_environment_config():
  fields = {field.name for field in dataclasses.fields(config_lib.EnvironmentConfig)}
  assert fields == {'id', 'settings'}  # the two that `_resolved` reads


def test_every_provenance_is_one_of_the_four_and_every_note_fits_into_a_line():
  assert {row.provenance for row in paper_table.TABLE} == set(_PROVENANCES)
  for row in paper_table.TABLE:
    assert '|' not in row.note and '\n' not in row.note


def _shown(value):
  if value is None or value in ('', ()):
    return 'none'
  if isinstance(value, (bool, str)):
    return str(value)
  if isinstance(value, int):
    return f'{value:,}'
  if isinstance(value, float):
    return f'{value:g}'
  return ', '.join(map(str, value))


def _line(row):
  """The row as a line of the table in docs/reproduction.md."""
  configs = row.configs if type(row.configs) is tuple else (row.configs,)
  names = ', '.join(f'`{name}`' for name in configs) if configs != paper_table.ALL else 'all'
  return f'| {names} | `{row.field}` | {_shown(row.value)} | {row.provenance} | {row.note} |'


def _lines_of_the_page(text):
  return [
    re.sub(r' +', ' ', line) for line in text.splitlines() if re.match(r'\| *(`atari_|all)', line)
  ]


def test_the_page_shows_every_row_and_no_other():
  shown = _lines_of_the_page(_PAGE.read_text())
  expected = [re.sub(r' +', ' ', _line(row)) for row in paper_table.TABLE]
  assert sorted(shown) == sorted(expected)


def test_the_page_explains_every_provenance():
  text = _PAGE.read_text()
  for provenance in _PROVENANCES:
    assert f'**{provenance}**' in text
