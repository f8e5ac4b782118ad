"""The configurations at the scale of the papers, value by value, with where each comes from.

code: the original SEED RL. paper: quoted from the paper by others. unverified: from memory of
the paper's appendix, which was not at hand. own: ours, with the reason.
"""
import dataclasses

import pytest

from seed_acme.configs import registry
from seed_acme.envs import atari

_R2D2 = [
    ('agent.agent', 'r2d2', 'own', 'name'),
    ('agent.unroll_length', 80, 'unverified', '120 with the burn-in; so the launch script'),
    ('agent.overlap', 40, 'code', 'burn_in'),
    ('agent.batch_size', 64, 'code', ''),
    ('agent.optimizer.name', 'adam', 'code', 'epsilon after the bias correction, there before'),
    ('agent.optimizer.learning_rate', 1e-4, 'unverified', 'code 4.8e-4, its launch script 1e-4'),
    ('agent.optimizer.schedule', 'constant', 'code', ''),
    ('agent.optimizer.adam_beta1', 0.9, 'code', ''),
    ('agent.optimizer.adam_beta2', 0.999, 'code', ''),
    ('agent.optimizer.rmsprop_decay', 0.99, 'own', 'unused'),
    ('agent.optimizer.rmsprop_momentum', 0.0, 'own', 'unused'),
    ('agent.optimizer.epsilon', 1e-3, 'code', ''),
    ('agent.optimizer.max_gradient_norm', 80.0, 'unverified', 'code 40, its launch script 80'),
    ('agent.replay', 'prioritized', 'code', ''),
    ('agent.replay_capacity', 100_000, 'unverified', 'code 100, its launch script 100,000'),
    ('agent.replay_min_size', 5_000, 'unverified', 'code 10, its launch script 5,000'),
    ('agent.replay_ratio', 0.75, 'unverified', 'code 1.5, its launch script 0.75'),
    ('agent.priority_exponent', 0.9, 'code', ''),
    ('agent.importance_exponent', 0.6, 'code', ''),
    ('agent.discount', 0.997, 'code', ''),
    ('agent.num_bootstrap_steps', 5, 'code', ''),
    ('agent.target_period', 2_500, 'code', 'updates'),
    ('agent.rescaling_epsilon', 1e-3, 'code', ''),
    ('agent.max_priority_share', 0.9, 'code', 'eta'),
    ('agent.epsilon_base', 0.4, 'code', ''),
    ('agent.epsilon_exponent', 7.0, 'code', ''),
    ('agent.evaluation_epsilon', 1e-3, 'code', ''),
    ('agent.max_abs_reward', 0.0, 'paper', 'rewards are not clipped'),
    ('network.torso', 'nature_cnn', 'code', ''),
    ('network.mlp_sizes', (64, 64), 'own', 'unused'),
    ('network.torso_output_size', 512, 'code', ''),
    ('network.core', 'lstm', 'code', ''),
    ('network.core_size', 512, 'code', ''),
    ('network.previous_action_input', True, 'code', ''),
    ('network.previous_reward_input', True, 'code', ''),
    ('network.previous_reward_bound', 0.0, 'code', 'the reward as it is'),
    ('network.head_sizes', (512,), 'code', ''),
    ('network.frame_stack', 4, 'code', ''),
    ('network.module', '', 'own', 'unused'),
    ('num_actors', 61, 'own', 'any split of the 610'),
    ('environments_per_actor', 10, 'own', 'any split of the 610'),
    ('num_evaluation_environments', 30, 'code', 'launch script'),
    ('inference.batch_size', 64, 'unverified', 'launch script 32'),
    ('total_steps', 10_000_000_000, 'code', "40e9 frames: the released curves' length"),
]


def _impala(torso):
  return [
      ('agent.agent', 'vtrace', 'own', 'name'),
      ('agent.unroll_length', 20, 'unverified', ''),
      ('agent.overlap', 0, 'own', 'no recurrent core'),
      ('agent.batch_size', 32, 'unverified', ''),
      ('agent.optimizer.name', 'rmsprop', 'unverified', ''),
      ('agent.optimizer.learning_rate', 6e-4, 'unverified', ''),
      ('agent.optimizer.schedule', 'linear', 'unverified', 'to 0 at the end'),
      ('agent.optimizer.adam_beta1', 0.9, 'own', 'unused'),
      ('agent.optimizer.adam_beta2', 0.999, 'own', 'unused'),
      ('agent.optimizer.rmsprop_decay', 0.99, 'unverified', ''),
      ('agent.optimizer.rmsprop_momentum', 0.0, 'unverified', ''),
      ('agent.optimizer.epsilon', 0.01 / 640**2, 'unverified', '0.01 with a sum over 640 steps'),
      ('agent.optimizer.max_gradient_norm', 40 / 640, 'unverified', '40 with a sum over 640 steps'),
      ('agent.discount', 0.99, 'unverified', ''),
      ('agent.lambda_', 1.0, 'paper', ''),
      ('agent.rho_clip', 1.0, 'paper', ''),
      ('agent.c_clip', 1.0, 'paper', ''),
      ('agent.policy_rho_clip', 1.0, 'paper', ''),
      ('agent.value_cost', 0.5, 'unverified', ''),
      ('agent.entropy_cost', 0.01, 'unverified', ''),
      ('agent.target_entropy', None, 'paper', 'a fixed entropy cost'),
      ('agent.entropy_adjustment_speed', 10.0, 'own', 'unused'),
      ('agent.kl_cost', 0.0, 'paper', 'none'),
      ('agent.max_abs_reward', 1.0, 'unverified', ''),
      ('network.torso', torso, 'paper', ''),
      ('network.mlp_sizes', (64, 64), 'own', 'unused'),
      ('network.torso_output_size', 256, 'paper', ''),
      ('network.core', 'none', 'unverified', 'feed-forward on stacked frames'),
      ('network.core_size', 256, 'own', 'unused'),
      ('network.previous_action_input', False, 'unverified', ''),
      ('network.previous_reward_input', False, 'unverified', ''),
      ('network.previous_reward_bound', 1.0, 'own', 'unused'),
      ('network.head_sizes', (), 'paper', ''),
      ('network.frame_stack', 4, 'unverified', ''),
      ('network.module', '', 'own', 'unused'),
      ('num_actors', 4, 'own', ''),
      ('environments_per_actor', 32, 'own', ''),
      ('num_evaluation_environments', 0, 'own', ''),
      ('inference.batch_size', 0, 'own', 'half of the environments'),
      ('total_steps', 50_000_000, 'unverified', '200e6 frames'),
  ]


# What every game is played with; the configurations change none of it.
_ATARI = [
    ('frames_per_step', 4, 'paper', 'the original froze the screen at its default of 1'),
    ('max_num_noops', 30, 'code', '1 ... 30'),
    ('repeat_action_probability', 0.0, 'code', 'no sticky actions'),
    ('full_action_set', True, 'code', '18 actions'),
    ('stack', 1, 'own', 'frames are stacked inside the network'),
    ('max_frames', 108_000, 'code', 'a truncation here, an end there'),
    ('image_size', 84, 'code', 'area instead of bilinear resize'),
    ('vectorized', True, 'own', ''),
    ('num_threads', atari.Settings().num_threads, 'own', 'for speed alone'),
]
_PROVENANCE = {'code', 'paper', 'unverified', 'own'}
_TABLE = {'atari_r2d2': _R2D2, 'atari_vtrace': _impala('impala_shallow'),
          'atari_vtrace_deep': _impala('impala_resnet')}


def _flat(prefix, record):
  values = {}
  for field in dataclasses.fields(record):
    value, name = getattr(record, field.name), f'{prefix}{field.name}'
    values.update(_flat(f'{name}.', value) if dataclasses.is_dataclass(value) else {name: value})
  return values


@pytest.mark.parametrize('name', sorted(_TABLE))
def test_a_resolved_configuration_equals_the_table_field_by_field(name):
  config = registry.load(name)
  resolved = {**_flat('agent.', config.agent), **_flat('network.', config.network)}
  for field in ('num_actors', 'environments_per_actor', 'num_evaluation_environments',
                'total_steps'):
    resolved[field] = getattr(config, field)
  resolved['inference.batch_size'] = config.inference.batch_size
  assert resolved == {field: value for field, value, _, _ in _TABLE[name]}
  assert config.environment.settings == {}


def test_games_are_played_as_the_table_says():
  assert _flat('', atari.Settings()) == {field: value for field, value, _, _ in _ATARI}


@pytest.mark.parametrize('name', [*sorted(_TABLE), 'atari'])
def test_every_value_has_a_provenance_and_stands_there_once(name):
  rows = _TABLE.get(name, _ATARI)
  assert {provenance for _, _, provenance, _ in rows} <= _PROVENANCE
  assert len({field for field, *_ in rows}) == len(rows)
