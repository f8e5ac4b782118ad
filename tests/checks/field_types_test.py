"""Values whose type does not match their field are named, at any depth."""

import dataclasses

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.on_policy import presets
from seed_acme.configs import registry


def _config(**fields):
  return dataclasses.replace(registry.load('catch_vtrace'), **fields)


@pytest.mark.parametrize(
  'fields, said',
  [
    ({'num_actors': '2'}, "num_actors ('2') is of type str; expected int: write 2"),
    ({'num_actors': True}, 'num_actors (True) is of type bool; expected int'),
    ({'total_steps': 1e6}, 'total_steps (1000000.0) is of type float; expected int: write 1000000'),
    ({'seed': np.int64(3)}, 'seed (3) is of type int64; expected int: write 3'),
    ({'agent': 'vtrace'}, "agent ('vtrace') is of type str; expected AgentConfig"),
    (
      {'network': config_lib.NetworkConfig(mlp_sizes=[64, 64])},
      'network.mlp_sizes ([64, 64]) is of type list; expected a tuple of int: write (64, 64)',
    ),
    (
      {'network': config_lib.NetworkConfig(core='LSTM')},
      "network.core ('LSTM') must be one of 'none', 'lstm', 'gru'",
    ),
    (
      {'environment': config_lib.EnvironmentConfig('catch', {'rows': None})},
      (
        "environment.settings['rows'] (None) is of type NoneType; expected bool or int or float or "
        'str'
      ),
    ),
    (
      {'environment': config_lib.EnvironmentConfig('catch', {3: 4})},
      'environment.settings has the key 3 of type int; expected str',
    ),
    (
      {'agent': presets.vtrace(optimizer=config_lib.OptimizerConfig(learning_rate='1e-3'))},
      "agent.optimizer.learning_rate ('1e-3') is of type str; expected float: write 0.001",
    ),
  ],
)
def test_a_value_of_another_type_is_named_with_what_is_expected(fields, said):
  with pytest.raises(types.UserError) as caught:
    config_validation.validate(_config(**fields))
  assert str(caught.value) == said


def test_a_whole_number_serves_where_a_float_is_declared():
  config_validation.validate(_config(max_wall_s=60))


def test_what_is_no_configuration_is_refused():
  with pytest.raises(types.UserError, match=r"config \('catch_vtrace'\) is of type str.*registry"):
    config_validation.validate('catch_vtrace')
