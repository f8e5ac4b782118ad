"""Configuration of the R2D2 agent (Kapturowski et al. 2019, as SEED RL runs it)."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import memory_config
from seed_acme.checks import bounds
from seed_acme.checks import network_fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class R2D2Config(memory_config.ReplayAgentConfig):
  """Where SEED RL's paper (Espeholt et al. 2019, appendix A.3) and its published code differ, the
  defaults are the paper's.

  discount: gamma per agent step.
  num_bootstrap_steps: n of the n-step target.
  target_period: updates between two copies of the network into the target network.
  rescaling_epsilon: epsilon of h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x; the network predicts
    h(Q).
  max_priority_share: eta of p = eta max_t |e_t| + (1 - eta) mean_t |e_t|.
  overlap: rows of burn-in at the head of an unroll, shared with the previous one.
  epsilon_base, epsilon_exponent: environment i of N acts at random with probability
    base^(1 + exponent i / (N - 1)).
  evaluation_epsilon: probability of acting at random in evaluation environments.
  max_abs_reward: rewards are clipped to this absolute value in the loss; 0 = off.
  """

  agent: str = 'r2d2'
  unroll_length: int = 80
  overlap: int = 40
  batch_size: int = 64
  optimizer: config_lib.OptimizerConfig = config_lib.OptimizerConfig(
    learning_rate=1e-4, epsilon=1e-3, max_gradient_norm=80.0
  )
  replay: Literal['prioritized', 'uniform'] = 'prioritized'
  replay_capacity: int = 100_000
  replay_min_size: int = 5_000
  replay_ratio: float = 0.75
  priority_exponent: float = 0.9
  importance_exponent: float = 0.6
  discount: Annotated[float, bounds.SHARE] = 0.997
  num_bootstrap_steps: Annotated[int, bounds.at_least(1)] = 5
  target_period: Annotated[int, bounds.at_least(1)] = 2_500
  rescaling_epsilon: Annotated[float, bounds.at_least(0)] = 1e-3
  max_priority_share: Annotated[float, bounds.SHARE, memory_config.WITH_PRIORITIES] = 0.9
  epsilon_base: Annotated[float, bounds.SHARE] = 0.4
  epsilon_exponent: Annotated[float, bounds.at_least(0)] = 7.0
  evaluation_epsilon: Annotated[float, bounds.SHARE] = 1e-3
  max_abs_reward: Annotated[float, bounds.at_least(0)] = 0.0

  def check(self, experiment: config_lib.ExperimentConfig) -> None:
    """See the base class."""
    super().check(experiment)
    network_fields.check_unused(
      experiment.network, self, ('policy_head_gain', 'value_head_gain', 'separate_value_network')
    )

  def check_environment(self, spec: types.EnvironmentSpec) -> None:
    """See the base class."""
    types.num_discrete_actions(spec)
