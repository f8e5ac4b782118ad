"""Prioritized replay (Schaul et al. 2016; of sequences, Kapturowski et al. 2019)."""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents import memory_config
from seed_acme.ops import transitions as transitions_lib


def importance_weights(
  probabilities: tf.Tensor, config: memory_config.MemoryAgentConfig
) -> tf.Tensor:
  """`[B]` float32 in (0, 1] (Schaul et al. 2016, section 3.4): P^-beta over its maximum.

  probabilities: `[B]` with which each item was drawn. Those of uniform replay differ, too, while
  the memory grows, but all of its weights are 1.
  """
  exponent = 0.0 if config.replay == 'uniform' else config.importance_exponent
  weights = tf.pow(tf.cast(probabilities, tf.float64), -exponent)
  return tf.cast(weights / tf.reduce_max(weights), tf.float32)


def mixed_priorities(errors: tf.Tensor, mask: tf.Tensor, *, max_share: float) -> tf.Tensor:
  """`[B]` p = eta max_t |e_t| + (1 - eta) mean_t |e_t| over unmasked t, from `[T, B]`."""
  absolute = tf.abs(transitions_lib.select(mask, errors))
  count = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
  mean = tf.reduce_sum(absolute, axis=0) / tf.maximum(count, 1.0)
  return max_share * tf.reduce_max(absolute, axis=0) + (1.0 - max_share) * mean
