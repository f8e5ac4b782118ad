"""V-trace, the off-policy actor-critic of IMPALA (Espeholt et al. 2018, arXiv 1802.01561).

The actors play by a policy mu that is some updates older than the learner's policy pi. V-trace
corrects for that twice: the value learns a target that is estimated for pi, and the policy
gradient weighs a step by how much likelier pi makes its action. Both bound the ratio pi/mu from
above, because the variance of products of unbounded ratios is unbounded, too.

  the paper                             here
  r_s + gamma V(x_{s+1})                rewards and discounts of `advantages.steps`; the discount of
                                        a step is gamma, or 0 where the episode terminates
  v_s, section 4.1, eq. 1               `Estimates.targets`, computed by `ops.vtrace`
  rho_bar, c_bar                        `agent.rho_clip`, `agent.c_clip`
  lambda, remark 2                      `agent.lambda_`: c_s = lambda min(c_bar, pi/mu)
  section 4.2, of each step s, times its weight in the sum of losses:
    rho_s log pi(a_s|x_s)               `policy_loss`, weight 1; rho_bar is here
                                        `agent.policy_rho_clip`
      (r_s + gamma v_{s+1} - V(x_s))    `Estimates.advantages`
    1/2 (v_s - V(x_s))^2                `loss.value_loss`, weight `agent.value_cost`
    sum_a pi(a|x_s) log pi(a|x_s)       `penalties.quantities`, weight `agent.entropy.weight`

The paper sums these losses over the steps of a batch. Here each is the mean over the steps that
are not masked, so that padding and ends of episodes do not change the size of a gradient. Of N
steps the gradient is the paper's divided by N. The costs relative to each other and, with Adam and
RMSProp, the learning rate stay the paper's. Only settings that are compared with the size of a
gradient change: divide a bound of its norm and Adam's epsilon by N, and the epsilon of RMSProp by
N^2, because it is inside the square root.

`presets.vtrace` has the numbers. It learns from a batch in one gradient step, and computes the
targets at the weights that this step is taken from, inside the loss.
"""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib


def estimate(
  trace: algorithm.Trace, *, lambda_: float, rho_clip: float, c_clip: float, advantage_form: str
) -> algorithm.Estimates:
  """Returns v_s (eq. 1) and advantages, to which the policy loss applies the importance weights.

  advantage_form: `paper` is r_s + gamma v_{s+1} - V(x_s), whatever lambda is; `gae` multiplies the
  correction v_{s+1} - V(x_{s+1}) by lambda, as GAE does.
  """
  rewards, discounts, mask = trace.steps
  estimates = vtrace_lib.vtrace(
    trace.values,
    rewards,
    discounts,
    trace.log_rhos,
    mask,
    lambda_=lambda_,
    rho_clip=rho_clip,
    c_clip=c_clip,
    policy_rho_clip=None,
    advantage_lambda=1.0 if advantage_form == 'paper' else lambda_,
  )
  return algorithm.Estimates(*estimates)


def policy_loss(played: algorithm.Played, *, policy_rho_clip: float) -> algorithm.PolicyLoss:
  """Section 4.2, whose gradient is rho_s grad log pi(a_s|x_s) A_s:

  L = -mean( sg( min(rho_bar, pi/mu) A ) log pi(a|x) )
  """
  ratios = vtrace_lib.truncated_ratios(played.log_ratio, policy_rho_clip)
  weights = tf.stop_gradient(ratios * played.advantages)
  return algorithm.PolicyLoss(-transitions_lib.masked_mean(weights * played.log_prob, played.mask))
