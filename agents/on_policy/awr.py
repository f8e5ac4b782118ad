"""Advantage-weighted regression (Peng et al. 2019, arXiv 1910.00177), and its two limits.

The policy imitates the actions that were played, better ones with a greater weight. The ratio pi/mu
is not used.

  the paper, algorithm 1     here
  beta                       `agent.awr_beta`
  omega_max                  `agent.awr_max_weight`
  R - V(s), R of TD(lambda)  GAE, which is the same: the lambda-return less V
  mean over the buffer D     mean over the steps of a minibatch

For beta -> 0 with omega_max = 1 only actions with A > 0 are imitated (`repeat_positive`), for
beta -> infinity all of them alike (`behaviour_cloning`).
"""

from __future__ import annotations

import math

import tensorflow as tf

from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib


def policy_loss(
  played: algorithm.Played, *, awr_beta: float, awr_max_weight: float
) -> algorithm.PolicyLoss:
  """L = -mean( min(omega_max, exp(A / beta)) log pi(a|x) ), the paper's update of the policy."""
  exponents = tf.minimum(played.advantages / awr_beta, math.log(awr_max_weight))
  return _imitation(played, tf.exp(exponents))


def repeat_positive(played: algorithm.Played) -> algorithm.PolicyLoss:
  """L = -mean( 1[A > 0] log pi(a|x) )."""
  return _imitation(played, tf.cast(played.advantages > 0, tf.float32))


def behaviour_cloning(played: algorithm.Played) -> algorithm.PolicyLoss:
  """L = -mean( log pi(a|x) )."""
  return _imitation(played, tf.ones_like(played.advantages))


def _imitation(played: algorithm.Played, weights: tf.Tensor) -> algorithm.PolicyLoss:
  weights = tf.stop_gradient(weights)
  return algorithm.PolicyLoss(-transitions_lib.masked_mean(weights * played.log_prob, played.mask))
