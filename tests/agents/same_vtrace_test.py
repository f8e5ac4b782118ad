"""The V-trace agent and the on-policy agent with its choices learn alike: one op serves both."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import agent as on_policy
from seed_acme.agents.on_policy import learner as on_policy_learner
from seed_acme.agents.on_policy import presets
from seed_acme.agents.vtrace import agent as vtrace
from seed_acme.agents.vtrace import config as vtrace_config

_T, _B, _A = 7, 5, 3
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((4,), np.float32), action=specs.DiscreteArray(_A)
)
_NETWORK = config_lib.NetworkConfig(mlp_sizes=(6,), activation='tanh', separate_value_network=True)
_SAME = {
  'unroll_length': _T,
  'batch_size': _B,
  'discount': 0.9,
  'rho_clip': 1.3,
  'c_clip': 0.8,
  'policy_rho_clip': 1.1,
  'max_abs_reward': 0.7,
  'lambda_': 1.0,
}


def _sample():
  """Off-policy by about a factor of two, with terminations and truncations inside."""
  rng = np.random.default_rng(0)
  shape = (_T + 1, _B)
  step_type = np.full(shape, types.MID, np.uint8)
  step_type[3, 1], step_type[4, 1] = types.LAST, types.FIRST
  step_type[0, 4], step_type[1, 4] = types.LAST, types.FIRST
  normal = lambda *size: rng.normal(size=size).astype(np.float32)
  inputs = types.AgentInput(
    step_type=step_type,
    reward=normal(*shape),
    discount=rng.choice(np.float32([0, 1]), shape),
    previous_action=np.zeros(shape, np.int32),
    observation=normal(*shape, 4),
  )
  outputs = types.AgentOutput(
    rng.integers(0, _A, shape, np.int32),
    types.ActorCriticOutput(normal(*shape, _A), normal(*shape)),
  )
  unroll = types.Unroll((), inputs, outputs, np.zeros(shape, np.int64))
  return types.Sample(unroll, np.arange(_B, dtype=np.uint64), np.ones(_B, np.float32))


def _gradients(network, loss):
  """By the name of the variable."""
  with tf.GradientTape() as tape:
    value = loss()
  found = tape.gradient(value, network.trainable_variables)
  return {v.name: g.numpy() for v, g in zip(network.trainable_variables, found)}


def _both(**changes):
  """Gradients of the two agents on one sample, from equal weights."""
  first = vtrace_config.VTraceConfig(**{**_SAME, 'value_cost': 1.0, 'entropy_cost': 0.0, **changes})
  second = presets.vtrace(**{**_SAME, 'value_cost': 0.5, **changes})
  networks = []
  for make, config in ((vtrace.AGENT.make_network, first), (on_policy.AGENT.make_network, second)):
    tf.random.set_seed(1)
    networks.append(make(_SPEC, _NETWORK, config))
  for a, b in zip(networks[1].variables, networks[0].variables):
    assert a.name == b.name
    a.assign(b)
  sample = _sample()
  batch = on_policy_learner.prepare(networks[1], sample, True, second)
  return (
    _gradients(networks[0], lambda: vtrace.AGENT.loss(networks[0], sample, first).loss),
    _gradients(networks[1], lambda: on_policy.AGENT.loss(networks[1], batch, second).loss),
  )


def test_both_agents_have_the_same_gradient_on_an_off_policy_sample():
  one, two = _both()
  assert one.keys() == two.keys()
  for name, gradient in one.items():
    assert np.abs(gradient).max() > 1e-3, name
    np.testing.assert_allclose(two[name], gradient, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
  'field, value',
  [
    ('policy_rho_clip', 5.0),
    ('rho_clip', 5.0),
    ('c_clip', 5.0),
    ('max_abs_reward', 0.0),
    ('lambda_', 0.5),
  ],
)
def test_every_bound_matters_in_this_sample(field, value):
  """So that the equality above is one of the bounds, too."""
  for before, after in zip(_both(), _both(**{field: value})):
    name = 'value' if field != 'policy_rho_clip' else 'policy'
    differs = [not np.allclose(before[v], after[v], rtol=1e-3) for v in before if name in v]
    assert differs and any(differs)


def test_with_another_lambda_only_the_values_learn_alike():
  """The advantages of the on-policy agent then take the form of GAE (`ops.vtrace`)."""
  one, two = _both(lambda_=0.5)
  for name, gradient in one.items():
    same = np.allclose(two[name], gradient, rtol=1e-3, atol=1e-6)
    assert same == name.startswith('value'), name
