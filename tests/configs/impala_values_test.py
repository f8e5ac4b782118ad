"""`atari_impala_small` against the numbers of RLlib that it converts."""

import math

from dm_env import specs
import numpy as np

from seed_acme import types
from seed_acme.agents.on_policy import agent as agent_lib
from seed_acme.configs import registry


def test_sums_over_a_batch_have_become_means():
  """RLlib has batches of 1,000 transitions, a gradient norm of 40, and TensorFlow's Adam."""
  agent = registry.load('atari_impala_small').agent
  optimizer, num_transitions = agent.optimizer, agent.unroll_length * agent.batch_size
  assert num_transitions == 1000
  assert math.isclose(optimizer.max_gradient_norm * num_transitions, 40)
  assert math.isclose(optimizer.epsilon * num_transitions, 1e-8)
  assert (optimizer.name, optimizer.learning_rate, optimizer.schedule) == ('adam', 5e-4, 'constant')


def test_the_loss_is_that_of_impala_in_one_pass():
  config = registry.load('atari_impala_small')
  agent = config.agent
  assert (agent.policy_loss, agent.advantage, agent.advantage_form) == ('vtrace', 'vtrace', 'paper')
  assert (agent.rho_clip, agent.c_clip, agent.policy_rho_clip, agent.lambda_) == (1, 1, 1, 1)
  assert (agent.num_epochs, agent.minibatch_size, agent.normalize_advantages) == (1, 0, False)
  assert (agent.discount, agent.value_cost, agent.entropy.weight) == (0.99, 0.5, 0.01)
  assert (agent.max_abs_reward, agent.entropy.threshold, agent.kl_from_behaviour.weight) == (
    1,
    None,
    0,
  )
  assert not config.inference.strictly_on_policy
  assert config.num_actors * config.environments_per_actor == 160


def test_the_network_has_the_layers_of_rllib_and_two_heads():
  config = registry.load('atari_impala_small')
  assert config.network.byte_scale == '1'  # RLlib does not divide bytes
  size = config.environment.settings['image_size']
  observation = specs.BoundedArray((size, size, 1), np.uint8, 0, 255)
  spec = types.EnvironmentSpec(observation, specs.DiscreteArray(6))
  network = agent_lib.make_agent(spec, config.network, config.agent).acting.make()
  sizes = [int(np.prod(v.shape)) for v in network.trainable_variables]
  convolutions = [(4 * 4 * 4 + 1) * 16, (4 * 4 * 16 + 1) * 32, (11 * 11 * 32 + 1) * 256]
  assert sum(sizes) == sum(convolutions) + 257 * (6 + 1)
