"""The loss and the priorities of R2D2 (Kapturowski et al. 2019, section 2.3)."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from seed_acme import core
from seed_acme import types
from seed_acme.agents import learnt_rows as rows_lib
from seed_acme.agents import priorities as priorities_lib
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.ops import nstep
from seed_acme.ops import transitions as transitions_lib


class Networks(NamedTuple):
  """online: acts and is trained. target: bootstraps, and changes only by copying online."""

  online: core.RecurrentNetwork
  target: core.RecurrentNetwork


def loss(
  networks: Networks, sample: types.Sample, config: r2d2_config.R2D2Config
) -> types.LossOutput:
  """Scalar loss of B unrolls of `overlap + T + 1` rows, and their new priorities `[B]`.

    L = 1/B sum_b w_b 1/2 sum_t m_t e_t^2,  e_t = h(G^n_t) - Q(x_t, a_t)
    w_b = P(b)^-beta / max_b P(b)^-beta

  The sum over time is the original's; a mean would change how the gradient norm is clipped. The
  number of items, which the paper multiplies P by, cancels in the quotient. Uniform replay has
  w_b = 1.
  """
  inputs, outputs = rows_lib.learnt_rows(sample.unroll, config)
  q_values = _q_values(networks.online, inputs, sample.unroll, config)
  target_q_values = tf.stop_gradient(_q_values(networks.target, inputs, sample.unroll, config))
  errors, mask = td_errors(q_values, target_q_values, inputs, outputs.action, config)
  weights = priorities_lib.importance_weights(sample.probabilities, config)
  losses = weights * 0.5 * tf.reduce_sum(tf.square(errors), axis=0)
  total = tf.reduce_mean(losses)
  priorities = priorities_lib.mixed_priorities(errors, mask, max_share=config.max_priority_share)
  mean = transitions_lib.masked_mean
  metrics = {
    'q/mean': mean(tf.reduce_max(q_values, axis=-1)[:-1], mask),
    'q/target_mean': mean(tf.reduce_max(target_q_values, axis=-1)[:-1], mask),
    'q/td_error_abs': mean(tf.abs(errors), mask),
    'replay/priority_mean': tf.reduce_mean(priorities),
    'replay/priority_max': tf.reduce_max(priorities),
    'replay/importance_weight_mean': tf.reduce_mean(weights),
  }
  return types.LossOutput(
    losses={'q': total},
    metrics={name: tf.stop_gradient(x) for name, x in metrics.items()},
    priorities=tf.stop_gradient(priorities),
  )


def _q_values(
  network: core.RecurrentNetwork,
  inputs: types.AgentInput,
  unroll: types.Unroll,
  config: r2d2_config.R2D2Config,
) -> tf.Tensor:
  """Returns Q values `[T+1, B, A]` of the learnt rows, after burn-in on the rows before them."""
  state = rows_lib.entering_state(network, unroll, config)
  prediction, _ = network.unroll(inputs, state)
  return prediction.q_values


def td_errors(
  q_values: tf.Tensor,
  target_q_values: tf.Tensor,
  inputs: types.AgentInput,
  actions: tf.Tensor,
  config: r2d2_config.R2D2Config,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Errors e_t, 0 where masked, and the mask; both `[T, B]`.

  q_values, target_q_values: `[T+1, B, A]` of the online and the target network, rescaled.
  inputs, actions: the same rows; action t is the one that was played.

    a*_t = argmax_a Q(x_t, a);  e_t = h(n-step return over h^-1(Q_target(x_t, a*_t))) - Q(x_t, a_t)
  """
  rewards, discounts, mask = transitions_lib.transitions(inputs, gamma=config.discount)
  rewards = transitions_lib.clip_rewards(rewards, config.max_abs_reward)
  greedy = tf.argmax(q_values, axis=-1, output_type=tf.int32)
  targets = nstep.nstep_q_targets(
    tf.gather(target_q_values, greedy, batch_dims=2),
    rewards,
    discounts,
    mask,
    n=config.num_bootstrap_steps,
    epsilon=config.rescaling_epsilon,
  )
  played = tf.gather(q_values[:-1], tf.cast(actions[:-1], tf.int32), batch_dims=2)
  return transitions_lib.select(mask, targets - played), mask


def initial_priorities(unrolls: types.Unroll, config: r2d2_config.R2D2Config) -> tf.Tensor:
  """Returns priorities `[K]` of unrolls `[K, L, ...]`, from the Q values computed when acting.

  These Q values stand in for both networks: Q(x, argmax Q) bootstraps, whatever action was played.
  """
  time_major = tf.nest.map_structure(
    lambda x: tf.transpose(x, (1, 0, *range(2, x.shape.rank))), unrolls._replace(initial_state=())
  )
  inputs, outputs = rows_lib.learnt_rows(time_major, config)
  q_values = outputs.prediction.q_values
  errors, mask = td_errors(q_values, q_values, inputs, outputs.action, config)
  return priorities_lib.mixed_priorities(errors, mask, max_share=config.max_priority_share)
