"""Makes a network, with all its variables, from a configuration and a specification."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
import math
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import core as core_lib
from seed_acme import types
from seed_acme.envs import packed_planes
from seed_acme.networks import auto_torso
from seed_acme.networks import cores
from seed_acme.networks import frame_stack
from seed_acme.networks import heads
from seed_acme.networks import image_torsos
from seed_acme.networks import instructions
from seed_acme.networks import lstm
from seed_acme.networks import own
from seed_acme.networks import precision
from seed_acme.networks import requirements
from seed_acme.networks import separate
from seed_acme.networks import state_functions
from seed_acme.networks import torso_core_heads
from seed_acme.networks import torsos
from seed_acme.ops import byte_scale
from seed_acme.parallel import data_parallel

# Makes a torso from the configuration, the specification of the observation (None if it is stacked)
# and each array's divisor of bytes.
_MakeTorso = Callable[
  [config_lib.NetworkConfig, types.Nest, Sequence[byte_scale.Divisor]], torsos.Torso
]
_TORSOS: dict[str, _MakeTorso] = {
  'auto': lambda config, observation_spec, divisors: _auto_torso(
    config, observation_spec, divisors
  ),
  'mlp': lambda config, observation_spec, divisors: torsos.MLP(
    config.mlp_sizes, style=_style(config), observation_spec=observation_spec, divisors=divisors
  ),
  'nature_cnn': lambda config, _, divisors: _image_torso(image_torsos.NatureCNN, config, divisors),
  'impala_shallow': lambda config, _, divisors: _image_torso(
    image_torsos.ImpalaShallow, config, divisors
  ),
  'rllib_42': lambda config, _, divisors: _image_torso(image_torsos.RLlib42, config, divisors),
  'impala_resnet': lambda config, _, divisors: _image_torso(
    image_torsos.ImpalaResNet, config, divisors
  ),
  'football_resnet': lambda config, _, divisors: _image_torso(
    image_torsos.FootballResNet, config, divisors
  ),
  'impala_resnet_instruction': lambda config, spec, divisors: instructions.ImageAndInstruction(
    _image_torso(image_torsos.ImpalaResNet, config, divisors), requirements.num_word_ids(spec)
  ),
}

_CORES: dict[str, Callable[[config_lib.NetworkConfig], cores.Core]] = {
  'none': lambda config: torso_core_heads.FeedForward(),
  'lstm': lambda config: lstm.LSTM(config.core_size),
  'gru': lambda config: cores.GRU(config.core_size),
}


def make_actor_critic(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec, num_policy_params: int
) -> core_lib.RecurrentNetwork:
  """Makes the configured network, and runs it once on zeros so that every variable exists.

  num_policy_params: P, width of the policy head.
  """
  style = _style(config)
  network: core_lib.RecurrentNetwork
  if config.separate_value_network and not config.module:
    with tf.name_scope('policy'):
      policy = _make_network(
        config,
        spec,
        heads.DenseHead(
          num_policy_params, config.head_sizes, style, config.policy_head_gain, 'head'
        ),
      )
    with tf.name_scope('value'):
      value = _make_network(
        config, spec, heads.DenseHead(1, config.head_sizes, style, config.value_head_gain, 'head')
      )
    network = separate.SeparateActorCritic(policy, value)
  else:
    network = _make_network(
      config,
      spec,
      heads.ActorCriticHeads(
        num_policy_params, config.head_sizes, style, config.policy_head_gain, config.value_head_gain
      ),
    )
  _create_and_check(network, config, spec, types.ActorCriticOutput((1, num_policy_params), (1,)))
  return data_parallel.DataParallelNetwork(network)


def make_q_network(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec
) -> core_lib.RecurrentNetwork:
  """Makes a network like `make_actor_critic`, but one that predicts Q values, `types.QOutput`."""
  num_actions = types.num_discrete_actions(spec)
  network = _make_network(
    config, spec, heads.DuelingHeads(num_actions, config.head_sizes, _style(config))
  )
  _create_and_check(network, config, spec, types.QOutput((1, num_actions)))
  return data_parallel.DataParallelNetwork(network)


def make_state_function(
  config: config_lib.NetworkConfig,
  spec: types.EnvironmentSpec,
  output_size: int,
  *,
  gain: float,
  takes_action: bool,
  name: str,
) -> state_functions.StateFunction:
  """Makes a head of `output_size` on the configured torso and, with a core, on a separate memory.

  gain: scale of the head's last layer. takes_action: whether the head is a function of a state and
  an action. name: prefix of the variables' names. The variables exist only after the first call.
  """
  requirements.check(config, spec)
  # Inputs are already stacked if images are stacked.
  observation = spec.observation
  is_dense = requirements.resolved_torso(config.torso, observation) == 'mlp'
  is_early = takes_action and is_dense and config.frame_stack == 1
  with tf.name_scope(name):
    if is_early:
      size = state_functions.encoded_size(spec.action)
      observation = (observation, dm_specs.Array([size], np.float32))
    branch = state_functions.Branch(
      _make_torso(config, observation), spec.action if takes_action else None, is_early
    )
    head = heads.DenseHead(output_size, config.head_sizes, _style(config), gain, 'head')
    return state_functions.StateFunction(branch, _make_memory(config, spec), head)


def _make_memory(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec
) -> core_lib.RecurrentNetwork | None:
  """Makes a torso and the configured core, which never see a desired goal; None without a core."""
  if config.core == 'none':
    return None
  with tf.name_scope('memory'):
    return torso_core_heads.TorsoCoreHeads(
      _make_torso(config, state_functions.without_goal(spec.observation)),
      _CORES[config.core](config),
      lambda x: x,
      action_spec=spec.action,
      previous_action_input=config.previous_action_input,
      previous_reward_input=config.previous_reward_input,
      previous_reward_bound=config.previous_reward_bound,
    )


def _style(config: config_lib.NetworkConfig) -> torsos.DenseStyle:
  return torsos.DenseStyle(config.activation, config.initializer, config.hidden_gain)


def zero_inputs(spec: types.EnvironmentSpec, batch_size: int) -> types.AgentInput:
  """Returns FIRST rows `[batch_size, ...]` of zeros."""

  def zeros(array_spec: Any) -> tf.Tensor:
    return tf.zeros([batch_size, *array_spec.shape], tf.as_dtype(array_spec.dtype))

  return types.AgentInput(
    step_type=tf.fill([batch_size], tf.cast(types.FIRST, tf.uint8)),
    reward=tf.zeros([batch_size]),
    discount=tf.ones([batch_size]),
    previous_action=tree.map_structure(zeros, spec.action),
    observation=tree.map_structure(zeros, spec.observation),
  )


def _make_network(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec, prediction_heads: heads.Heads
) -> core_lib.RecurrentNetwork:
  """Makes the user's own network, or one of torso, core and these heads."""
  requirements.check(config, spec)
  if config.module:
    return own.make_network(config, spec)
  network = torso_core_heads.TorsoCoreHeads(
    _make_torso(config, spec.observation),
    _CORES[config.core](config),
    prediction_heads,
    action_spec=spec.action,
    previous_action_input=config.previous_action_input,
    previous_reward_input=config.previous_reward_input,
    previous_reward_bound=config.previous_reward_bound,
  )
  if config.frame_stack == 1:
    return network
  return frame_stack.FrameStack(network, config.frame_stack, spec.observation)


def _make_torso(config: config_lib.NetworkConfig, observation_spec: types.Nest) -> torsos.Torso:
  if ':' in config.torso:
    return own.make_torso(config)
  divisors = byte_scale.divisors(config.byte_scale, observation_spec)
  make = _TORSOS[requirements.resolved_torso(config.torso, observation_spec)]
  if config.frame_stack > 1:
    # Stacked images have another shape than specified, so their values are taken as numbers.
    torso = make(config, None, [byte_scale.largest(divisors[0])])
  else:
    torso = make(config, observation_spec, divisors)
  return torsos.of_packed_planes(torso, _num_packed_planes(observation_spec))


def _image_torso(
  make: Callable[..., torsos.Torso],
  config: config_lib.NetworkConfig,
  divisors: Sequence[byte_scale.Divisor],
) -> torsos.Torso:
  """Makes a convolutional torso. divisors: the first is the image's."""
  # The gain compensates for the half of the outputs that each layer's ReLU sets to 0.
  is_orthogonal = config.torso_initializer == 'orthogonal'
  w_init = torsos.weight_initializer('orthogonal', math.sqrt(2.0)) if is_orthogonal else None
  dtype = precision.compute_dtype(config.precision)
  divisor = byte_scale.largest(divisors[0])
  return make(config.torso_output_size, w_init=w_init, dtype=dtype, divisor=divisor)


def _auto_torso(
  config: config_lib.NetworkConfig,
  observation_spec: types.Nest,
  divisors: Sequence[byte_scale.Divisor],
) -> torsos.Torso:
  """Makes a torso for an observation of pictures and other arrays, or of several pictures."""
  leaves = tree.flatten(observation_spec)
  pictures, rest = [], []
  for i, leaf in enumerate(leaves):
    if not requirements.is_picture(leaf):
      rest.append(i)
      continue
    with tf.name_scope(f'picture_{i}'):
      torso = _TORSOS[requirements.picture_torso(leaf)](config, None, [divisors[i]])
      torso = torsos.of_packed_planes(torso, packed_planes.num_planes(leaf))
    pictures.append(auto_torso.Picture(i, torso))
  mlp = torsos.MLP(
    config.mlp_sizes,
    style=_style(config),
    observation_spec=[leaves[i] for i in rest],
    divisors=[divisors[i] for i in rest],
  )
  return auto_torso.AutoTorso(pictures, mlp if rest else None)


def _num_packed_planes(observation_spec: types.Nest) -> int:
  leaves = tree.flatten(observation_spec)
  return packed_planes.num_planes(leaves[0]) if len(leaves) == 1 else 0


def _create_and_check(
  network: core_lib.RecurrentNetwork,
  config: config_lib.NetworkConfig,
  spec: types.EnvironmentSpec,
  needed: Any,
) -> None:
  """Creates the variables, and checks the form of the prediction.

  needed: the record that the agent needs, with shapes `(1, ...)` in place of tensors. The error for
  a user's module that predicts something else is raised here, and not deep in a loss.
  """
  prediction, _ = network(zero_inputs(spec, 1), network.initial_state(1))
  source = config.module or 'the network'
  kind, fields = type(needed).__name__, needed._fields
  if not isinstance(prediction, type(needed)):
    raise types.UserError(
      f'{source} returned {type(prediction).__name__}; this agent needs '
      f'seed_acme.types.{kind}({", ".join(fields)})'
    )
  found = tuple(tuple(x.shape) for x in prediction)
  if found != tuple(needed):
    raise types.UserError(
      f'{source} returned {" and ".join(fields)} of shapes {found} for one row; '
      f'{tuple(needed)} is needed for these actions'
    )
  check_names(network.variables)


def check_names(variables: Sequence[tf.Variable]) -> None:
  """Raises `types.UserError` if two variables of a network have the same name."""
  counts = collections.Counter(v.name for v in variables)
  repeated = [name for name, count in counts.items() if count > 1]
  if repeated:
    raise types.UserError(
      f'variables {repeated} share a name, and checkpoints find variables by name: give the '
      'modules different names'
    )
