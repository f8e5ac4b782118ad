"""How the on-policy agent acts: sampled, or the mode in evaluation, and stored as returned."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import policy
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.progress import counting

_KINDS = ['discrete', 'continuous', 'multi_discrete', 'nested']
_CONTINUOUS = ['tanh_normal', 'clipped_normal', 'deterministic_tanh']


def _prediction(distribution, number, seed=0):
  rng = np.random.default_rng(seed)
  params = rng.normal(size=(number, distribution.num_params)).astype(np.float32)
  return types.ActorCriticOutput(tf.constant(params), tf.zeros([number]))


def _exploration(distribution, number, is_evaluation):
  rng = np.random.default_rng(5)
  return types.Exploration(
    tf.constant(rng.random((number, distribution.num_uniforms)), tf.float32),
    tf.zeros([number]),
    tf.constant(is_evaluation),
    tf.zeros([number], tf.int64),
  )


@pytest.mark.parametrize('continuous', _CONTINUOUS)
@pytest.mark.parametrize('kind', _KINDS)
def test_evaluation_rows_take_the_mode_and_the_others_a_sample(
  kind, continuous, make_config, make_spec
):
  spec, config = make_spec(kind), make_config(action_distribution=continuous)
  distribution = network_lib.make_distribution(spec, config)
  prediction = _prediction(distribution, 6)
  evaluated = np.array([True, False, True, False, False, True])
  exploration = _exploration(distribution, 6, evaluated)
  output = policy.select_actions(prediction, exploration, distribution=distribution)
  assert output.prediction is prediction
  mode = distribution.mode(prediction.policy_params)
  sample = distribution.sample(prediction.policy_params, exploration.uniforms)
  tree.assert_same_structure(output.action, spec.action)
  for action, m, s in zip(*map(tree.flatten, (output.action, mode, sample))):
    np.testing.assert_array_equal(action[evaluated], m[evaluated])
    np.testing.assert_array_equal(action[~evaluated], s[~evaluated])
  if continuous != 'deterministic_tanh':
    differ = [np.any(m != s) for m, s in zip(*map(tree.flatten, (mode, sample)))]
    assert all(differ)


@pytest.mark.parametrize('continuous', _CONTINUOUS)
@pytest.mark.parametrize('kind', _KINDS)
def test_num_uniforms_is_what_one_sample_takes(kind, continuous, make_config, make_spec):
  spec = make_spec(kind)
  config = make_config(action_distribution=continuous)
  distribution = network_lib.make_distribution(spec, config)
  made = agent.make_agent(spec, config_lib.NetworkConfig(), config)
  assert made.acting.num_uniforms == distribution.num_uniforms > 0


def test_it_learns_from_a_queue_without_priorities(make_config, make_spec):
  assert make_config().replay_spec() == core.ReplaySpec('queue')
  made = agent.make_agent(make_spec(), config_lib.NetworkConfig(), make_config())
  assert made.initial_priorities is None


class _Sink:
  def __init__(self):
    self.unrolls = []

  def has_room(self):
    return True

  def put(self, env_ids, unrolls):
    self.unrolls.append(unrolls)


def _request(number, step_type, rng):
  n = 4
  return types.ActorRequest(
    number,
    np.arange(n, dtype=np.int32),
    np.ones(n, np.int64),
    types.VectorTimeStep(
      np.full(n, step_type, np.uint8),
      np.zeros(n, np.float32),
      np.ones(n, np.float32),
      rng.normal(size=(n, 4)).astype(np.float32),
      np.zeros(n, np.float32),
    ),
  )


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['discrete', 'nested'])
def test_what_is_returned_is_what_is_stored(kind, make_config, make_spec, make_network):
  """D24: SEED RL returned the mode in evaluation but stored a sample. Environments 2 and 3 are
  evaluated; the network gets the previous action as input, so a wrong one would change later
  outputs."""
  spec, config = make_spec(kind), make_config(unroll_length=3)
  network = make_network(config, kind, previous_action_input=True)
  select = functools.partial(policy.select_actions, distribution=network.distribution)
  acting = agent_lib.Acting(lambda: network, select, network.distribution.num_uniforms)
  sink, rng = _Sink(), np.random.default_rng(0)
  server = server_lib.InferenceServer(
    spec=spec,
    environment_name='rig',
    policy=policy_lib.Policy(spec, acting, policy_lib.PublishedVariables()),
    num_training=2,
    num_environments=4,
    unroll_length=3,
    overlap=0,
    batch_size=4,
    seed=1,
    sink=sink,
    counters=counting.Counters(),
    quota=None,
    statistics=server_statistics.ServerStatistics(4),
  )
  previous = tree.map_structure(lambda s: np.zeros((4, *s.shape), s.dtype), spec.action)
  replies = []
  for number, step_type in enumerate([types.FIRST, *[types.MID] * 3]):
    request = _request(number, step_type, rng)
    [actions] = server.step([request])
    prediction, _ = network(
      types.AgentInput(
        request.timestep.step_type,
        request.timestep.reward,
        request.timestep.discount,
        previous,
        request.timestep.observation,
      ),
      (),
    )
    mode = network.distribution.mode(prediction.policy_params)
    for action, m, stored in zip(*map(tree.flatten, (actions, mode, server.slots.action))):
      np.testing.assert_allclose(action[2:], m[2:], rtol=1e-5, atol=1e-6)
      np.testing.assert_array_equal(stored, action)
    replies.append(actions)
    previous = actions
  [unrolls] = sink.unrolls
  for stored, told, *returned in zip(
    *map(tree.flatten, (unrolls.outputs.action, unrolls.inputs.previous_action, *replies))
  ):
    np.testing.assert_array_equal(stored, np.stack(returned, axis=1)[:2])
    np.testing.assert_array_equal(told[:, 1:], stored[:, :-1])
    assert not told[:, 0].any()
