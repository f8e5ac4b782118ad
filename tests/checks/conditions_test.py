"""Fields that have an effect only beside certain values of others."""

import dataclasses
from typing import Annotated, Literal

import pytest

from seed_acme import config_validation
from seed_acme.agents import memory_config
from seed_acme.checks import conditions
from seed_acme.configs import registry


@dataclasses.dataclass(frozen=True)
class _Part:
  size: Annotated[int, conditions.only_without('kind', 'none', 'off')] = 1
  kind: str = 'none'


@dataclasses.dataclass(frozen=True)
class _Base:
  part: Annotated[_Part, conditions.only_with('number', 1, 2)] = _Part()
  number: int = 1
  of_part: Annotated[float, conditions.only_with('part.kind', 'on')] = 0.0
  of_both: Annotated[
    Literal['a'], conditions.only_with('number', 1), conditions.only_with('part.kind', 'on')
  ] = 'a'


@dataclasses.dataclass(frozen=True)
class _Derived(_Base):
  of_part: float = 3.0  # keeps its condition


_NAMES = ('number', 'part', 'part.size', 'part.kind', 'of_part', 'of_both')
_OFF, _ON = 'part.kind is none', 'number is 3'


@pytest.mark.parametrize(
  'fields, expected',
  [
    ({'part': _Part(kind='on')}, {}),
    ({}, {'part.size': _OFF, 'of_part': _OFF, 'of_both': _OFF}),
    (
      {'part': _Part(kind='off')},
      dict.fromkeys(['part.size', 'of_part', 'of_both'], 'part.kind is off'),
    ),
    ({'part': _Part(kind='on'), 'number': 2}, {'of_both': 'number is 2'}),
    (
      {'part': _Part(kind='on'), 'number': 3},
      dict.fromkeys(['part', 'part.size', 'part.kind', 'of_both'], 'number is 3'),
    ),
  ],
)
@pytest.mark.parametrize('kind', [_Base, _Derived])
def test_a_field_without_effect_is_found_with_the_reason(kind, fields, expected):
  assert conditions.has_no_effect(kind(**fields), _NAMES) == expected


def test_names_that_a_record_does_not_have_are_left_out():
  names = ('other', 'part.other', 'number.real', 'part.size.real', '')
  assert conditions.has_no_effect(_Base(part=_Part(kind='on')), names) == {}


_OPTIMIZER = 'agent.optimizer.'


@pytest.mark.parametrize(
  'name, config, reason',
  [
    ('network.core_size', 'catch_vtrace', 'network.core is none'),
    ('network.core_size', 'catch_lstm_vtrace', ''),
    ('network.previous_reward_bound', 'catch_vtrace', 'network.previous_reward_input is False'),
    ('agent.ppo_epsilon', 'catch_vtrace', 'agent.policy_loss is vtrace'),
    ('agent.ppo_epsilon', 'cartpole_ppo', ''),
    ('agent.rho_clip', 'cartpole_ppo', 'agent.advantage is gae'),
    ('agent.lambda_', 'cartpole_ppo', ''),
    ('agent.entropy.speed', 'cartpole_ppo', 'agent.entropy.threshold is None'),
    ('agent.values.decay', 'cartpole_ppo', 'agent.values.statistics is none'),
    (f'{_OPTIMIZER}rmsprop_decay', 'cartpole_ppo', 'agent.optimizer.name is adam'),
    (f'{_OPTIMIZER}adam_beta1', 'cartpole_ppo', ''),
    ('agent.priority_exponent', 'pendulum_sac', 'agent.replay is uniform'),
    ('agent.priority_exponent', 'catch_r2d2', ''),
    ('agent.hindsight.ends_at_goal', 'pendulum_sac', 'agent.hindsight.probability is 0.0'),
    ('agent.hindsight.ends_at_goal', 'bitflip_sac_her', ''),
  ],
)
def test_the_configurations_say_which_of_their_fields_change_nothing(name, config, reason):
  expected = {name: reason} if reason else {}
  assert config_validation.idle_fields(registry.load(config), [name, 'num_actors']) == expected


def test_an_optimizer_without_effect_has_no_fields_with_one():
  config = registry.load('pendulum_sac')
  fixed = dataclasses.replace(config.agent, target_entropy=None)
  name = 'agent.entropy_optimizer.learning_rate'
  found = config_validation.idle_fields(dataclasses.replace(config, agent=fixed), [name])
  assert found == {name: 'agent.target_entropy is None'}


def test_what_the_author_of_a_network_or_agent_reads_is_not_known():
  config = registry.load('catch_vtrace')
  network = dataclasses.replace(config.network, module='mine:factory')
  agent = dataclasses.replace(config.agent, agent='mine:make_agent')
  names = ['network.core_size', 'agent.ppo_epsilon']
  assert list(config_validation.idle_fields(config, names)) == names
  for changes, left in (({'network': network}, names[1:]), ({'agent': agent}, names[:1])):
    changed = dataclasses.replace(config, **changes)
    assert list(config_validation.idle_fields(changed, names)) == left


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Own(memory_config.ReplayAgentConfig):
  agent: str = 'mine:make_agent'
  step: Annotated[float, conditions.only_with('replay', 'prioritized')] = 0.1


def test_the_author_of_a_configuration_is_believed():
  base = registry.load('catch_r2d2')
  shared = {field.name for field in dataclasses.fields(_Own)} - {'agent', 'step'}
  fields = {name: getattr(base.agent, name) for name in shared}
  config = dataclasses.replace(base, agent=_Own(**{**fields, 'replay': 'uniform'}))
  names = ['agent.step', 'agent.priority_exponent', 'agent.replay_ratio']
  assert list(config_validation.idle_fields(config, names)) == names[:2]
