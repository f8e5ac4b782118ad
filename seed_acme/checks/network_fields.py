"""A check for fields of the network that an agent does not use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seed_acme import types


def check_unused(network: Any, agent: Any, fields: Sequence[str]) -> None:
  """Raises `types.UserError` if one of `fields` is set, though it has no effect on this agent.

  network: a `config.NetworkConfig`. agent: a `config.AgentConfig`.
  """
  default = type(network)()
  for field in fields:
    value, unset = getattr(network, field), getattr(default, field)
    if value != unset:
      raise types.UserError(
        f'network.{field} ({value}) has no effect on agent {agent.agent}: leave it {unset}'
      )
