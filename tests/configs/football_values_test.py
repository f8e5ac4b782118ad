"""Football's tuned configurations have the numbers of SEED RL's `gcp/train_football_*.sh`."""

import dataclasses

import pytest

from seed_acme import layout as layout_lib
from seed_acme.agents.on_policy import presets
from seed_acme.configs import registry
from seed_acme.envs import football

# rewards: lambda, entropy, learning rate.
_TUNED = {
  'scoring': (0.9, 0.000031948327487872845, 0.00005533923433816456),
  'scoring,checkpoints': (1.0, 0.0007330944745454107, 0.00012542101122072784),
}
_NAMES = {'scoring': 'football_scoring', 'scoring,checkpoints': 'football_checkpoints'}


def _load(rewards):
  return registry.load(_NAMES[rewards])


@pytest.mark.parametrize('rewards', _TUNED)
def test_what_was_tuned_for_the_reward(rewards):
  agent = _load(rewards).agent
  assert (agent.lambda_, agent.entropy.weight, agent.optimizer.learning_rate) == _TUNED[rewards]


@pytest.mark.parametrize('rewards', _TUNED)
def test_what_the_rewards_share(rewards):
  config = _load(rewards)
  assert (config.num_actors, config.environments_per_actor) == (25, 8)
  assert layout_lib.Layout.of(config).batch_rows(0, 1)[0] == 64
  agent = config.agent
  assert (agent.unroll_length, agent.batch_size, agent.discount) == (32, 32, 0.997)
  assert agent.max_abs_reward == 0  # off
  # All other fields of the agent equal the preset's, which are the original's flags.
  tuned = ('lambda_', 'entropy', 'optimizer', 'unroll_length', 'batch_size', 'discount')
  same = {name: getattr(presets.vtrace(), name) for name in (*tuned, 'max_abs_reward')}
  assert dataclasses.replace(agent, **same) == presets.vtrace()
  assert (agent.value_cost, agent.entropy.threshold) == (0.5, None)
  optimizer = agent.optimizer
  assert (optimizer.name, optimizer.schedule, optimizer.max_gradient_norm) == (
    'adam',
    'constant',
    0,
  )
  assert (optimizer.adam_beta1, optimizer.adam_beta2, optimizer.epsilon) == (0.9, 0.999, 1e-7)


@pytest.mark.parametrize('rewards', _TUNED)
def test_whole_games_of_stacked_packed_maps_with_repeat_1(rewards):
  config = _load(rewards)
  assert config.environment.id == 'football:11_vs_11_hard_stochastic'
  assert football.Settings(**config.environment.settings) == football.Settings(
    observation='mini_map', map_width=96, map_height=72, stack=4, packed=True, rewards=rewards
  )
  assert config.total_steps * football.Football.frames_per_step == 500_000_000
  assert football.Football.frames_per_step == 1


@pytest.mark.parametrize('rewards', _TUNED)
def test_the_network_sees_neither_reward_nor_action_and_has_no_core(rewards):
  network = _load(rewards).network
  assert (network.torso, network.torso_output_size, network.core) == (
    'football_resnet',
    256,
    'none',
  )
  assert (network.previous_action_input, network.previous_reward_input) == (False, False)
  assert (network.head_sizes, network.frame_stack) == ((), 1)
  assert network.initializer == 'lecun_normal'  # of the heads too
