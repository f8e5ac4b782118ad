"""Interface of action distributions, as functions of their parameters, and the categorical one.

A distribution holds no tensors: it maps `params`, the output of the policy head, to numbers.
Sampling takes its random numbers as an argument, so that the action of one row does not
depend on other rows of the batch. `ops.action_distributions` chooses one for an environment.

TensorFlow Probability is used only in tests, because it samples from a seed and a row's position
in its batch. Each class says what else TFP lacks. `tests/ops/tensorflow_probability_test.py` tests
these reasons, and compares log p, entropy and KL with TFP's.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import shapes

# The largest uniform used. With the next float32, uniform * total could round up to total, beyond
# all actions.
_MAX_UNIFORM = 1.0 - 2.0**-22


class Distribution(Protocol):
  """Maps `params` `[..., P]` float32 to numbers `[...]` and actions `[..., *A]`.

  A is the shape of one action, () for a single discrete one; a nest of actions is a nest of
  such arrays.

  num_params: P.
  num_uniforms: U, the random numbers that one sample needs.
  is_std: `[P]` bool, the params that a standard deviation function is applied to. A policy
    may initialise or learn them in another way than the rest.
  is_reparametrizable: whether a sample has a gradient in params (the pathwise one).
  """

  num_params: int
  num_uniforms: int
  is_std: np.ndarray
  is_reparametrizable: bool

  def log_prob(self, params: Any, actions: types.Nest) -> tf.Tensor:
    """Returns log p(a) `[...]`, in nats; for continuous actions, the log of a density."""

  def entropy(self, params: Any) -> tf.Tensor:
    """Returns H(p) `[...]`, in nats; differential, so possibly negative, for continuous actions."""

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """Returns KL(p || other) `[...]`, in nats."""

  def std(self, params: Any) -> tf.Tensor | None:
    """Returns the standard deviations `[..., K]` of the K Normal numbers that actions are made of,
    before tanh or clipping; None if there are none."""

  def mode(self, params: Any) -> types.Nest:
    """Returns the action of each row that represents p, for evaluation."""

  def sample(self, params: Any, uniforms: Any) -> types.Nest:
    """Samples one action per row from uniforms `[..., U]` in [0, 1]."""

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[types.Nest, tf.Tensor]:
    """Returns the action of `sample` for the same uniforms, and its log p(a) `[...]`, in nats.

    The gradient of log p(a) in params is the total one: if `is_reparametrizable`, it includes
    the part through the action. For the score alone, give `log_prob` a stopped action.
    """


class Categorical:
  """One of P actions; params are unnormalised log-probabilities (logits).

  A logit of -inf makes an action impossible; at least one has to be finite.

  TFP's has no quantile, so it cannot sample from a number that belongs to the row.
  """

  def __init__(self, num_actions: int):
    if num_actions < 1:
      raise ValueError(f'num_actions ({num_actions}) must be at least 1')
    self.num_params = num_actions
    self.num_uniforms = 1  # the inverse of the distribution function takes a single number
    self.is_std = np.zeros([num_actions], bool)
    self.is_reparametrizable = False

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., P]`, actions `[...]` integers in [0, P) -> `[...]`; NaN for other integers.

    log p(a) = z_a - log sum_k exp z_k
    """
    params, actions = shapes.as_float(params), tf.cast(actions, tf.int32)
    shapes.check_params(params, self.num_params)
    shapes.check_event('actions', actions, params, ())
    # In a graph, TensorFlow computes this logarithm once for entropy, KL and log p(a) of the same
    # params. The product has a cheaper gradient than an index; log p(a) may be -inf.
    is_taken = tf.one_hot(actions, self.num_params)
    log_probs = tf.math.multiply_no_nan(tf.nn.log_softmax(params), is_taken)
    is_action = tf.logical_and(actions >= 0, actions < self.num_params)
    return tf.where(is_action, tf.reduce_sum(log_probs, axis=-1), np.nan)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]`,  H = -sum_k p_k log p_k."""
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    log_probs = tf.nn.log_softmax(params)
    probs = tf.exp(log_probs)
    # 0 log 0 = 0, with a gradient of 0: logits of -inf mask actions.
    finite = tf.where(probs > 0, log_probs, tf.zeros_like(log_probs))
    return -tf.reduce_sum(probs * finite, axis=-1)

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., P]` -> `[...]`,  KL = sum_k p_k (log p_k - log q_k)."""
    params, other_params = shapes.as_float(params), shapes.as_float(other_params)
    shapes.check_params(params, self.num_params, other_params)
    log_p, log_q = tf.nn.log_softmax(params), tf.nn.log_softmax(other_params)
    probs = tf.exp(log_p)
    ratios = tf.where(probs > 0, log_p - log_q, tf.zeros_like(log_p))  # see `entropy`
    return tf.reduce_sum(probs * ratios, axis=-1)

  def std(self, params: Any) -> None:
    """Returns None: no number is Normal."""
    del params

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]` int32, the likeliest action; the first of equals."""
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    return tf.argmax(params, axis=-1, output_type=tf.int32)

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., P]`, uniforms `[..., 1]` -> `[...]` int32, by the inverse CDF.

      a = min { k : F_k > u F_{P-1} },  F_k = sum_{j <= k} p_j

    No u, 0 and 1 included, gives an action of probability 0: F rises strictly at `a`,
    and u is capped so that u F_{P-1} stays below F_{P-1}, which because of rounding is
    close to 1 but not exactly 1.
    """
    params, uniforms = shapes.as_float(params), shapes.as_float(uniforms)
    shapes.check_params(params, self.num_params)
    shapes.check_event('uniforms', uniforms, params, [1])
    cumulative = tf.cumsum(tf.nn.softmax(params), axis=-1)
    thresholds = tf.minimum(uniforms, _MAX_UNIFORM) * cumulative[..., -1:]
    return tf.reduce_sum(tf.cast(cumulative <= thresholds, tf.int32), axis=-1)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., P]`, uniforms `[..., 1]` -> action and log p(a), `[...]` each."""
    actions = self.sample(params, uniforms)
    return actions, self.log_prob(params, actions)
