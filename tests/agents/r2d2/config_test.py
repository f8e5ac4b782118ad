"""Values of R2D2 that cannot work are refused before anything starts."""

import dataclasses

import pytest

from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.configs import registry


def _validate(**changes):
  config = registry.load('catch_r2d2')
  config_validation.validate(
    dataclasses.replace(config, agent=dataclasses.replace(config.agent, **changes))
  )


@pytest.mark.parametrize(
  'name, values',
  [
    ('num_bootstrap_steps', (0, -1)),
    ('target_period', (0, -1)),
    ('rescaling_epsilon', (-1.0, float('nan'), float('inf'))),
    ('epsilon_exponent', (-1.0,)),
    ('max_abs_reward', (-1.0, float('nan'), float('inf'))),
    ('discount', (1.5, -0.1, float('nan'))),
    ('max_priority_share', (2.0, -0.1)),
    ('epsilon_base', (3.0, -0.1)),
    ('evaluation_epsilon', (-1.0, 1.1)),
  ],
)
def test_values_that_cannot_work_are_named(name, values):
  for value in values:
    with pytest.raises(types.UserError, match=f'agent.{name}') as error:
      _validate(**{name: value})
    assert str(value) in str(error.value)


@pytest.mark.parametrize(
  'field, value',
  [('policy_head_gain', 0.01), ('value_head_gain', 3.0), ('separate_value_network', True)],
)
def test_fields_of_the_network_that_are_for_other_agents_are_refused(field, value):
  config = registry.load('catch_r2d2')
  config = dataclasses.replace(
    config, network=dataclasses.replace(config.network, **{field: value})
  )
  with pytest.raises(types.UserError, match=rf'network.{field} \({value}\) has no effect on agent'):
    config_validation.validate(config)


def test_values_at_the_ends_are_allowed():
  config_validation.validate(
    dataclasses.replace(registry.load('catch_r2d2'), agent=r2d2_config.R2D2Config())
  )
  _validate(
    num_bootstrap_steps=1,
    target_period=1,
    rescaling_epsilon=0.0,
    epsilon_exponent=0.0,
    max_abs_reward=1.0,
    discount=0.0,
    max_priority_share=0.0,
    epsilon_base=0.0,
    evaluation_epsilon=0.0,
  )
  _validate(discount=1.0, max_priority_share=1.0, epsilon_base=1.0, evaluation_epsilon=1.0)
