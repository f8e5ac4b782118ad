"""`mujoco_ppo_halfcheetah` has the numbers of SEED RL's `mujoco/gin/ppo.gin` and its scripts."""

import math

from seed_acme.configs import registry


def test_the_configuration_has_the_tuned_numbers_of_the_original():
  config = registry.load('mujoco_ppo_halfcheetah')
  agent, network, optimizer = config.agent, config.network, config.agent.optimizer
  assert (agent.policy_loss, agent.ppo_epsilon, agent.entropy.weight) == ('ppo', 0.2, 0)
  assert (agent.advantage, agent.lambda_, agent.discount) == ('gae', 0.95, 0.99)
  assert (agent.unroll_length, agent.minibatch_of, agent.minibatch_size) == (16, 'transitions', 64)
  assert agent.batch_size * agent.unroll_length == 2048  # step_size_transitions
  assert (agent.num_epochs, agent.value_loss) == (10, 'mse')
  assert agent.value_cost == 2.0  # 1 there, for the squared error without its half
  assert (agent.values.statistics, agent.value_compensation) == ('average', False)
  assert (agent.observations.statistics, agent.observation_clip) == ('average', 10.0)
  assert (agent.std_function, agent.min_std, agent.initial_std) == ('safe_exp', 1e-3, 1.0)
  assert (agent.action_distribution, agent.state_independent_std) == ('tanh_normal', True)
  assert (network.mlp_sizes, network.activation) == ((64, 64), 'tanh')
  assert network.separate_value_network and network.initializer == 'orthogonal'
  assert (network.hidden_gain, network.policy_head_gain, network.value_head_gain) == (
    math.sqrt(2.0),
    0.01,
    1.0,
  )
  assert (optimizer.name, optimizer.learning_rate, optimizer.schedule) == ('adam', 3e-4, 'linear')
  assert optimizer.max_gradient_norm == 0.5
  assert config.environment.id == 'HalfCheetah-v4'
  assert config.inference.strictly_on_policy
