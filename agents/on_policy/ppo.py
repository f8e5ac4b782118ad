"""Proximal policy optimisation with a clipped ratio (Schulman et al. 2017, arXiv 1707.06347).

Several passes over one batch (`agent.num_epochs`, algorithm 1) improve the policy until its ratio
to the behaviour leaves [1 - epsilon, 1 + epsilon]. Beyond that, a step that would move it further
in the profitable direction has no gradient.

  the paper                         here
  r_t(theta), eq. 6                 exp(`Played.log_ratio`)
  A_t, eq. 11                       GAE with `agent.lambda_`: `advantages.gae`
  epsilon, eq. 7                    `agent.ppo_epsilon`
  (V(x_t) - V_t^targ)^2, eq. 9      twice `loss.value_loss`, which halves the square
  c_1, c_2, eq. 9                   half of `agent.value_cost`, `agent.entropy.weight`
  advantages as they are            to mean 0 and deviation 1 within a minibatch, as is usual:
                                    `agent.normalize_advantages`, `advantages.with_preprocessed`

The original SEED RL clips at 1/(1 + epsilon) from below (`agent.ppo_lower_bound=reciprocal`). The
keyword arguments below are fields of the configuration, which `resolve` binds by their names.
"""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib


def policy_loss(
  played: algorithm.Played, *, ppo_epsilon: float, ppo_lower_bound: str
) -> algorithm.PolicyLoss:
  """Eq. 7, negated, with r the ratio pi/mu:

  L = -mean( min( r A, clip(r, 1 - epsilon, 1 + epsilon) A ) )
  """
  bounds = algorithm.ratio_bounds(ppo_epsilon=ppo_epsilon, ppo_lower_bound=ppo_lower_bound)
  ratio, advantages = vtrace_lib.importance_ratios(played.log_ratio), played.advantages
  gain = tf.minimum(ratio * advantages, tf.clip_by_value(ratio, *bounds) * advantages)
  return algorithm.PolicyLoss(-transitions_lib.masked_mean(gain, played.mask))
