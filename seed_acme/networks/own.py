"""The user's own torso or whole network, found by its dotted path."""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import core as core_lib
from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import signatures
from seed_acme.networks import torsos

_METHODS = ('initial_state', 'unroll', '__call__')  # of a whole network


def make_torso(config: config_lib.NetworkConfig) -> torsos.Torso:
  """Makes the torso that `network.torso` names. Raises `types.UserError` if it is no class, or if
  `network.torso_settings` are not what it takes."""
  make = dotted_path.load_object(config.torso, 'network.torso')
  if not callable(make):
    raise types.UserError(f'network.torso ({config.torso}) is no class, but {make!r:.60}')
  try:
    signatures.of(make).bind(**config.torso_settings)
  except TypeError as error:
    raise types.UserError(
      f'network.torso_settings ({config.torso_settings}) do not fit {config.torso}'
      f'{signatures.of(make)}: {error}'
    ) from error
  except ValueError as error:  # it has no signature
    raise types.UserError(f'network.torso ({config.torso}) cannot be called: {error}') from error
  return make(**config.torso_settings)


def make_network(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec
) -> core_lib.RecurrentNetwork:
  """Makes the network that `network.module` names. Raises `types.UserError` if that takes other
  arguments, or returns something else."""
  make, name = dotted_path.load_object(config.module, 'network.module'), config.module
  if not callable(make):
    raise types.UserError(f'network.module ({name}) is no function, but {make!r:.60}')
  try:
    signatures.of(make).bind(spec, config)
  except (TypeError, ValueError) as error:
    raise types.UserError(
      f'network.module ({name}) cannot be called as factory(spec, network_config): {error}'
    ) from error
  network = make(spec, config)
  lacking = [method for method in _METHODS if not callable(getattr(network, method, None))]
  if lacking:
    raise types.UserError(
      f'network.module ({name}) returned {type(network).__name__}, which has no {lacking[0]}(): '
      'return a seed_acme.core.RecurrentNetwork'
    )
  return network
