"""The vanilla policy gradient with a learnt baseline (Sutton et al. 2000, theorem 1).

The advantage A is that of `agent.advantage`, GAE by default. Nothing corrects for a behaviour that
is not the policy, so learn strictly on-policy and in one pass.
"""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib


def policy_loss(played: algorithm.Played) -> algorithm.PolicyLoss:
  """L = -mean( A log pi(a|x) )."""
  weights = tf.stop_gradient(played.advantages)
  return algorithm.PolicyLoss(-transitions_lib.masked_mean(weights * played.log_prob, played.mask))
