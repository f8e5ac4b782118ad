"""Wrong values of the on-policy agent's configuration are refused before anything starts."""
import dataclasses

import pytest

from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.configs import registry

_EMA = on_policy_config.NormalizationConfig


@pytest.mark.parametrize('field, value, said', [
    ('num_epochs', 0, r'num_epochs \(0\)'),
    ('minibatch_size', 63, r'minibatch_size \(63\) does not divide the 1024'),
    ('minibatch_size', -64, r'minibatch_size \(-64\)'),
    ('recompute_advantages', 'minibatch', 'needs whole unrolls'),
    ('ppo_epsilon', 0.0, r'ppo_epsilon \(0.0\) must be > 0'),
    ('awr_max_weight', -1.0, r'awr_max_weight \(-1.0\)'),
    ('observation_clip', float('nan'), r'observation_clip \(nan\)'),
    ('value_clip', -0.1, r'value_clip \(-0.1\) must be >= 0'),
    ('lambda_', 1.5, r'lambda_ \(1.5\) must be in \[0, 1\]'),
    ('values', _EMA('ema', decay=2.0), r'values.decay \(2.0\)'),
    ('num_bootstrap_steps', 0, r'num_bootstrap_steps \(0\)'),
])
def test_a_wrong_value_is_named(field, value, said):
  config = registry.load('cartpole_ppo')
  config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, **{field: value}))
  with pytest.raises(types.UserError, match=said):
    config_validation.validate(config)


def test_xla_with_an_lstm_is_refused():
  config = registry.load('toy_memory_ppo')
  config_validation.validate(config)
  config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, xla=True))
  with pytest.raises(types.UserError, match=r'learner.xla \(True\) cannot compile'):
    config_validation.validate(config)


@pytest.mark.parametrize('preset', [
    presets.vpg, presets.ppo, presets.vtrace, presets.awr, presets.vmpo])
def test_every_preset_is_accepted(preset):
  preset().check()
