"""From configuration and specification to a network whose variables all exist."""

from __future__ import annotations

import collections
from collections.abc import Callable
import difflib
import importlib
from typing import Any

import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import core as core_lib
from seed_acme import types
from seed_acme.networks import cores
from seed_acme.networks import frame_stack
from seed_acme.networks import heads
from seed_acme.networks import lstm
from seed_acme.networks import separate
from seed_acme.networks import torso_core_heads
from seed_acme.networks import torsos

_TORSOS: dict[str, Callable[[config_lib.NetworkConfig], torsos.Torso]] = {
  'mlp': lambda config: torsos.MLP(config.mlp_sizes, style=_style(config)),
  'nature_cnn': lambda config: torsos.NatureCNN(config.torso_output_size),
  'impala_shallow': lambda config: torsos.ImpalaShallow(config.torso_output_size),
  'impala_resnet': lambda config: torsos.ImpalaResNet(config.torso_output_size),
}

_CORES: dict[str, Callable[[config_lib.NetworkConfig], cores.Core]] = {
  'none': lambda config: cores.FeedForward(),
  'lstm': lambda config: lstm.LSTM(config.core_size),
  'gru': lambda config: cores.GRU(config.core_size),
}


def make_actor_critic(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec, num_policy_params: int
) -> core_lib.RecurrentNetwork:
  """The configured network, run once on zeros so that every variable exists.

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
  return network


def make_q_network(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec
) -> core_lib.RecurrentNetwork:
  """As `make_actor_critic`, but predicts `types.QOutput`, one Q-value for every action."""
  num_actions = types.num_discrete_actions(spec)
  network = _make_network(
    config, spec, heads.DuelingHeads(num_actions, config.head_sizes, _style(config))
  )
  _create_and_check(network, config, spec, types.QOutput((1, num_actions)))
  return network


def _style(config: config_lib.NetworkConfig) -> torsos.DenseStyle:
  return torsos.DenseStyle(config.activation, config.initializer, config.hidden_gain)


def zero_inputs(spec: types.EnvironmentSpec, batch_size: int) -> types.AgentInput:
  """FIRST rows `[batch_size, ...]` of zeros."""

  def zeros(array_spec: Any) -> tf.Tensor:
    return tf.zeros([batch_size, *array_spec.shape], tf.as_dtype(array_spec.dtype))

  return types.AgentInput(
    step_type=tf.fill([batch_size], tf.cast(types.FIRST, tf.uint8)),
    reward=tf.zeros([batch_size]),
    discount=tf.ones([batch_size]),
    previous_action=tree.map_structure(zeros, spec.action),
    observation=tree.map_structure(zeros, spec.observation),
  )


def load_object(path: str, field: str) -> Any:
  """What `package.module:Name` names; `field` is the setting it came from."""
  module_name, _, name = path.partition(':')
  if not module_name or not name:
    raise types.UserError(f"{field} ('{path}') must be written package.module:Name")
  try:
    module = importlib.import_module(module_name)
  except ModuleNotFoundError as error:
    # A missing import inside the user's module is a different mistake: name what is missing.
    raise types.UserError(
      f"{field} ('{path}') cannot be imported: {error}. It must be importable where you "
      'start the program: install it or set PYTHONPATH'
    ) from error
  if not hasattr(module, name):
    known = [n for n in vars(module) if not n.startswith('_')]
    raise types.UserError(f"{field} ('{path}'): the module has no '{name}'{_nearest(name, known)}")
  return getattr(module, name)


def _make_network(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec, prediction_heads: heads.Heads
) -> core_lib.RecurrentNetwork:
  """The user's own network, or torso, core and these heads."""
  if config.module:
    return load_object(config.module, 'network.module')(spec, config)
  network = torso_core_heads.TorsoCoreHeads(
    _make_torso(config),
    _lookup(_CORES, config.core, 'network.core')(config),
    prediction_heads,
    action_spec=spec.action,
    previous_action_input=config.previous_action_input,
    previous_reward_input=config.previous_reward_input,
    previous_reward_bound=config.previous_reward_bound,
  )
  if config.frame_stack == 1:
    return network
  return frame_stack.FrameStack(network, config.frame_stack, spec.observation)


def _make_torso(config: config_lib.NetworkConfig) -> torsos.Torso:
  if ':' in config.torso:
    return load_object(config.torso, 'network.torso')()
  return _lookup(_TORSOS, config.torso, 'network.torso')(config)


def _lookup(table: dict[str, Any], name: str, field: str) -> Any:
  if name not in table:
    raise types.UserError(
      f"{field} ('{name}') is not known{_nearest(name, list(table))}. Choose one of "
      f'{", ".join(table)}, or package.module:Class of your own'
    )
  return table[name]


def _nearest(name: str, known: list[str]) -> str:
  close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
  return f'; did you mean {" or ".join(close)}?' if close else ''


def _create_and_check(
  network: core_lib.RecurrentNetwork,
  config: config_lib.NetworkConfig,
  spec: types.EnvironmentSpec,
  needed: Any,
) -> None:
  """needed: the record that the agent needs, with shapes `(1, ...)` in place of tensors.

  A user's module that answers in another form is told so here, not deep in a loss.
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
  _check_names(network)


def _check_names(network: core_lib.RecurrentNetwork) -> None:
  counts = collections.Counter(v.name for v in network.variables)
  repeated = [name for name, count in counts.items() if count > 1]
  if repeated:
    raise types.UserError(
      f'variables {repeated} share a name, and checkpoints find variables by name: give the '
      'modules different names'
    )
