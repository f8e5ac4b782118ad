"""The five presets: their differences, that fields can be changed, and that they build."""

import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import registry
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.agents.on_policy import resolve

_DEFAULTS = on_policy_config.OnPolicyConfig()
_SEVERAL_PASSES = {
  'num_epochs': 10,
  'minibatch_of': 'transitions',
  'minibatch_size': 64,
  'normalize_advantages': True,
}
_DIFFERENCES = {
  'vpg': {'policy_loss': 'vpg', 'normalize_advantages': True},
  'ppo': _SEVERAL_PASSES,  # the default losses are PPO's
  'vtrace': {
    'policy_loss': 'vtrace',
    'advantage': 'vtrace',
    'advantage_form': 'paper',
    'lambda_': 1.0,
    'recompute_advantages': 'minibatch',
    'unroll_length': 20,
    'batch_size': 32,
    'optimizer': config_lib.OptimizerConfig(),
    'value_cost': 0.5,
    'entropy': on_policy_config.PenaltyConfig(weight=0.00025, speed=10.0),
  },
  'awr': {'policy_loss': 'awr', **_SEVERAL_PASSES},
  'vmpo': {
    'policy_loss': 'vmpo',
    'num_epochs': 4,
    'kl_from_behaviour': on_policy_config.PenaltyConfig(weight=1.0, threshold=0.01),
  },
}


@pytest.mark.parametrize('name', sorted(_DIFFERENCES))
def test_each_differs_from_the_defaults_as_it_says(name):
  config = getattr(presets, name)()
  fields = [field.name for field in dataclasses.fields(config)]
  different = {
    field: getattr(config, field)
    for field in fields
    if getattr(config, field) != getattr(_DEFAULTS, field)
  }
  assert different == _DIFFERENCES[name]


def test_no_two_are_the_same():
  configs = [getattr(presets, name)() for name in _DIFFERENCES]
  assert all(a != b for i, a in enumerate(configs) for b in configs[:i])


def test_ppo_is_that_of_the_paper():
  """The values are from Schulman et al. 2017, eq. 7 and table 3."""
  config = presets.ppo()
  assert (config.policy_loss, config.ppo_epsilon, config.ppo_lower_bound) == ('ppo', 0.2, 'linear')
  assert (config.advantage, config.lambda_, config.discount) == ('gae', 0.95, 0.99)
  assert (config.num_epochs, config.minibatch_size) == (10, 64)


@pytest.mark.parametrize('name', sorted(_DIFFERENCES))
def test_fields_can_be_changed_the_presets_own_too(name):
  config = getattr(presets, name)(policy_loss='behaviour_cloning', num_epochs=2, reward_scale=3.0)
  expected = dataclasses.replace(
    getattr(presets, name)(), policy_loss='behaviour_cloning', num_epochs=2, reward_scale=3.0
  )
  assert config == expected
  with pytest.raises(TypeError, match='no_such_field'):
    getattr(presets, name)(no_such_field=1)


@pytest.mark.parametrize('name', sorted(_DIFFERENCES))
def test_each_builds_with_its_own_numbers(name, make_network):
  config = getattr(presets, name)()
  assert registry.get(config.agent) is agent.make_agent
  weights = make_network(config).weights
  passes = resolve.algorithm(config).passes
  expected = {'ppo': 10 * 16 * 128 // 64, 'awr': 10 * 32, 'vmpo': 4}
  assert (passes and passes.num_epochs * passes.num_minibatches) == expected.get(name)
  assert (weights.temperature() is None) == (name != 'vmpo')
  penalties = {'vtrace': ['entropy'], 'vmpo': ['kl_from_behaviour']}
  assert list(weights.penalty_weights()) == penalties.get(name, [])


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(_DIFFERENCES))
@pytest.mark.parametrize('core', ['none', 'lstm'])
def test_which_ones_take_a_core(name, core, make_network):
  config = getattr(presets, name)()
  if core == 'lstm' and name in ('ppo', 'awr'):
    with pytest.raises(types.UserError, match='minibatch_of'):
      make_network(config, core=core)
    config = dataclasses.replace(config, minibatch_of='unrolls', minibatch_size=32)
  make_network(config, core=core)
  passes = resolve.algorithm(config).passes
  assert passes is None or passes.num_elements % passes.num_minibatches == 0
