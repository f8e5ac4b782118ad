"""V-MPO (Song et al. 2020, arXiv 1909.12238): imitates the better half, weighted by a softmax.

  the paper, section 4                  here
  D~, the half with greater advantages  `advantages.better_half`
  psi, eq. 4                            `psi` below
  eta, epsilon_eta, eq. 3               `Played.temperature`, `agent.vmpo_epsilon`
  alpha, epsilon_alpha                  `agent.kl_from_behaviour`, a penalty with a threshold
  A                                     GAE by default; the paper has n-step returns minus V

The paper gives the mean and the variance of a Gaussian a KL bound each; the penalty here bounds the
KL of the whole distribution.
"""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib


def policy_loss(
  played: algorithm.Played, *, vmpo_epsilon: float, vmpo_form: str
) -> algorithm.PolicyLoss:
  """Eq. 3 and 4. D is the better half of the batch.

    psi_i = exp(A_i / eta) / sum_{j in D} exp(A_j / eta),  L = -sum_{i in D} psi_i log pi_i
    L_eta = eta epsilon + eta log( 1/|D| sum_{i in D} exp(A_i / eta) )

  The original SEED RL counts the worse half as exp(0) in the sum of psi, takes a mean over
  the batch where there is a sum here, and lets L_eta act as eta sg(epsilon - log mean exp).
  """
  log_prob, _, advantages, mask, temperature = played
  assert temperature is not None
  keep = advantages_lib.better_half(advantages, mask)
  count = tf.maximum(tf.reduce_sum(tf.cast(keep, tf.float32)), 1.0)
  scaled = tf.where(keep, advantages / temperature, tf.fill(tf.shape(advantages), -1e30))
  log_sum = tf.reduce_logsumexp(scaled)
  log_mean = log_sum - tf.math.log(count)
  if vmpo_form == 'original':
    dropped = tf.reduce_sum(tf.cast(tf.logical_and(mask, tf.logical_not(keep)), tf.float32))
    log_total = tf.reduce_logsumexp(tf.stack([log_sum, tf.math.log(dropped + 1e-30)]))
    psi = tf.stop_gradient(tf.exp(scaled - log_total))
    loss = -transitions_lib.masked_mean(psi * log_prob, mask)
    adjustment = temperature * tf.stop_gradient(vmpo_epsilon - log_mean)
  else:
    psi = tf.stop_gradient(tf.exp(scaled - log_sum))
    loss = -tf.reduce_sum(psi * log_prob)
    adjustment = temperature * (vmpo_epsilon + log_mean)
  is_empty = tf.logical_not(tf.reduce_any(keep))
  return algorithm.PolicyLoss(tf.where(is_empty, 0.0, loss), tf.where(is_empty, 0.0, adjustment))
