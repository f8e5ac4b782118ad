"""Configuration that all agents share which learn from a replay memory."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryAgentConfig(config_lib.AgentConfig):
  """What every agent that learns from a replay memory adds.

  replay: how unrolls are drawn; `uniform` ignores the two exponents.
  replay_capacity: unrolls kept; the oldest go first.
  replay_min_size: unrolls there must be before the first update.
  priority_exponent: alpha of P(i) = p_i^alpha / sum_j p_j^alpha.
  importance_exponent: beta of w_i = (N P(i))^-beta / max w.
  """

  replay: Literal['prioritized', 'uniform']
  replay_capacity: Annotated[int, bounds.at_least(1)]
  replay_min_size: Annotated[int, bounds.at_least(1)]
  priority_exponent: Annotated[float, bounds.at_least(0)]
  importance_exponent: Annotated[float, bounds.at_least(0)]

  def samples_per_insert(self) -> float:
    """Unrolls sampled for every unroll inserted, held by Reverb's rate limiter: whoever is too far
    ahead, actors or learner, waits.
    """
    raise NotImplementedError(f'{type(self).__name__} does not say samples_per_insert')

  def replay_spec(self) -> core.ReplaySpec:
    """See the base class."""
    return core.ReplaySpec(
      self.replay,
      self.replay_capacity,
      self.replay_min_size,
      self.samples_per_insert(),
      self.priority_exponent,
    )

  def check(self, experiment: config_lib.ExperimentConfig) -> None:
    """See the base class."""
    del experiment
    if self.replay_min_size > self.replay_capacity:
      raise types.UserError(
        f'agent.replay_min_size ({self.replay_min_size}) exceeds agent.replay_capacity '
        f'({self.replay_capacity}); the learner would wait for ever: lower it'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayAgentConfig(MemoryAgentConfig):
  """One whose use of the memory is said in unrolls.

  replay_ratio: unrolls sampled for every unroll inserted.
  """

  replay_ratio: Annotated[float, bounds.above(0)]

  def samples_per_insert(self) -> float:
    """See the base class."""
    return self.replay_ratio
