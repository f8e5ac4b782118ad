"""The on-policy network: gradients, memory, learnt weights, names."""

import collections

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import presets
from seed_acme.agents.on_policy import resolve
from seed_acme.checks import dotted_path

_AVERAGE = on_policy_config.NormalizationConfig('average')
Penalty = on_policy_config.PenaltyConfig


def _preset(name, **fields):
  return getattr(presets, name)(
    **{'unroll_length': 6, 'batch_size': 4, 'minibatch_size': 0, 'discount': 0.9, **fields}
  )


def _loss_gradients(network, sample, config, gradients):
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  _, found = gradients(
    lambda: loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy'],
    network.trainable_variables,
  )
  return dict(zip((v.name for v in network.trainable_variables), found))


@pytest.mark.slow
@pytest.mark.parametrize(
  'name, kind',
  [
    ('vpg', 'continuous'),
    ('ppo', 'nested'),
    ('vtrace', 'discrete'),
    ('awr', 'multi_discrete'),
    ('vmpo', 'continuous'),
  ],
)
def test_every_trainable_variable_gets_a_gradient(name, kind, make_network, make_sample, gradients):
  """The free deviations have an entry for each policy parameter, and entries of parameters that are
  no deviations get 0. The policy head's columns for deviations get 0, too."""
  config = _preset(
    name,
    values=_AVERAGE,
    observations=_AVERAGE,
    state_independent_std=True,
    entropy=Penalty(weight=0.1, threshold=-0.3),
    kl_to_behaviour=Penalty(weight=0.1),
  )
  network = make_network(config, kind, separate_value_network=True)
  sample = make_sample(network, config, kind, lag=0.3)
  found = _loss_gradients(network, sample, config, gradients)
  for variable, gradient in found.items():
    assert gradient is not None and np.isfinite(gradient).all(), variable
    assert np.abs(gradient).max() > 0, variable
  is_std = network.distribution.is_std
  free = [g for variable, g in found.items() if variable.endswith('free_std:0')]
  assert len(free) == int(is_std.any())
  for gradient in free:
    assert gradient[is_std].all() and not gradient[~is_std].any()
    [head] = [
      g
      for variable, g in found.items()
      if variable.endswith('head/output/w:0') and g.shape[-1] == len(is_std)
    ]
    assert not head[:, is_std].any() and head[:, ~is_std].any()


@pytest.mark.slow
@pytest.mark.parametrize('separate, core', [(False, 'none'), (True, 'lstm')])
def test_unrolling_equals_stepping(separate, core, make_config, make_network, make_sample):
  config = make_config(values=_AVERAGE, observations=_AVERAGE, state_independent_std=True)
  network = make_network(
    config, 'continuous', core=core, separate_value_network=separate, previous_action_input=True
  )
  sample = make_sample(network, config, 'continuous')
  learner.prepare(
    resolve.algorithm(config), network, sample, True
  )  # statistics that change something
  learner.finish(resolve.algorithm(config), network, sample)
  inputs, state = sample.unroll.inputs, sample.unroll.initial_state
  assert (inputs.step_type[1:] == types.FIRST).any()
  predictions, last = network.unroll(inputs, state)
  for t in range(len(inputs.step_type)):
    row = tf.nest.map_structure(lambda x: tf.constant(x[t]), inputs)  # noqa: B023
    prediction, state = network(row, state)
    for a, b in zip(prediction, predictions):
      np.testing.assert_allclose(a, b[t], rtol=1e-5, atol=1e-6)
  for a, b in zip(tf.nest.flatten(state), tf.nest.flatten(last)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class _OwnNetwork(snt.Module):
  """A user's network; names(network): its `value_layer`, if it has one."""

  def __init__(self, names=None):
    super().__init__(name='own')
    self.policy, self.value = snt.Linear(3, name='p'), snt.Linear(1, name='v')
    if names is not None:
      self.value_layer = names(self)

  def initial_state(self, batch_size):
    return ()

  def __call__(self, inputs, state):
    x = inputs.observation
    return types.ActorCriticOutput(self.policy(x), self.value(x)[..., 0]), ()

  unroll = __call__


def _own(config, make_network, monkeypatch, names=None):
  monkeypatch.setattr(dotted_path, 'load_object', lambda *_: lambda *_: _OwnNetwork(names))
  return make_network(config, module='own:Net')


@pytest.mark.parametrize(
  'settings',
  [
    {},
    {'head_sizes': (4,)},
    {'separate_value_network': True},
    {'core': 'lstm'},
    {'frame_stack': 2, 'torso': 'mlp'},
  ],
)
def test_compensation_rescales_the_last_layer_of_the_value_and_adds_no_variable(
  settings, make_config, make_network
):
  config = make_config(values=_AVERAGE, value_clip=0.1)
  image = specs.Array((3, 3), np.uint8) if 'frame_stack' in settings else None
  network = make_network(config, observation=image, **settings)
  network.values.update(tf.constant([0.0, 2.0]), tf.fill([2], True))
  before = {v.name: v.numpy() for v in network.trainable_variables}
  network.values.update(tf.constant([-5.0, 95.0]), tf.fill([2], True))
  changed = [v for v in network.trainable_variables if (v.numpy() != before[v.name]).any()]
  assert [v.shape[-1] for v in changed] == [1, 1]
  assert all('value' in v.name and '/hidden' not in v.name for v in changed)
  assert not any(name.endswith(('scale:0', 'shift:0')) for name in before)


def test_a_network_of_ones_own_that_names_no_layer_has_one_appended(
  make_config, make_sample, make_network, monkeypatch, gradients
):
  config = make_config(values=_AVERAGE)
  named = _own(config, make_network, monkeypatch, lambda network: network.value)
  network = _own(config, make_network, monkeypatch)
  extra = {v.name for v in network.trainable_variables} - {
    v.name for v in named.trainable_variables
  }
  assert extra == {'on_policy/values/scale:0', 'on_policy/values/shift:0'} and extra <= {
    v.name for v in network.variables
  }
  learner.prepare(resolve.algorithm(config), network, make_sample(network, config), True)
  found = _loss_gradients(network, make_sample(network, config, seed=1), config, gradients)
  assert all(np.abs(found[name]).max() > 0 for name in extra)


@pytest.mark.parametrize('layer', [snt.LayerNorm(-1, True, True), 'v', tf.zeros([4, 1])])
def test_a_value_layer_that_is_none_is_refused(layer, make_config, make_network, monkeypatch):
  with pytest.raises(types.UserError, match=r'value_layer of _OwnNetwork .*w \[H, 1\] and b \[1\]'):
    _own(make_config(values=_AVERAGE), make_network, monkeypatch, lambda _: layer)


def _full(make_config, **fields):
  return make_config(
    policy_loss='vmpo',
    values=_AVERAGE,
    observations=_AVERAGE,
    state_independent_std=True,
    entropy=Penalty(weight=0.2, threshold=-0.5),
    kl_to_behaviour=Penalty(weight=0.4),
    kl_from_behaviour=Penalty(weight=3.0, threshold=0.1, speed=2.0),
    vmpo_initial_temperature=0.7,
    **fields,
  )


def test_learnt_weights_start_where_they_are_told(make_config, make_network):
  network = make_network(_full(make_config), 'continuous')
  weights = network.weights.penalty_weights()
  assert list(weights) == ['entropy', 'kl_to_behaviour', 'kl_from_behaviour']
  np.testing.assert_allclose(list(weights.values()), [0.2, 0.4, 3.0], rtol=1e-5)
  np.testing.assert_allclose(network.weights.temperature(), 0.7, rtol=1e-5)
  assert make_network(make_config()).weights.temperature() is None
  assert make_network(make_config()).weights.penalty_weights() == {}


def test_gradients_flow_into_learnt_weights_only(make_config, make_network, gradients):
  network = make_network(_full(make_config), 'continuous')
  parameters = [v for v in network.trainable_variables if 'parameter' in v.name]
  assert sorted(v.name.split('/')[-1] for v in parameters) == [
    'entropy_parameter:0',
    'kl_from_behaviour_parameter:0',
    'temperature_parameter:0',
  ]
  weights = network.weights.penalty_weights
  _, found = gradients(lambda: tf.add_n(list(weights().values())), parameters)
  by_name = {v.name.split('/')[-1]: g for v, g in zip(parameters, found)}
  np.testing.assert_allclose(by_name['entropy_parameter:0'], 0.2, rtol=1e-5)
  np.testing.assert_allclose(by_name['kl_from_behaviour_parameter:0'], 2.0 * 3.0, rtol=1e-5)
  assert by_name['temperature_parameter:0'] is None


@pytest.mark.parametrize('separate', [False, True])
def test_names_are_unique_and_every_variable_is_carried(separate, make_config, make_network):
  network = make_network(
    _full(make_config), 'continuous', core='lstm', separate_value_network=separate
  ).acting
  names = collections.Counter(v.name for v in network.variables)
  assert max(names.values()) == 1
  found = {
    v.ref()
    for module in (network, *network.submodules)
    for v in vars(module).values()
    if isinstance(v, tf.Variable)
  }
  assert found <= {v.ref() for v in network.variables}
  trainable = [v.name for v in network.variables if v.trainable]
  assert sorted(trainable) == sorted(v.name for v in network.trainable_variables)


@pytest.mark.slow
def test_a_copy_of_the_variables_says_the_same(make_config, make_network, make_sample):
  """Statistics are published, too."""
  config = _full(make_config)
  one, two = (make_network(config, 'continuous', seed=seed) for seed in (1, 2))
  sample = make_sample(one, config, 'continuous')
  learner.prepare(resolve.algorithm(config), one, sample, True)
  learner.finish(resolve.algorithm(config), one, sample)
  say = lambda network: network.unroll(sample.unroll.inputs, ())[0]
  assert np.abs(say(one).value - say(two).value).max() > 0.01
  for source, target in zip(one.variables, two.variables):
    target.assign(tf.identity(source))
  for a, b in zip(say(one), say(two)):
    np.testing.assert_array_equal(a, b)


def test_normalised_observations_need_no_float_among_them(make_config, make_network):
  network = make_network(
    make_config(observations=_AVERAGE), observation=specs.Array((4,), np.uint8)
  )
  assert len(network.variables) == len(network.trainable_variables)


@pytest.mark.slow
@pytest.mark.parametrize(
  'settings, name',
  [
    ({'core': 'lstm'}, 'lstm'),
    ({'core': 'gru', 'separate_value_network': True}, 'gru'),
    ({'frame_stack': 2}, 'frame_stack'),
  ],
)
def test_transitions_need_a_network_without_memory(settings, name, make_config, make_network):
  observation = specs.Array((4, 4), np.uint8)
  make_network(make_config(minibatch_of='unrolls'), observation=observation, **settings)
  with pytest.raises(types.UserError, match="minibatch_of .*'unrolls'") as error:
    make_network(make_config(minibatch_of='transitions'), observation=observation, **settings)
  assert name in str(error.value)


def test_a_deterministic_policy_acts_but_has_no_loss(make_config, make_network, make_sample):
  config = make_config(action_distribution='deterministic_tanh')
  network = make_network(config, 'continuous')
  sample = make_sample(network, config, 'continuous')
  assert sample.unroll.outputs.action.shape == (7, 4, 2)
  with pytest.raises(types.UserError, match='deterministic_tanh policy has no log-prob'):
    learner.prepare(resolve.algorithm(config), network, sample, True)
