"""What is declared of fields without effect is true of learning."""

import dataclasses

import numpy as np
import pytest
import tree

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.checks import conditions

pytestmark = pytest.mark.usefixtures('eagerly')

_Penalty = on_policy_config.PenaltyConfig
_Statistics = on_policy_config.NormalizationConfig
_RMSPROP = config_lib.OptimizerConfig(name='rmsprop')
_POPART = {'values': _Statistics('average')}
# A field with another value than its default -> what it needs to have an effect.
_CHANGES = [
  ('lambda_', 0.3, {}),
  ('advantage_form', 'paper', {'advantage': 'vtrace'}),
  ('num_bootstrap_steps', 1, {'advantage': 'nstep'}),
  ('rho_clip', 0.2, {'advantage': 'vtrace'}),
  ('c_clip', 0.2, {'advantage': 'vtrace'}),
  ('keep_form', 'original', {'keep_advantages': 'positive'}),
  ('ppo_epsilon', 0.01, {'policy_loss': 'ppo'}),
  ('ppo_lower_bound', 'reciprocal', {'policy_loss': 'ppo', 'ppo_epsilon': 0.5}),
  ('policy_rho_clip', 0.2, {'policy_loss': 'vtrace'}),
  ('awr_beta', 5.0, {'policy_loss': 'awr'}),
  ('awr_max_weight', 1.1, {'policy_loss': 'awr'}),
  ('vmpo_epsilon', 0.5, {'policy_loss': 'vmpo'}),
  ('vmpo_initial_temperature', 5.0, {'policy_loss': 'vmpo'}),
  ('vmpo_speed', 1.0, {'policy_loss': 'vmpo'}),
  ('vmpo_form', 'original', {'policy_loss': 'vmpo'}),
  ('huber_delta', 0.1, {'value_loss': 'huber'}),
  ('observation_clip', 0.5, {'observations': _Statistics('average')}),
  ('value_compensation', False, _POPART),
  ('popart_order', 'targets_first', _POPART),
  ('values.decay', 0.5, {'values': _Statistics('ema')}),
  ('entropy.speed', 9.0, {'entropy': _Penalty(weight=0.1, threshold=-0.5)}),
  ('optimizer.adam_beta1', 0.5, {}),
  ('optimizer.adam_beta2', 0.5, {}),
  ('optimizer.rmsprop_decay', 0.5, {'optimizer': _RMSPROP}),
  ('optimizer.rmsprop_momentum', 0.5, {'optimizer': _RMSPROP}),
  ('optimizer.final_share', 0.5, {'optimizer': config_lib.OptimizerConfig(schedule='linear')}),
]
# What has none of these effects but those of Adam; `lambda_` has one with the default alone.
_WITHOUT = {'policy_loss': 'vpg', 'advantage': 'gae', 'entropy': _Penalty(weight=0.1)}
_WITHOUT_OF = {
  'lambda_': {'advantage': 'nstep'},
  'optimizer.adam_beta1': {'optimizer': _RMSPROP},
  'optimizer.adam_beta2': {'optimizer': _RMSPROP},
}


def _changed(config, field, value):
  record, _, name = field.rpartition('.')
  if not record:
    return dataclasses.replace(config, **{name: value})
  inner = dataclasses.replace(getattr(config, record), **{name: value})
  return dataclasses.replace(config, **{record: inner})


@pytest.fixture
def learnt(make_network, make_sample, make_learner):
  """`learnt(config)`: all variables after two updates; the samples are of noisy weights."""

  def learn(config):
    network = make_network(config)
    learner = make_learner(network, config)
    for seed in range(2):
      learner.step(make_sample(network, config, seed=seed, lag=0.5), agent_steps=500 * seed)
    return learner.save()

  return learn


def _are_equal(a, b):
  return all(map(np.array_equal, tree.flatten(a), tree.flatten(b)))


@pytest.mark.slow
@pytest.mark.parametrize(('field', 'value', 'needed'), _CHANGES)
def test_a_field_changes_what_is_learnt_exactly_where_it_is_said_to(
  field, value, needed, make_config, learnt
):
  idle = make_config(**{**_WITHOUT, **_WITHOUT_OF.get(field, {})})
  assert conditions.has_no_effect(idle, [field])
  assert _are_equal(learnt(idle), learnt(_changed(idle, field, value)))
  active = make_config(**{**_WITHOUT, **needed})
  assert not conditions.has_no_effect(active, [field])
  assert not _are_equal(learnt(active), learnt(_changed(active, field, value)))


def test_every_condition_is_tried():
  fields = [
    *_names(on_policy_config.OnPolicyConfig()),
    *_names(config_lib.OptimizerConfig(), 'optimizer.'),
    *_names(_Statistics(), 'values.'),
    *_names(_Penalty(), 'entropy.'),
  ]
  assert {field for field, _, _ in _CHANGES} == set(fields)


def _names(record, prefix=''):
  """Returns the fields of a record that have no effect for some values of the others."""
  return [f'{prefix}{name}' for name in conditions.conditions(type(record))]
