"""Wrong values of the on-policy agent's configuration are refused before anything starts."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.configs import registry

_NAN, _INF = float('nan'), float('inf')
_Penalty = on_policy_config.PenaltyConfig
_EMA = on_policy_config.NormalizationConfig


@pytest.mark.parametrize(
  'field, value, said',
  [
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
    ('observations', _EMA('ema', decay=0.0), r'observations.decay \(0.0\) must be in \(0, 1\]'),
    ('num_bootstrap_steps', 0, r'num_bootstrap_steps \(0\)'),
    ('action_distribution', 'deterministic_tanh', r"action_distribution \('deterministic_tanh'\)"),
    ('advantage_offset', _NAN, r'advantage_offset \(nan\) must be a finite number'),
    ('min_std', 1.0, r'initial_std \(1.0\) must be above agent.min_std \(1.0\)'),
    ('initial_std', 1e-9, r'initial_std \(1e-09\)'),
    ('initial_std', _INF, r'initial_std \(inf\) must be a finite number'),
    ('value_clip', _INF, r'value_clip \(inf\) must be a finite number'),
    ('rho_clip', _NAN, r'rho_clip \(nan\) must be > 0'),
    ('entropy', _Penalty(weight=-0.1), r'agent.entropy.weight \(-0.1\) must be >= 0'),
    ('entropy', _Penalty(weight=_NAN), r'agent.entropy.weight \(nan\)'),
    ('entropy', _Penalty(threshold=_NAN), r'agent.entropy.threshold \(nan\)'),
    ('entropy', _Penalty(threshold=-0.5, speed=0.0), r'agent.entropy.speed \(0.0\) must be > 0'),
    ('kl_to_behaviour', _Penalty(threshold=-0.1), r'kl_to_behaviour.threshold \(-0.1\)'),
    ('kl_from_reference', _Penalty(0.1, threshold=_INF), r'kl_from_reference.threshold \(inf\)'),
  ],
)
def test_a_wrong_value_is_named(field, value, said):
  config = registry.load('cartpole_ppo')
  config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, **{field: value}))
  with pytest.raises(types.UserError, match=said):
    config_validation.validate(config)


def _with(name, fields, **sections):
  config = registry.load(name)
  sections = {
    section: dataclasses.replace(getattr(config, section), **changes)
    for section, changes in sections.items()
  }
  return dataclasses.replace(config, **sections, agent=dataclasses.replace(config.agent, **fields))


@pytest.mark.parametrize(
  'fields',
  [
    *(
      {name: _INF}
      for name in ('rho_clip', 'c_clip', 'policy_rho_clip', 'observation_clip', 'awr_max_weight')
    ),
    {'entropy': _Penalty(1.0, threshold=-0.5)},
    {'entropy': _Penalty(0.1, threshold=0.3)},
    {'kl_to_behaviour': _Penalty(1.0, threshold=0.0)},
    {'min_std': 0.0},
    {'advantage_offset': -1.0},
  ],
)
def test_what_can_work_is_accepted(fields):
  config_validation.validate(_with('cartpole_ppo', fields))


@pytest.mark.parametrize(
  'network, said',
  [
    ({'core': 'lstm'}, "network.core 'lstm', network.frame_stack 1"),
    ({'core': 'gru'}, "network.core 'gru'"),
    ({'frame_stack': 4}, 'network.frame_stack 4'),
  ],
)
def test_single_transitions_need_a_network_without_memory(network, said):
  learner = {'xla': False}
  unrolls = {'minibatch_of': 'unrolls', 'minibatch_size': 0}
  config_validation.validate(_with('cartpole_ppo', unrolls, network=network, learner=learner))
  with pytest.raises(types.UserError, match=rf"agent.minibatch_of \('transitions'\).*{said}"):
    config_validation.validate(_with('cartpole_ppo', {}, network=network, learner=learner))


_ANEW = {'minibatch_of': 'unrolls', 'minibatch_size': 0, 'recompute_advantages': 'minibatch'}


@pytest.mark.parametrize(
  'fields, works',
  [
    ({'recompute_advantages': 'never'}, False),
    ({'recompute_advantages': 'epoch', 'num_epochs': 1}, False),
    ({'recompute_advantages': 'epoch', 'num_epochs': 2}, True),
    ({**_ANEW, 'num_epochs': 1}, False),
    ({**_ANEW, 'num_epochs': 2}, True),
    ({**_ANEW, 'num_epochs': 1, 'minibatch_size': 8}, True),
  ],
)
@pytest.mark.parametrize('name', ['kl_to_behaviour', 'kl_from_behaviour'])
def test_a_divergence_in_rewards_needs_a_policy_that_has_moved(name, fields, works):
  """Before the first gradient step policy and behaviour are equal, so it would always be 0, unless
  the behaviour is an older policy."""
  fields = {'penalties_in_rewards': 'subtracted', name: _Penalty(0.1), **fields}
  if works:
    config_validation.validate(_with('cartpole_ppo', fields))
  else:
    with pytest.raises(types.UserError, match=f'penalties_in_rewards.*agent.{name}'):
      config_validation.validate(_with('cartpole_ppo', fields))
    lagging = {'strictly_on_policy': False}
    config_validation.validate(_with('cartpole_ppo', fields, inference=lagging))


def test_an_entropy_in_rewards_needs_none():
  config_validation.validate(
    _with('cartpole_ppo', {'penalties_in_rewards': 'subtracted', 'entropy': _Penalty(0.1)})
  )


@pytest.mark.parametrize('keep', ['top_half', 'positive'])
def test_vmpo_halves_once(keep):
  with pytest.raises(types.UserError, match=rf"keep_advantages \('{keep}'\) must be 'all'"):
    config_validation.validate(_with('cartpole_vmpo', {'keep_advantages': keep}))


def test_a_target_is_refused_whose_weight_cannot_grow():
  for name in on_policy_config.PENALTIES:
    with pytest.raises(types.UserError, match=rf'agent.{name}.weight \(0.0\) must be > 0 with'):
      config_validation.validate(_with('cartpole_ppo', {name: _Penalty(threshold=0.1)}))


@pytest.mark.parametrize(
  'network', [{'core': 'lstm'}, {'core': 'none', 'torso': 'impala_resnet_instruction'}]
)
def test_xla_with_an_lstm_is_refused(network):
  config = registry.load('toy_memory_ppo')
  config = dataclasses.replace(config, network=dataclasses.replace(config.network, **network))
  config_validation.validate(config)
  config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, xla=True))
  with pytest.raises(types.UserError, match=r'learner.xla \(True\) cannot compile'):
    config_validation.validate(config)


def test_a_minibatch_has_a_part_for_each_learner_host():
  config = _with('catch_vtrace', {'minibatch_size': 2})
  config = dataclasses.replace(config, num_actors=4, num_learner_hosts=2)
  config_validation.validate(config)
  config = dataclasses.replace(config, num_learner_hosts=4)
  with pytest.raises(types.UserError, match=r'minibatch_size \(2\) is less than .*hosts \(4\)'):
    config_validation.validate(config)


def test_the_order_of_popart_is_refused_where_it_has_no_effect():
  fields = {'popart_order': 'targets_first', 'recompute_advantages': 'epoch'}
  config_validation.validate(_with('catch_vtrace', fields))
  with pytest.raises(types.UserError, match=r"popart_order \('targets_first'\) has no effect"):
    config_validation.validate(
      _with('catch_vtrace', fields | {'recompute_advantages': 'minibatch'})
    )


@pytest.mark.parametrize(
  'preset', [presets.vpg, presets.ppo, presets.vtrace, presets.awr, presets.vmpo]
)
def test_every_preset_is_accepted(preset):
  config = registry.load('gym_vtrace')
  replay = dataclasses.replace(config.replay, queue_size=preset().batch_size)
  config_validation.validate(dataclasses.replace(config, agent=preset(), replay=replay))


@pytest.mark.parametrize(
  ('size', 'batch_size', 'wanted'), [(8, 4, 4), (8, 16, 8), (6, 4, 2), (0, 4, 4)]
)
def test_minibatches_divide_another_batch_size_too(size, batch_size, wanted):
  agent = dataclasses.replace(
    registry.load('atari_vtrace_small').agent, batch_size=24, minibatch_size=size
  )
  other = agent.with_batch_size(batch_size)
  assert other.batch_size == batch_size
  assert on_policy_config.minibatch_size(other) == wanted


@pytest.mark.parametrize(
  'action, threshold, distribution, said',
  [
    (specs.DiscreteArray(3), -1.1, 'tanh_normal', r'entropy of 1.1 nats.*is 1.099'),
    (specs.DiscreteArray(3), 0.5, 'tanh_normal', 'never below 0'),
    (specs.DiscreteArray(3), -1.0, 'tanh_normal', ''),
    (specs.DiscreteArray(3), -1.1, 'clipped_normal', 'is 1.099'),
    (specs.BoundedArray((2,), np.float32, -1, 1), -1.5, 'tanh_normal', 'is 1.386'),
    (specs.BoundedArray((2,), np.float32, -1, 1), 3.0, 'tanh_normal', ''),
    (specs.BoundedArray((2,), np.float32, -1, 1), -1.5, 'clipped_normal', ''),
  ],
)
def test_a_threshold_that_no_policy_can_hold_is_refused(action, threshold, distribution, said):
  """Its learnt weight would grow until it drowned the rewards."""
  agent = presets.vtrace(
    entropy=_Penalty(weight=0.01, threshold=threshold), action_distribution=distribution
  )
  spec = types.EnvironmentSpec(observation=specs.Array((3,), np.float32), action=action)
  if not said:
    agent.check_environment(spec)
    return
  with pytest.raises(types.UserError, match=rf'threshold \({threshold}\).*{said}'):
    agent.check_environment(spec)
