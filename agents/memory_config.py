"""Configuration shared by all agents that learn from a replay memory."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import conditions

WITH_PRIORITIES = conditions.only_with('replay', 'prioritized')


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryAgentConfig(config_lib.AgentConfig):
  """Settings of every agent that learns from a replay memory.

  replay: how unrolls are drawn; `uniform` ignores the two exponents.
  replay_capacity: unrolls that the memory holds; when it is full, the oldest are removed first.
  replay_min_size: unrolls that must be in the memory before the first update.
  priority_exponent: alpha of P(i) = p_i^alpha / sum_j p_j^alpha.
  importance_exponent: beta of w_i = (N P(i))^-beta / max w.
  """

  replay: Literal['prioritized', 'uniform']
  replay_capacity: Annotated[int, bounds.at_least(1)]
  replay_min_size: Annotated[int, bounds.at_least(1)]
  priority_exponent: Annotated[float, bounds.at_least(0), WITH_PRIORITIES]
  importance_exponent: Annotated[float, bounds.at_least(0), WITH_PRIORITIES]

  def samples_per_insert(self) -> float:
    """Returns how many unrolls are sampled for every unroll inserted. Reverb's rate limiter holds
    this ratio by blocking the actors or the learner, whichever is too far ahead.
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
  """Settings of an agent whose sampling rate is given in unrolls.

  replay_ratio: unrolls sampled for every unroll inserted. What others call so, gradient steps per
    agent step, is `replay_ratio / (batch_size * unroll_length)`.
  """

  replay_ratio: Annotated[float, bounds.above(0)]

  def samples_per_insert(self) -> float:
    """See the base class."""
    return self.replay_ratio
