"""What R2D2's learner does beside gradients: it renews the target network."""

from __future__ import annotations

import tensorflow as tf

from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import network as network_lib


def after_update(
  network: network_lib.OnlineAndTarget, num_updates: tf.Tensor, config: r2d2_config.R2D2Config
) -> None:
  """Copies the network into its target after every `target_period`-th update.

  Without `tf.cond`, which never returns where graph functions run in the calling thread
  (`graph_function.in_calling_thread`) and TensorFlow has one inter-op thread.
  """
  is_due = tf.equal(num_updates % config.target_period, 0)
  for target, online in zip(network.target.variables, network.online.variables):
    target.assign(tf.where(is_due, online, target))
