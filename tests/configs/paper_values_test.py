"""Every value of the Atari configurations, where it comes from, and that docs/ says the same.

The table is literal on purpose: a default that changes anywhere, and a field that is added
anywhere, has to be entered here, with its source.
"""

import dataclasses
import pathlib
import re
from typing import Any, NamedTuple

import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import atari

_R2D2, _SHALLOW, _DEEP = 'atari_r2d2', 'atari_vtrace', 'atari_vtrace_deep'
_VTRACE = (_SHALLOW, _DEEP)
_ALL = (_R2D2, *_VTRACE)
_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'reproduction.md'
_PROVENANCES = ('code', 'paper', 'unverified', 'own')


class Row(NamedTuple):
  """A value of one or more configurations.

  provenance: code = read in the authors' code or documents, paper = quoted from the paper by
  a source that docs/reproduction.md names, unverified = ascribed to the paper but not held
  against it, own = ours.
  """

  configs: str | tuple[str, ...]
  field: str
  value: Any
  provenance: str
  note: str = ''


_SUMMED = 'the paper sums its loss over 32 x 20 steps and ours is a mean'

TABLE = (
  # How much, with how many environments.
  Row(_ALL, 'environment.id', 'atari:Pong', 'own', 'one game a run; choose any of the 57'),
  Row(_R2D2, 'total_frames', 40_000_000_000, 'code', 'gcp/train_atari.sh says 50e9'),
  Row(_R2D2, 'total_steps', 10_000_000_000, 'own', 'total_frames / frames_per_step'),
  Row(_VTRACE, 'total_frames', 200_000_000, 'unverified'),
  Row(_VTRACE, 'total_steps', 50_000_000, 'own', 'total_frames / frames_per_step'),
  Row(_R2D2, 'num_training_environments', 610, 'paper', '640 with those of evaluation'),
  Row(_R2D2, 'num_actors', 61, 'own', 'one environment an actor there'),
  Row(_R2D2, 'environments_per_actor', 10, 'own', 'one environment an actor there'),
  Row(_R2D2, 'num_evaluation_environments', 30, 'code'),
  Row(_R2D2, 'inference_batch_size', 64, 'unverified', 'gcp/train_atari.sh says 32'),
  Row(_VTRACE, 'num_training_environments', 128, 'own'),
  Row(_VTRACE, 'num_actors', 4, 'own'),
  Row(_VTRACE, 'environments_per_actor', 32, 'own'),
  Row(_VTRACE, 'num_evaluation_environments', 0, 'own'),
  Row(_VTRACE, 'inference_batch_size', 64, 'own', 'half of the environments; theirs act alone'),
  # The environment: the settings in effect, defaults included.
  Row(
    _R2D2,
    'settings.frames_per_step',
    4,
    'code',
    'the default there until August 2020, 1 since; maximum of the last two frames, each '
    'made gray first, as in the released runs; the paper made the maximum gray',
  ),
  Row(_VTRACE, 'settings.frames_per_step', 4, 'paper', 'maximum of the last two frames'),
  Row(_R2D2, 'settings.image_size', 84, 'code', 'area interpolation instead of bilinear'),
  Row(_VTRACE, 'settings.image_size', 84, 'paper', 'gray; interpolation: area, theirs unknown'),
  Row(_R2D2, 'settings.max_num_noops', 30, 'code', 'uniform from 1, before the first step'),
  Row(_VTRACE, 'settings.max_num_noops', 30, 'unverified'),
  Row(_R2D2, 'settings.repeat_action_probability', 0.0, 'code', 'no sticky actions'),
  Row(_VTRACE, 'settings.repeat_action_probability', 0.0, 'unverified', 'no sticky actions'),
  Row(_R2D2, 'settings.full_action_set', True, 'code', '18 actions'),
  Row(_VTRACE, 'settings.full_action_set', True, 'unverified', '18 actions'),
  Row(
    _R2D2,
    'settings.max_frames',
    108_000,
    'code',
    'ends there by truncation, which bootstraps; by termination in the original. No end '
    'at the loss of a life in either',
  ),
  Row(
    _VTRACE,
    'settings.max_frames',
    108_000,
    'unverified',
    'ends there by truncation. The paper also ends an episode at the loss of a life; ours does not',
  ),
  Row(_ALL, 'settings.stack', 1, 'own', 'the network stacks, see frame_stack'),
  Row(_ALL, 'settings.vectorized', True, 'own', 'ale-py; the paper of R2D2 used xitari'),
  Row(_ALL, 'settings.num_threads', 1, 'own'),
  # The network.
  Row(_R2D2, 'network.torso', 'nature_cnn', 'code'),
  Row(_SHALLOW, 'network.torso', 'impala_shallow', 'unverified', 'figure 3, left'),
  Row(_DEEP, 'network.torso', 'impala_resnet', 'code', 'figure 3, right'),
  Row(_R2D2, 'network.torso_output_size', 512, 'code'),
  Row(_SHALLOW, 'network.torso_output_size', 256, 'unverified'),
  Row(_DEEP, 'network.torso_output_size', 256, 'code'),
  Row(_R2D2, 'network.frame_stack', 4, 'code', 'newest first, zeros before the episode'),
  Row(_VTRACE, 'network.frame_stack', 4, 'paper'),
  Row(_R2D2, 'network.core', 'lstm', 'code'),
  Row(_VTRACE, 'network.core', 'none', 'unverified', 'with LSTM on DMLab only'),
  Row(_R2D2, 'network.core_size', 512, 'code'),
  Row(_VTRACE, 'network.core_size', 256, 'own', 'not used without a core'),
  Row(_R2D2, 'network.previous_action_input', True, 'code', 'one-hot; nothing at FIRST'),
  Row(_VTRACE, 'network.previous_action_input', False, 'unverified'),
  Row(_R2D2, 'network.previous_reward_input', True, 'code'),
  Row(_VTRACE, 'network.previous_reward_input', False, 'unverified'),
  Row(_R2D2, 'network.previous_reward_bound', 0.0, 'code', 'as it is'),
  Row(_VTRACE, 'network.previous_reward_bound', 1.0, 'own', 'not used without the input'),
  Row(_R2D2, 'network.head_sizes', (512,), 'code', 'dueling, of value and advantage each'),
  Row(_VTRACE, 'network.head_sizes', (), 'code', 'one dense layer each'),
  Row(_ALL, 'network.mlp_sizes', (64, 64), 'own', 'not used by these torsos'),
  Row(_R2D2, 'network.activation', 'relu', 'code', 'of the hidden layers of the heads'),
  Row(_VTRACE, 'network.activation', 'relu', 'own', 'not used without hidden layers'),
  Row(_ALL, 'network.initializer', 'glorot_uniform', 'code', "Keras's default"),
  Row(_ALL, 'network.hidden_gain', 0.0, 'own', 'as the initializer says'),
  Row(_ALL, 'network.policy_head_gain', 1.0, 'own', 'as the initializer says'),
  Row(_ALL, 'network.value_head_gain', 1.0, 'own', 'as the initializer says'),
  Row(_ALL, 'network.separate_value_network', False, 'code'),
  Row(_ALL, 'network.module', '', 'own', 'none'),
  # The optimiser.
  Row(_R2D2, 'agent.optimizer.name', 'adam', 'code'),
  Row(_R2D2, 'agent.optimizer.learning_rate', 1e-4, 'code', 'the flag defaults to 4.8e-4'),
  Row(_R2D2, 'agent.optimizer.schedule', 'constant', 'code'),
  Row(
    _R2D2,
    'agent.optimizer.epsilon',
    1e-3,
    'code',
    "Sonnet's Adam adds it after the bias correction, Keras's before: the first updates differ",
  ),
  Row(_R2D2, 'agent.optimizer.adam_beta1', 0.9, 'code', "Keras's default"),
  Row(_R2D2, 'agent.optimizer.adam_beta2', 0.999, 'code', "Keras's default"),
  Row(_R2D2, 'agent.optimizer.max_gradient_norm', 80.0, 'code', 'the flag defaults to 40'),
  Row(_R2D2, 'agent.optimizer.rmsprop_decay', 0.99, 'own', 'not used by Adam'),
  Row(_R2D2, 'agent.optimizer.rmsprop_momentum', 0.0, 'own', 'not used by Adam'),
  Row(
    _VTRACE,
    'agent.optimizer.name',
    'rmsprop',
    'paper',
    "Sonnet's mean square starts at 0, that of TensorFlow 1 at 1: the first updates are larger",
  ),
  Row(_VTRACE, 'agent.optimizer.learning_rate', 6e-4, 'paper'),
  Row(_VTRACE, 'agent.optimizer.schedule', 'linear', 'paper', 'down to 0 over the run'),
  Row(
    _VTRACE,
    'agent.optimizer.epsilon',
    0.01 / 640**2,
    'paper',
    f'0.01 / 640^2, within the root: {_SUMMED}',
  ),
  Row(_VTRACE, 'agent.optimizer.max_gradient_norm', 40 / 640, 'paper', f'40 / 640: {_SUMMED}'),
  Row(_VTRACE, 'agent.optimizer.rmsprop_decay', 0.99, 'code', 'default there, for DMLab'),
  Row(_VTRACE, 'agent.optimizer.rmsprop_momentum', 0.0, 'paper'),
  Row(_VTRACE, 'agent.optimizer.adam_beta1', 0.9, 'own', 'not used by RMSProp'),
  Row(_VTRACE, 'agent.optimizer.adam_beta2', 0.999, 'own', 'not used by RMSProp'),
  # R2D2.
  Row(_R2D2, 'agent.agent', 'r2d2', 'own', 'the name here'),
  Row(_R2D2, 'agent.unroll_length', 80, 'code', 'the flag defaults to 100'),
  Row(
    _R2D2,
    'agent.overlap',
    40,
    'code',
    'burn-in; the stored state is that of row 0, 40 steps later in the original',
  ),
  Row(_R2D2, 'agent.batch_size', 64, 'code'),
  Row(_R2D2, 'agent.replay', 'prioritized', 'code'),
  Row(_R2D2, 'agent.replay_capacity', 100_000, 'code', 'unrolls; the flag defaults to 100'),
  Row(_R2D2, 'agent.replay_min_size', 5_000, 'code', 'unrolls; the flag defaults to 10'),
  Row(_R2D2, 'agent.replay_ratio', 0.75, 'code', 'the flag defaults to 1.5'),
  Row(_R2D2, 'agent.priority_exponent', 0.9, 'code'),
  Row(_R2D2, 'agent.importance_exponent', 0.6, 'code'),
  Row(_R2D2, 'agent.discount', 0.997, 'code'),
  Row(_R2D2, 'agent.num_bootstrap_steps', 5, 'code'),
  Row(_R2D2, 'agent.target_period', 2_500, 'code', 'updates'),
  Row(_R2D2, 'agent.rescaling_epsilon', 1e-3, 'code'),
  Row(
    _R2D2,
    'agent.max_priority_share',
    0.9,
    'code',
    'a first priority takes the greedy action for the target, the original the one played',
  ),
  Row(_R2D2, 'agent.epsilon_base', 0.4, 'code'),
  Row(_R2D2, 'agent.epsilon_exponent', 7.0, 'code'),
  Row(_R2D2, 'agent.evaluation_epsilon', 1e-3, 'code', 'also of seed-acme evaluate'),
  Row(_R2D2, 'agent.max_abs_reward', 0.0, 'code', 'off'),
  # V-trace.
  Row(_VTRACE, 'agent.agent', 'vtrace', 'own', 'the name here'),
  Row(_VTRACE, 'agent.unroll_length', 20, 'paper'),
  Row(_VTRACE, 'agent.overlap', 0, 'code'),
  Row(_VTRACE, 'agent.batch_size', 32, 'paper'),
  Row(_VTRACE, 'agent.discount', 0.99, 'paper'),
  Row(_VTRACE, 'agent.value_cost', 0.5, 'paper', 'of half the squared error, as there'),
  Row(_VTRACE, 'agent.entropy_cost', 0.01, 'paper'),
  Row(_VTRACE, 'agent.max_abs_reward', 1.0, 'paper', 'rewards clipped to [-1, 1] in the loss'),
  Row(_VTRACE, 'agent.lambda_', 1.0, 'code'),
  Row(_VTRACE, 'agent.rho_clip', 1.0, 'code'),
  Row(_VTRACE, 'agent.c_clip', 1.0, 'code'),
  Row(_VTRACE, 'agent.policy_rho_clip', 1.0, 'code'),
  Row(_VTRACE, 'agent.target_entropy', None, 'code', 'fixed weight'),
  Row(_VTRACE, 'agent.entropy_adjustment_speed', 10.0, 'code', 'not used with a fixed weight'),
  Row(_VTRACE, 'agent.kl_cost', 0.0, 'code', 'off'),
)


def _rows(config):
  return [
    row
    for row in TABLE
    if config == row.configs or (config in row.configs and type(row.configs) is tuple)
  ]


def _flat(record, path):
  """`{'agent.optimizer.name': 'adam', ...}` of nested dataclasses."""
  values = {}
  for field in dataclasses.fields(record):
    value, name = getattr(record, field.name), f'{path}.{field.name}'
    values.update(_flat(value, name) if dataclasses.is_dataclass(value) else {name: value})
  return values


def _resolved(config):
  """Everything that the table must speak of, by the same names."""
  settings = atari.Settings(**config.environment.settings)
  return {
    **_flat(config.agent, 'agent'),
    **_flat(config.network, 'network'),
    **_flat(settings, 'settings'),
    'environment.id': config.environment.id,
    'num_actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'num_training_environments': config_lib.num_training_environments(config),
    'num_evaluation_environments': config.num_evaluation_environments,
    'inference_batch_size': config_lib.inference_batch_size(config),
    'total_steps': config.total_steps,
    'total_frames': config.total_steps * settings.frames_per_step,
  }


def _differences(config, rows):
  """What the table says otherwise than the configuration, or one of the two does not say."""
  resolved, stated = _resolved(config), {row.field: row.value for row in rows}
  # With the type: True is 1, and 1.0 as well.
  return {
    name: (resolved.get(name, 'absent'), stated.get(name, 'absent'))
    for name in resolved.keys() | stated.keys()
    if repr(resolved.get(name, 'absent')) != repr(stated.get(name, 'absent'))
  }


@pytest.mark.parametrize('name', _ALL)
def test_the_configuration_is_the_table_field_by_field(name):
  assert _differences(registry.load(name), _rows(name)) == {}
  fields = [row.field for row in _rows(name)]
  assert len(fields) == len(set(fields)), 'a field is listed twice'


@pytest.mark.parametrize('name', _ALL)
def test_a_field_that_is_missing_wrong_or_unknown_is_found(name):
  config, rows = registry.load(name), _rows(name)
  for row in rows:
    rest = [other for other in rows if other.field != row.field]
    assert set(_differences(config, rest)) == {row.field}
    assert set(_differences(config, [*rest, row._replace(value='other')])) == {row.field}
  assert set(_differences(config, [*rows, Row(name, 'agent.new', 1, 'own')])) == {'agent.new'}


def test_no_environment_setting_escapes_through_environment_config():
  fields = {field.name for field in dataclasses.fields(config_lib.EnvironmentConfig)}
  assert fields == {'id', 'settings'}  # the two that `_resolved` reads


def test_every_provenance_is_one_of_the_four_and_every_note_fits_into_a_line():
  assert {row.provenance for row in TABLE} == set(_PROVENANCES)
  for row in TABLE:
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
  names = ', '.join(f'`{name}`' for name in configs) if configs != _ALL else 'all'
  return f'| {names} | `{row.field}` | {_shown(row.value)} | {row.provenance} | {row.note} |'


def _lines_of_the_page(text):
  return [
    re.sub(r' +', ' ', line) for line in text.splitlines() if re.match(r'\| *(`atari_|all)', line)
  ]


def test_the_page_shows_every_row_and_no_other():
  shown = _lines_of_the_page(_PAGE.read_text())
  expected = [re.sub(r' +', ' ', _line(row)) for row in TABLE]
  assert sorted(shown) == sorted(expected)


def test_the_page_explains_every_provenance():
  text = _PAGE.read_text()
  for provenance in _PROVENANCES:
    assert f'**{provenance}**' in text
