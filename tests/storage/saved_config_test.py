"""Configurations to JSON and back; fields that a resumed run may change."""

import dataclasses
import json
import math

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.agents.sac import config as sac_config
from seed_acme.storage import saved_config


def _experiment(**changes):
  return config_lib.ExperimentConfig(
    name='catch',
    environment=config_lib.EnvironmentConfig(
      'catch', {'rows': 10, 'columns': 5, 'slow': True, 'gravity': 0.5, 'skin': 'red'}
    ),
    agent=presets.vtrace(kl_cost=0.3),
    **changes,
  )


def _with(experiment, path, value):
  """Returns a copy with the field at a dotted path replaced."""
  head, _, rest = path.partition('.')
  inner = _with(getattr(experiment, head), rest, value) if rest else value
  return dataclasses.replace(experiment, **{head: inner})


@dataclasses.dataclass(frozen=True)
class Odd:
  """A record with every type that a configuration may hold."""

  nested: tuple[tuple[int, str], ...] = ((1, 'a'), (2, 'b'))
  empty: tuple[int, ...] = ()
  bound: float = math.inf
  optional: float | None = None
  mapping: dict[str, float] = dataclasses.field(default_factory=lambda: {'x': -math.inf})


@dataclasses.dataclass(frozen=True)
class Änderung:
  """A record whose name is not written in ASCII."""

  größe: int = 1


@dataclasses.dataclass
class Thawed:
  """A record that is not frozen."""

  x: int = 1


@dataclasses.dataclass(frozen=True)
class WithType:
  """A record with a field name that the file format uses itself."""

  type: str = 'x'


def test_round_trip_through_a_file(tmp_path):
  experiment = _experiment(network=config_lib.NetworkConfig(mlp_sizes=(3, 4, 5)))
  saved_config.save(experiment, tmp_path / 'config.json')
  loaded = saved_config.load(tmp_path / 'config.json')
  assert loaded == experiment
  assert type(loaded.agent) is on_policy_config.OnPolicyConfig
  assert type(loaded.network.mlp_sizes) is tuple
  raw = json.loads((tmp_path / 'config.json').read_text())
  assert raw['agent']['type'] == 'seed_acme.agents.on_policy.config:OnPolicyConfig'
  assert raw['type'] == 'seed_acme.config:ExperimentConfig'


def test_round_trip_of_tuples_none_and_infinities():
  for value in (Odd(), Odd(optional=1.5, empty=(7,), bound=-math.inf)):
    text = json.dumps(saved_config.to_json(value), allow_nan=False)
    assert saved_config.from_json(json.loads(text)) == value
  decoded = saved_config.from_json(saved_config.to_json(Odd(bound=math.nan)))
  assert math.isnan(decoded.bound)


@pytest.mark.parametrize(
  'value, message',
  [
    (Odd(empty=[1]), r'\[1\] of type list'),
    (Thawed(), 'type Thawed'),
    (WithType(), "field called 'type'"),
    ({'type': 1}, "cannot be called 'type'"),
    (object, 'cannot be saved'),
  ],
)
def test_what_cannot_be_restored_is_not_saved(value, message):
  with pytest.raises(types.UserError, match=message):
    saved_config.to_json(value)


def test_a_class_may_have_any_name_of_python():
  assert saved_config.from_json(saved_config.to_json(Änderung(2))) == Änderung(2)


def test_a_class_inside_a_function_is_not_saved():
  @dataclasses.dataclass(frozen=True)
  class Local:
    """A class that cannot be imported."""

  with pytest.raises(types.UserError, match='top level of a module'):
    saved_config.to_json(Local())


def _raw(path='', **changes):
  raw = json.loads(json.dumps(saved_config.to_json(_experiment())))
  part = raw
  for name in filter(None, path.split('.')):
    part = part[name]
  for name, value in changes.items():
    if value is ...:
      del part[name]
    else:
      part[name] = value
  return raw


@pytest.mark.parametrize(
  'raw, message',
  [
    (_raw(speed=3), 'has unknown speed'),
    (_raw(seed=...), 'lacks seed'),
    (
      _raw('agent.optimizer', epsilon=..., name=...),
      'lacks agent.optimizer.epsilon, agent.optimizer.name',
    ),
    (_raw('agent', gamma=1), 'has unknown agent.gamma'),
    (_raw(seed='one'), "seed = 'one'"),
    (_raw(seed=True), "seed = 'True'"),
    (_raw('agent.optimizer', name='sgd'), "agent.optimizer.name = 'sgd'"),
    (_raw('network', mlp_sizes=[1, 'x']), 'network.mlp_sizes'),
    (_raw('network', mlp_sizes=64), 'network.mlp_sizes'),
    (_raw(agent=saved_config.to_json(config_lib.ReplayConfig())), 'which is no AgentConfig'),
    (_raw('agent', type='no_such_package.config:C'), 'cannot be imported'),
    (_raw('agent', type='os:system'), 'no frozen dataclass'),
    (_raw('agent', type='seed_acme.config:Absent'), 'no frozen dataclass'),
    (_raw('agent', type=f'{__name__}:Thawed'), 'no frozen dataclass'),
    (_raw('agent', type='os.path'), 'no type name'),
    (_raw('agent', type=7), 'no type name'),
    ([1], 'no ExperimentConfig'),
    (saved_config.to_json(Odd()), 'holds a Odd'),
  ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, raw, message):
  path = tmp_path / 'config.json'
  path.write_text(json.dumps(raw))
  with pytest.raises(types.UserError, match=message) as caught:
    saved_config.load(path)
  assert 'config.json' in str(caught.value)
  assert len(str(caught.value).splitlines()) <= 4


def test_a_network_saved_before_torsos_had_a_choice_of_weights_is_the_default(tmp_path):
  path = tmp_path / 'config.json'
  path.write_text(json.dumps(_raw('network', torso_initializer=..., precision=..., byte_scale=...)))
  loaded = saved_config.load(path)
  assert loaded.network.torso_initializer == 'default'
  assert loaded.network.byte_scale == '255'  # differs from the default of new runs
  network = dataclasses.replace(loaded.network, torso_initializer='orthogonal')
  with pytest.raises(types.UserError, match='torso_initializer: default -> orthogonal'):
    saved_config.compare_for_resume(loaded, dataclasses.replace(loaded, network=network))


@pytest.mark.parametrize('name', sorted(saved_config.MAY_CHANGE_ON_RESUME))
def test_every_field_that_may_change_exists_and_is_let_through(name):
  experiment = _experiment()
  value = experiment
  for part in name.split('.'):
    value = getattr(value, part)
  other = {bool: not value, str: 'courier', int: 77, float: 77.0}[type(value)]
  assert other != value
  saved_config.compare_for_resume(experiment, _with(experiment, name, other))


@pytest.mark.parametrize(
  'path, value',
  [
    ('seed', 5),
    ('environments_per_actor', 8),
    ('initial_checkpoint', 'runs/x'),
    ('agent.discount', 0.5),
    ('agent.optimizer.learning_rate', 1.0),
    ('network.mlp_sizes', (1,)),
    ('environment.settings', {'rows': 11}),
    ('replay.queue_size', 999),
    ('inference.publish_period', 9),
  ],
)
def test_what_decides_learning_may_not_change(path, value):
  experiment = _experiment()
  with pytest.raises(types.UserError, match=path) as caught:
    saved_config.compare_for_resume(experiment, _with(experiment, path, value))
  assert len(str(caught.value).splitlines()) <= 4


def test_the_refusal_names_every_field_with_both_values():
  saved = _experiment()
  new = _with(_with(_with(saved, 'seed', 42), 'agent.discount', 0.5), 'agent.lambda_', 0.9)
  with pytest.raises(types.UserError) as caught:
    saved_config.compare_for_resume(saved, _with(new, 'total_steps', 3))
  message = str(caught.value)
  assert len(message.splitlines()) <= 4
  for part in ('seed: 1 -> 42', 'agent.discount: 0.99 -> 0.5', 'agent.lambda_: 1.0 -> 0.9'):
    assert part in message
  assert 'total_steps' not in message


def test_settings_that_come_or_go_are_named():
  saved = _experiment()
  new = _with(saved, 'environment.settings', {**saved.environment.settings, 'wind': 2})
  with pytest.raises(types.UserError, match='environment.settings.wind: absent -> 2'):
    saved_config.compare_for_resume(saved, new)
  with pytest.raises(types.UserError, match='environment.settings.wind: 2 -> absent'):
    saved_config.compare_for_resume(new, saved)


def test_a_setting_without_a_number_is_the_same_when_the_run_is_resumed(tmp_path):
  experiment = _experiment()
  settings = {**experiment.environment.settings, 'wind': math.nan}
  experiment = _with(experiment, 'environment.settings', settings)
  saved_config.save(experiment, tmp_path / 'config.json')
  saved = saved_config.load(tmp_path / 'config.json')
  saved_config.compare_for_resume(saved, experiment)
  calm = _with(experiment, 'environment.settings', {**settings, 'wind': 0.0})
  with pytest.raises(types.UserError, match='environment.settings.wind: nan -> 0.0'):
    saved_config.compare_for_resume(saved, calm)


def test_another_agent_is_reported_once_and_not_by_its_fields():
  saved = _experiment()
  plain = config_lib.AgentConfig(agent='other', unroll_length=1, overlap=0, batch_size=1)
  with pytest.raises(types.UserError) as caught:
    saved_config.compare_for_resume(saved, _with(saved, 'agent', plain))
  assert 'OnPolicyConfig -> seed_acme.config:AgentConfig' in str(caught.value)
  assert 'discount' not in str(caught.value)


def test_total_steps_matter_to_learning_rates_that_fall_and_to_agents_of_ones_own():
  constant = _experiment()
  linear = _with(constant, 'agent.optimizer.schedule', 'linear')
  own = _with(
    constant,
    'agent',
    config_lib.AgentConfig(agent='mine:make_agent', unroll_length=1, overlap=0, batch_size=1),
  )
  sac = _with(constant, 'agent', sac_config.SACConfig())
  for experiment, uses in (
    (constant, []),
    (linear, ['agent.optimizer.schedule=linear']),
    (_with(linear, 'agent.optimizer.final_share', 0.1), ['agent.optimizer.schedule=linear']),
    (_with(linear, 'agent.optimizer.final_share', 1.0), []),
    (
      _with(sac, 'agent.critic_optimizer.schedule', 'linear'),
      ['agent.critic_optimizer.schedule=linear'],
    ),
    (own, ['agent.agent=mine:make_agent, whose losses get the progress of the run']),
  ):
    assert saved_config.uses_of_total_steps(saved_config.flatten(experiment)) == uses
