"""Learners of a linear and of an actor-critic network, and samples for them."""

import functools

from dm_env import specs
import numpy as np
import sonnet as snt
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import learnt_rows
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets
from seed_acme.learning import learner as learner_lib

T, B = 4, 3
RATE = 0.05
SPEC = types.EnvironmentSpec(
  observation=specs.Array((4,), np.float32), action=specs.DiscreteArray(3)
)
FIRST, MID, LAST = types.FIRST, types.MID, types.LAST


def stub_agent(network, learning):
  """Returns an agent that is only trained and never acts."""
  acting = agent_lib.Acting(make=lambda: network, select_actions=None, num_uniforms=0)
  return agent_lib.Agent(acting, lambda made: learning)


class Linear(snt.Module):
  """A vector and a matrix whose gradients are given by the sample (see `linear_loss`)."""

  def __init__(self):
    super().__init__(name='linear')
    self.w = tf.Variable([1.0, -2.0, 0.5], name='w')
    self.m = tf.Variable([[0.25, 3.0]], name='m')


def linear_loss(network, sample):
  """The loss with d/dw = mean observation, and d/dm = mean reward for each entry."""
  observation = tf.reduce_mean(sample.unroll.inputs.observation, axis=(0, 1))
  reward = tf.reduce_mean(sample.unroll.inputs.reward)
  loss = tf.reduce_sum(network.w * observation) + tf.reduce_sum(network.m) * reward
  return types.LossOutput({'linear': loss}, metrics={'toy/reward': reward})


def linear_gradients(sample):
  inputs = sample.unroll.inputs
  return [
    np.full((1, 2), inputs.reward.astype(np.float64).mean()),
    inputs.observation.astype(np.float64).mean((0, 1)),
  ]  # `m`, `w`: Sonnet's order


def linear_learner(loss=linear_loss, total_steps=1000, overlap=0, network=None, **optimizer):
  network = network or Linear()
  config = presets.vtrace(unroll_length=T, batch_size=B, overlap=overlap)
  objective = agent_lib.Objective(
    network.trainable_variables, config_lib.OptimizerConfig(**{'learning_rate': RATE, **optimizer})
  )
  learning = agent_lib.Learning(
    variables={},
    objectives={'linear': objective},
    prepare=functools.partial(learnt_rows.prepare_sample, config=config),
    losses=lambda sample, key, progress: loss(network, sample),
  )
  return learner_lib.Learner(
    stub_agent(network, learning),
    published=range(len(network.variables)),
    total_steps=total_steps,
    seed=1,
    xla=False,
    devices=['cpu:0'],
  )


class VtraceLearner(learner_lib.Learner):
  """A learner that also has the initial state `[B, ...]` of its network."""

  initial_state = ()


def vtrace_learner(seed=1, core='none', target_entropy=None, optimizer=None):
  tf.random.set_seed(seed)
  threshold = None if target_entropy is None else -target_entropy
  config = presets.vtrace(
    unroll_length=T,
    batch_size=B,
    optimizer=optimizer or config_lib.OptimizerConfig(learning_rate=RATE),
    entropy=on_policy_config.PenaltyConfig(0.01, threshold),
  )
  made = agent.make_agent(
    SPEC, config_lib.NetworkConfig(mlp_sizes=(8,), core=core, core_size=6), config
  )
  network = made.acting.make()
  published = range(len(network.variables))
  learner = VtraceLearner(
    made, published=published, total_steps=1000, seed=seed, xla=False, devices=['cpu:0']
  )
  learner.initial_state = tf.nest.map_structure(lambda x: x.numpy(), network.initial_state(B))
  return learner


def sample(seed=0, num_rows=T + 1, observation_size=3, step_type=None, state=(), scale=1.0):
  rng = np.random.default_rng(seed)
  shape = (num_rows, B)
  normal = lambda *size: rng.normal(size=size, scale=scale).astype(np.float32)
  inputs = types.AgentInput(
    step_type=np.full(shape, MID, np.uint8) if step_type is None else step_type,
    reward=normal(*shape),
    discount=np.ones(shape, np.float32),
    previous_action=rng.integers(0, 3, shape).astype(np.int32),
    observation=normal(*shape, observation_size),
  )
  outputs = types.AgentOutput(
    action=rng.integers(0, 3, shape).astype(np.int32),
    prediction=types.ActorCriticOutput(normal(*shape, 3), normal(*shape)),
  )
  unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
  return types.Sample(unroll, np.arange(B, dtype=np.uint64), np.ones(B))


def vtrace_sample(learner, seed=0):
  return sample(seed, observation_size=4, state=learner.initial_state)


def with_inputs(sample, **fields):
  return sample._replace(
    unroll=sample.unroll._replace(inputs=sample.unroll.inputs._replace(**fields))
  )


def values(learner):
  """Returns copies of all published variables; `numpy()` of a tensor may share its memory."""
  return [np.array(value) for value in learner.variables().values]


def assert_all_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)
