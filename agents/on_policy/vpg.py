"""The vanilla policy gradient with a learnt baseline (Sutton et al. 2000, theorem 1).

`agent.advantage` chooses the estimator of the advantage A, GAE by default. There is no off-policy
correction, so train strictly on-policy and in one pass.
"""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib


def policy_loss(played: algorithm.Played) -> algorithm.PolicyLoss:
  """L = -mean( A log pi(a|x) )."""
  weights = tf.stop_gradient(played.advantages)
  return algorithm.PolicyLoss(-transitions_lib.masked_mean(weights * played.log_prob, played.mask))
