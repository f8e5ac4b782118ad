"""The configurations of DeepMind Lab have the numbers of SEED RL's gcp scripts, and repeat 4."""

import dataclasses

import pytest

from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from seed_acme.envs import dmlab
from seed_acme.envs import dmlab_levels

# level: lambda, entropy, learning rate, epsilon of Adam.
_TUNED = {
  'explore_goal_locations_small': (0.95, 0.0009705614902108625, 0.00022587896096859582, 3.125e-9),
  'lasertag_three_opponents_small': (0.9, 0.0013043623417080615, 0.000398313170083425, 3.125e-11),
  'rooms_keys_doors_puzzle': (0.922, 0.002, 0.0001, 3.125e-11),
  'rooms_watermaze': (0.99, 0.00001, 0.0001, 3.125e-7),
}


def _load(level):
  return registry.load(f'dmlab_{level}')


def test_every_configuration_is_in_the_table():
  names = [name for name in registry.names() if name.startswith('dmlab_')]
  assert names == [f'dmlab_{level}' for level in sorted(_TUNED)]


@pytest.mark.parametrize('level', _TUNED)
def test_what_was_tuned_for_the_level(level):
  agent = _load(level).agent
  optimizer = agent.optimizer
  found = (agent.lambda_, agent.entropy.weight, optimizer.learning_rate, optimizer.epsilon)
  assert found == _TUNED[level]


@pytest.mark.parametrize('level', _TUNED)
def test_what_the_levels_share(level):
  config = _load(level)
  assert (config.num_actors, config.environments_per_actor) == (50, 8)
  assert layout_lib.Layout.of(config).num_training == 400
  assert layout_lib.Layout.of(config).batch_rows(0, 1)[0] == 64
  agent = config.agent
  assert (agent.unroll_length, agent.batch_size, agent.overlap) == (100, 32, 0)
  assert (agent.policy_loss, agent.advantage, agent.discount) == ('vtrace', 'vtrace', 0.99)
  assert (agent.rho_clip, agent.c_clip, agent.policy_rho_clip) == (1, 1, 1)
  assert (agent.value_cost, agent.kl_cost, agent.max_abs_reward) == (0.5, 0, 1)
  assert (agent.entropy.threshold, agent.entropy.speed) == (None, 10)
  optimizer = agent.optimizer
  assert (optimizer.name, optimizer.schedule, optimizer.max_gradient_norm) == ('adam', 'linear', 0)
  assert (optimizer.adam_beta1, optimizer.adam_beta2) == (0, 0.999)


@pytest.mark.parametrize('level', _TUNED)
def test_a_billion_frames_of_four_an_action(level):
  config = _load(level)
  settings = dmlab.Settings(**config.environment.settings)
  assert config.environment.id == f'dmlab:{level}' and level in dmlab_levels.LEVELS
  assert (settings.width, settings.height, settings.num_action_repeats) == (96, 72, 4)
  assert config.total_steps * settings.num_action_repeats == 1_000_000_000
  assert not settings.test and not settings.instructions


@pytest.mark.parametrize('level', _TUNED)
def test_the_network_is_that_of_impala(level):
  network = _load(level).network
  expected = {
    'torso': 'impala_resnet',
    'torso_output_size': 256,
    'core': 'lstm',
    'core_size': 256,
    'previous_action_input': True,
    'previous_reward_input': True,
    'previous_reward_bound': 1.0,
    'head_sizes': (),
    'frame_stack': 1,
    'initializer': 'glorot_uniform',
    'separate_value_network': False,
  }
  assert expected.items() <= dataclasses.asdict(network).items()
