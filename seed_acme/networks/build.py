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
from seed_acme.networks import actor_critic
from seed_acme.networks import cores
from seed_acme.networks import heads
from seed_acme.networks import lstm
from seed_acme.networks import torsos

_TORSOS: dict[str, Callable[[config_lib.NetworkConfig], torsos.Torso]] = {
    'mlp': lambda config: torsos.MLP(config.mlp_sizes),
    'nature_cnn': lambda config: torsos.NatureCNN(config.torso_output_size),
    'impala_resnet': lambda config: torsos.ImpalaResNet(config.torso_output_size),
}

_CORES: dict[str, Callable[[config_lib.NetworkConfig], cores.Core]] = {
    'none': lambda config: cores.FeedForward(),
    'lstm': lambda config: lstm.LSTM(config.core_size),
    'gru': lambda config: cores.GRU(config.core_size),
}


def make_actor_critic(
    config: config_lib.NetworkConfig, spec: types.EnvironmentSpec,
    num_policy_params: int) -> core_lib.RecurrentNetwork:
  """The configured network, run once on zeros so that every variable exists.

  num_policy_params: P, width of the policy head.
  """
  if config.module:
    network = load_object(config.module, 'network.module')(spec, config)
  else:
    network = actor_critic.ActorCritic(
        _make_torso(config), _lookup(_CORES, config.core, 'network.core')(config),
        heads.ActorCriticHeads(num_policy_params), action_spec=spec.action,
        previous_action_input=config.previous_action_input,
        previous_reward_input=config.previous_reward_input)
  prediction, _ = network(zero_inputs(spec, 1), network.initial_state(1))
  _check_prediction(prediction, num_policy_params, config)
  _check_names(network)
  return network


def zero_inputs(spec: types.EnvironmentSpec, batch_size: int) -> types.AgentInput:
  """FIRST rows `[batch_size, ...]` of zeros."""

  def zeros(array_spec: Any) -> tf.Tensor:
    return tf.zeros([batch_size, *array_spec.shape], tf.as_dtype(array_spec.dtype))

  return types.AgentInput(
      step_type=tf.fill([batch_size], tf.cast(types.FIRST, tf.uint8)),
      reward=tf.zeros([batch_size]),
      discount=tf.ones([batch_size]),
      previous_action=tree.map_structure(zeros, spec.action),
      observation=tree.map_structure(zeros, spec.observation))


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
        'start the program: install it or set PYTHONPATH') from error
  if not hasattr(module, name):
    known = [n for n in vars(module) if not n.startswith('_')]
    raise types.UserError(
        f"{field} ('{path}'): the module has no '{name}'{_nearest(name, known)}")
  return getattr(module, name)


def _make_torso(config: config_lib.NetworkConfig) -> torsos.Torso:
  if ':' in config.torso:
    return load_object(config.torso, 'network.torso')()
  return _lookup(_TORSOS, config.torso, 'network.torso')(config)


def _lookup(table: dict[str, Any], name: str, field: str) -> Any:
  if name not in table:
    raise types.UserError(
        f"{field} ('{name}') is not known{_nearest(name, list(table))}. Choose one of "
        f'{", ".join(table)}, or package.module:Class of your own')
  return table[name]


def _nearest(name: str, known: list[str]) -> str:
  close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
  return f'; did you mean {" or ".join(close)}?' if close else ''


def _check_prediction(
    prediction: Any, num_policy_params: int, config: config_lib.NetworkConfig) -> None:
  """A user's module that answers in another form is told so here, not deep in a loss."""
  source = config.module or 'the network'
  if not isinstance(prediction, types.ActorCriticOutput):
    raise types.UserError(
        f'{source} returned {type(prediction).__name__}; this agent needs '
        'seed_acme.types.ActorCriticOutput(policy_params, value)')
  found = (tuple(prediction.policy_params.shape), tuple(prediction.value.shape))
  if found != ((1, num_policy_params), (1,)):
    raise types.UserError(
        f'{source} returned policy_params and value of shapes {found} for one row; '
        f'{((1, num_policy_params), (1,))} is needed for these actions')


def _check_names(network: core_lib.RecurrentNetwork) -> None:
  counts = collections.Counter(v.name for v in network.variables)
  repeated = [name for name, count in counts.items() if count > 1]
  if repeated:
    raise types.UserError(
        f'variables {repeated} share a name, and checkpoints find variables by name: give the '
        'modules different names')
