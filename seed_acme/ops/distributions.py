"""Action distributions as functions of their parameters.

A distribution holds no tensors: it maps `params`, what the policy head puts out, to numbers.
Sampling takes its random numbers as an argument, so that what one row does depends on no
other row of the batch.
"""
from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf

from seed_acme import types
from seed_acme.ops import shapes

# The largest uniform used. One step of float32 further and uniform * total could round up to
# total, past every action.
_MAX_UNIFORM = 1.0 - 2.0 ** -22


class Distribution(Protocol):
  """`params` are `[..., P]` and float32; results drop the last axis."""

  def num_params(self, spec: types.EnvironmentSpec) -> int:
    """P, for the actions of this environment."""

  def num_uniforms(self, spec: types.EnvironmentSpec) -> int:
    """U, the random numbers that one sample takes."""

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """`[...]` log p(a), in nats."""

  def entropy(self, params: Any) -> tf.Tensor:
    """`[...]` H(p), in nats."""

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """`[...]` KL(p || other), in nats."""

  def mode(self, params: Any) -> tf.Tensor:
    """The likeliest action of each row."""

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """One action a row from uniforms `[..., U]` in [0, 1]."""


class Categorical:
  """One of P actions; params are unnormalised log-probabilities (logits)."""

  def num_params(self, spec: types.EnvironmentSpec) -> int:
    """P, the number of actions."""
    return types.num_discrete_actions(spec)

  def num_uniforms(self, spec: types.EnvironmentSpec) -> int:
    """One: the inverse of the distribution function takes a single number."""
    types.num_discrete_actions(spec)
    return 1

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., P]`, actions `[...]` integers in [0, P) -> `[...]`.

      log p(a) = z_a - log sum_k exp z_k
    """
    params, actions = shapes.as_float(params), tf.cast(actions, tf.int32)
    if not params.shape[:-1].is_compatible_with(actions.shape):
      raise ValueError(
          f'actions have shape {actions.shape}, but params {params.shape} need '
          f'{params.shape[:-1]}')
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=params)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]`,  H = -sum_k p_k log p_k."""
    log_probs = tf.nn.log_softmax(shapes.as_float(params))
    return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., P]` -> `[...]`,  KL = sum_k p_k (log p_k - log q_k)."""
    params, other_params = shapes.as_float(params), shapes.as_float(other_params)
    if not params.shape.is_compatible_with(other_params.shape):
      raise ValueError(
          f'params have shape {params.shape}, but other_params have {other_params.shape}')
    log_p, log_q = tf.nn.log_softmax(params), tf.nn.log_softmax(other_params)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]` int32; the first of equals."""
    return tf.argmax(shapes.as_float(params), axis=-1, output_type=tf.int32)

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., P]`, uniforms `[..., 1]` -> `[...]` int32, by the inverse CDF.

      a = min { k : F_k > u F_{P-1} },  F_k = sum_{j <= k} p_j

    Whatever u is, 0 and 1 included, no action of probability 0 is taken: F rises strictly
    at `a`, and u is capped so that u F_{P-1} stays below F_{P-1}, which rounding leaves
    close to 1 but not at 1.
    """
    params, uniforms = shapes.as_float(params), shapes.as_float(uniforms)
    wanted = params.shape[:-1].concatenate([1])
    if not wanted.is_compatible_with(uniforms.shape):
      raise ValueError(
          f'uniforms have shape {uniforms.shape}, but params {params.shape} need {wanted}')
    cumulative = tf.cumsum(tf.nn.softmax(params), axis=-1)
    thresholds = tf.minimum(uniforms, _MAX_UNIFORM) * cumulative[..., -1:]
    return tf.reduce_sum(tf.cast(cumulative <= thresholds, tf.int32), axis=-1)


CATEGORICAL = Categorical()
