"""Checks that a configuration must pass before anything is started."""

from __future__ import annotations

from collections.abc import Collection

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import conditions
from seed_acme.checks import field_types

_WITH_LSTM = ('lstm', 'impala_resnet_instruction')


def validate(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for values that cannot work, naming value and fix."""
  if not isinstance(config, config_lib.ExperimentConfig):
    raise types.UserError(
      f'config ({field_types.shown(config)}) is of type {type(config).__name__}; expected '
      'ExperimentConfig, as seed_acme.configs.registry.load(NAME) returns it'
    )
  field_types.check(config)
  bounds.check(config)
  layout_lib.Layout.of(config)
  if config.actor.python and config.transport.kind == 'courier':
    raise types.UserError(
      f'actor.python ({config.actor.python}) with transport.kind courier: courier is installed '
      "in the learner's Python only; set transport.kind auto or grpc"
    )
  if config.record_every and not config.num_evaluation_environments:
    raise types.UserError(
      f'record_every ({config.record_every}) films evaluation episodes, but '
      'num_evaluation_environments is 0: set num_evaluation_environments to 1 or more'
    )
  _check_network(config)
  config.agent.check(config)


def idle_fields(config: config_lib.ExperimentConfig, names: Collection[str]) -> dict[str, str]:
  """Returns those of the fields, by dotted name, that have no effect on learning, with the reason.

  Where a network or an agent of the user's own reads the fields of ours, only its author knows; the
  author of an agent's configuration has declared it there.
  """
  is_ours = type(config.agent).__module__.startswith('seed_acme.')
  reads_ours = ':' in config.agent.agent and is_ours
  own = ('network.',) * bool(config.network.module) + ('agent.',) * reads_ours
  return conditions.has_no_effect(config, [name for name in names if not name.startswith(own)])


def _check_network(config: config_lib.ExperimentConfig) -> None:
  for field in ('core', 'torso'):
    value = getattr(config.network, field)
    if config.learner.xla and value in _WITH_LSTM:
      raise types.UserError(
        f"learner.xla (True) cannot compile network.{field} '{value}', which has an LSTM, whose "
        'gradient is one fused operation: set it to False'
      )
