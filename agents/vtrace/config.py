"""Configuration of the V-trace agent (Espeholt et al. 2018, IMPALA)."""

from __future__ import annotations

import dataclasses

from seed_acme import config as config_lib
from seed_acme import ranges
from seed_acme import types


@dataclasses.dataclass(frozen=True, kw_only=True)
class VTraceConfig(config_lib.AgentConfig):
  """Defaults are those of the original SEED RL V-trace learner unless noted.

  discount: gamma per agent step.
  lambda_: trace decay multiplied into c_t.
  rho_clip, c_clip, policy_rho_clip: truncations of the importance weights; inf = none.
  value_cost: multiplies 0.5 * mean squared error.
  entropy_cost: initial (or fixed) weight of the entropy bonus.
  target_entropy: entropy in nats to hold by adjusting the weight; None = fixed weight.
  entropy_adjustment_speed: k in weight = exp(k p), p learned.
  kl_cost: weight of the one-sample KL(behaviour || learner).
  max_abs_reward: rewards are clipped to this in the loss; 0 = off.
  """

  agent: str = 'vtrace'
  unroll_length: int = 20  # original: 100 (DMLab at 72x96); small tasks want less lag
  overlap: int = 0
  batch_size: int = 32
  optimizer: config_lib.OptimizerConfig = config_lib.OptimizerConfig()
  discount: float = 0.99
  lambda_: float = 1.0
  rho_clip: float = 1.0
  c_clip: float = 1.0
  policy_rho_clip: float = 1.0
  value_cost: float = 0.5
  entropy_cost: float = 0.00025
  target_entropy: float | None = None
  entropy_adjustment_speed: float = 10.0
  kl_cost: float = 0.0
  max_abs_reward: float = 0.0

  def check(self) -> None:
    """See the base class."""
    named = lambda *names: {f'agent.{name}': getattr(self, name) for name in names}
    ranges.check_shares(named('discount', 'lambda_'))
    ranges.check_above_zero(named('rho_clip', 'c_clip', 'policy_rho_clip'), infinite=True)
    ranges.check_above_zero(named('entropy_adjustment_speed'))
    ranges.check_at_least_zero(named('value_cost', 'entropy_cost', 'kl_cost', 'max_abs_reward'))
    if self.target_entropy is not None:
      ranges.check_finite(named('target_entropy'))
      if not self.entropy_cost:
        raise types.UserError(
          f'agent.entropy_cost ({self.entropy_cost}) must be > 0 with agent.target_entropy: it '
          'is the weight that adjustment starts from, by factors. A small one, such as 1e-5, '
          'will do'
        )
