"""From configuration to network: names, variables, the user's own modules, errors."""

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.networks import lstm
from seed_acme.networks import torsos

_SPEC = types.EnvironmentSpec(
  observation=specs.Array((40, 40, 1), np.uint8), action=specs.DiscreteArray(3)
)


class OwnTorso(snt.Module):
  """A user's torso."""

  def __init__(self):
    super().__init__(name='own')
    self._layer = snt.Linear(5)

  def __call__(self, observation):
    return self._layer(snt.flatten(tf.cast(observation, tf.float32)))


class OwnNetwork(snt.Module):
  """A user's network in twenty lines."""

  def __init__(self, num_params):
    super().__init__(name='own')
    self._layer = snt.Linear(num_params + 1)

  def initial_state(self, batch_size):
    del batch_size
    return ()

  def __call__(self, inputs, state):
    x = self._layer(snt.flatten(tf.cast(inputs.observation, tf.float32)))
    return types.ActorCriticOutput(x[:, 1:], x[:, 0]), state

  def unroll(self, inputs, state):
    prediction, state = snt.BatchApply(self)(inputs, state)
    return prediction, state


class OwnQNetwork(OwnNetwork):
  """A user's network for an agent that learns Q-values."""

  def __call__(self, inputs, state):
    return types.QOutput(super().__call__(inputs, state)[0].policy_params), state


class TwoOfAName(OwnNetwork):
  """A user's network with a mistake: two variables of the same name."""

  def __init__(self, num_params):
    super().__init__(num_params)
    self._copy = tf.Variable(0.0, name='w')
    self._other = tf.Variable(0.0, name='w')


def own_network(spec, config):
  """Makes a network, as a user's factory."""
  assert isinstance(config, config_lib.NetworkConfig)
  return OwnNetwork(types.num_discrete_actions(spec))


def two_of_a_name(spec, config):
  """Makes a network with two variables of the same name, as a user's mistake."""
  del config
  return TwoOfAName(types.num_discrete_actions(spec))


def no_network(spec, config):
  """Makes a torso in place of a network, as a user's mistake."""
  del spec, config
  return OwnTorso()


def wrong_width(spec, config):
  """Makes a network with the wrong number of outputs, as a user's mistake."""
  del spec, config
  return OwnNetwork(7)


def own_q_network(spec, config):
  """Makes a Q-network, as a user's factory."""
  del config
  return OwnQNetwork(types.num_discrete_actions(spec))


def wrong_q_width(spec, config):
  """Makes a Q-network with the wrong number of outputs, as a user's mistake."""
  del spec, config
  return OwnQNetwork(7)


class WithoutInit:
  """A class without settings."""


class WithNew:
  """A class whose settings are those of `__new__`."""

  def __new__(cls, size):
    return super().__new__(cls)


@pytest.fixture(name='own_module')
def _own_module(monkeypatch):
  """Makes this file importable as `own_module`."""
  module = type(np)('own_module')
  for item in (
    *(OwnTorso, WithoutInit, WithNew, own_network, own_q_network, two_of_a_name),
    *(wrong_width, wrong_q_width, no_network),
  ):
    setattr(module, item.__name__, item)
  module.number = 7
  monkeypatch.setitem(__import__('sys').modules, 'own_module', module)


def _make(**settings):
  return build.make_actor_critic(config_lib.NetworkConfig(**settings), _SPEC, 3)


def _make_q(**settings):
  return build.make_q_network(config_lib.NetworkConfig(**settings), _SPEC)


_COMBINATIONS = [
  {
    'torso': torso,
    'core': core,
    'core_size': 6,
    'torso_output_size': 8,
    'previous_action_input': previous,
    'previous_reward_input': previous,
  }
  for torso, core, previous in (
    ('mlp', 'none', False),
    ('mlp', 'lstm', True),
    ('nature_cnn', 'gru', True),
    ('impala_shallow', 'none', True),
    ('impala_resnet', 'lstm', True),
  )
]


@pytest.mark.slow
@pytest.mark.parametrize('settings', _COMBINATIONS)
@pytest.mark.parametrize(
  'make, more', [(_make, {'head_sizes': (5, 4), 'frame_stack': 3}), (_make_q, {})]
)
def test_all_variables_exist_at_once_in_a_stable_order_with_unique_names(make, settings, more):
  network, again = make(**settings, **more), make(**settings, **more)
  names = [v.name for v in network.variables]
  assert len(set(names)) == len(names)
  assert names == [v.name for v in again.variables]
  inputs = tf.nest.map_structure(lambda x: tf.stack([x, x]), build.zero_inputs(_SPEC, 2))
  network.unroll(inputs, network.initial_state(2))
  assert names == [v.name for v in network.variables]


def test_the_deep_network_of_the_paper_has_39_trainable_variables():
  """It is the count that the original's own test asserts for its DMLab network."""
  network = _make(**_COMBINATIONS[-1])
  assert len(network.trainable_variables) == 39


def test_previous_action_and_reward_widen_the_core():
  network = _make(**_COMBINATIONS[1], mlp_sizes=(5,))
  width = next(v.shape[0] for v in network.variables if v.name == 'lstm/w_x:0')
  assert width == 5 + 1 + 3


def test_the_q_network_of_r2d2_has_the_sizes_of_the_paper():
  spec = types.EnvironmentSpec(
    observation=specs.Array((84, 84, 1), np.uint8), action=specs.DiscreteArray(18)
  )
  network = build.make_q_network(
    config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=512,
      core='lstm',
      core_size=512,
      head_sizes=(512,),
      previous_action_input=True,
      previous_reward_input=True,
      frame_stack=4,
    ),
    spec,
  )
  shapes = {v.name: tuple(v.shape) for v in network.variables}
  assert shapes['nature_cnn/conv_0/w:0'] == (8, 8, 4, 32)
  assert shapes['lstm/w_x:0'] == (512 + 1 + 18, 4 * 512)
  assert shapes['heads/value_hidden/linear_0/w:0'] == (512, 512)
  assert shapes['heads/advantage/w:0'] == (512, 18)
  assert len(shapes) == 8 + 3 + 4 + 3
  prediction, state = network(build.zero_inputs(spec, 2), network.initial_state(2))
  assert prediction.q_values.shape == (2, 18)
  assert state.frames.shape == (2, 3, 84, 84)


def test_a_user_s_q_network_is_taken_as_it_is(own_module):
  network = _make_q(module='own_module:own_q_network', frame_stack=4)
  prediction, state = network(build.zero_inputs(_SPEC, 2), network.initial_state(2))
  assert prediction.q_values.shape == (2, 3)
  assert state == ()


def test_q_values_need_one_discrete_action():
  spec = types.EnvironmentSpec(
    observation=_SPEC.observation, action=specs.BoundedArray((2,), np.float32, -1, 1)
  )
  with pytest.raises(types.UserError, match='needs one discrete action'):
    build.make_q_network(config_lib.NetworkConfig(), spec)


def test_a_user_s_torso_and_a_user_s_network(own_module):
  network = _make(torso='own_module:OwnTorso', core='lstm', core_size=4)
  assert 'own/linear/w:0' in [v.name for v in network.variables]
  network = _make(module='own_module:own_network')
  prediction, state = network(build.zero_inputs(_SPEC, 2), network.initial_state(2))
  assert prediction.policy_params.shape == (2, 3)
  assert state == ()


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'torso': 'natur_cnn'}, "network.torso ('natur_cnn') is not known; did you mean nature_cnn?"),
    ({'torso': 'zzz'}, 'Choose one of mlp, nature_cnn, impala_shallow, impala_resnet'),
    ({'core': 'lstn'}, "network.core ('lstn') is not known; did you mean lstm?"),
    ({'torso': 'own_module:OwnTors'}, "the module has no 'OwnTors'; did you mean OwnTorso?"),
    ({'torso': 'no_such_module:X'}, "No module named 'no_such_module'"),
    (
      {'torso': 'seed_acme.networks.torsos:MLP', 'torso_settings': {'width': 3}},
      "({'width': 3}) do not fit seed_acme.networks.torsos:MLP(sizes",
    ),
    (
      {'torso': 'own_module:number', 'torso_settings': {'width': 3}},
      'network.torso (own_module:number) is no class, but 7',
    ),
    *(
      ({'torso': name, 'torso_settings': {'width': 3}}, f"({{'width': 3}}) do not fit {name}(")
      for name in ('own_module:WithoutInit', 'own_module:WithNew')
    ),
    ({'torso_settings': {'size': 3}}, "have no effect with network.torso 'mlp'"),
    ({'module': 'own_module'}, 'must be written package.module:Name'),
    ({'module': 'own_module:wrong_width'}, '((1, 7), (1,)) for one row; ((1, 3), (1,)) is needed'),
    (
      {'module': 'own_module:own_q_network'},
      'returned QOutput; this agent needs seed_acme.types.ActorCriticOutput(policy_params, value)',
    ),
    ({'module': 'own_module:number'}, 'network.module (own_module:number) is no function, but 7'),
    ({'module': 'own_module:OwnTorso'}, 'cannot be called as factory(spec, network_config): too'),
    (
      {'module': 'own_module:no_network'},
      'returned OwnTorso, which has no initial_state(): return',
    ),
    ({'module': 'own_module:two_of_a_name'}, "variables ['own/w:0'] share a name"),
  ],
)
def test_mistakes_are_answered_with_the_fix(own_module, settings, message):
  with pytest.raises(types.UserError) as error:
    _make(**settings)
  assert message in str(error.value)
  assert len(str(error.value).splitlines()) <= 4


@pytest.mark.parametrize(
  'module, message',
  [
    (
      'own_network',
      'returned ActorCriticOutput; this agent needs seed_acme.types.QOutput(q_values)',
    ),
    ('wrong_q_width', 'returned q_values of shapes ((1, 7),) for one row; ((1, 3),) is needed'),
  ],
)
def test_a_user_s_network_must_answer_with_q_values(own_module, module, message):
  with pytest.raises(types.UserError) as error:
    _make_q(module=f'own_module:{module}')
  assert message in str(error.value)


def test_registered_names_are_those_of_the_classes():
  mlp = build._TORSOS['mlp'](config_lib.NetworkConfig(), _SPEC.observation, [255.0])
  assert isinstance(mlp, torsos.MLP)
  assert isinstance(build._CORES['lstm'](config_lib.NetworkConfig()), lstm.LSTM)


@pytest.mark.parametrize(
  'settings, hidden',
  [
    ({'activation': 'tanh'}, 1.0),
    ({'activation': 'relu'}, 2.0**0.5),
    ({'activation': 'tanh', 'hidden_gain': 2.0**0.5}, 2.0**0.5),
    ({'activation': 'relu', 'hidden_gain': 0.5}, 0.5),
  ],
)
def test_orthogonal_layers_have_the_gains_of_the_configuration(settings, hidden):
  network = _make(
    torso='mlp',
    mlp_sizes=(8, 8),
    head_sizes=(8,),
    initializer='orthogonal',
    policy_head_gain=0.01,
    value_head_gain=3.0,
    **settings,
  )
  for variable in network.variables:
    if variable.name.endswith('/w:0'):
      last = {'heads/policy/w:0': 0.01, 'heads/value/w:0': 3.0}
      expected = last.get(variable.name, hidden)
      found = np.linalg.svd(variable.numpy(), compute_uv=False)
      np.testing.assert_allclose(found, expected, rtol=1e-4, err_msg=variable.name)


def test_the_hidden_gain_scales_glorot_weights_too():
  tf.random.set_seed(0)
  networks = [_make(torso='mlp', mlp_sizes=(400,), hidden_gain=gain) for gain in (0.0, 3.0)]
  plain, scaled = (
    next(v for v in network.variables if v.name.endswith('linear_0/w:0')) for network in networks
  )
  np.testing.assert_allclose(np.std(scaled) / np.std(plain), 3.0, rtol=0.02)


def test_two_networks_of_one_name_would_not_both_be_saved():
  twins = [_make_q(torso='mlp', mlp_sizes=(4,)) for _ in range(2)]
  with pytest.raises(types.UserError, match='two variables are named targets/.*prefix of its own'):
    agent_lib.named('targets', [*twins[0].variables, *twins[1].variables])
  assert len(agent_lib.named('first', twins[0].variables)) == len(twins[0].variables)


@pytest.mark.parametrize('initializer', ['glorot_uniform', 'lecun_normal', 'orthogonal'])
def test_a_head_of_gain_0_begins_with_zeros(initializer):
  network = _make(
    torso='mlp', mlp_sizes=(4,), initializer=initializer, policy_head_gain=0.0, value_head_gain=0.0
  )
  prediction, _ = network(build.zero_inputs(_SPEC, 2), network.initial_state(2))
  assert not np.any(prediction.policy_params) and not np.any(prediction.value)
