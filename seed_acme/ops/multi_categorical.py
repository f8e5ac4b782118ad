"""Several independent discrete choices, each with its own number of alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from seed_acme.ops import distributions
from seed_acme.ops import shapes

# Logit where a shorter choice has no alternative; its probability is exactly 0. Not -inf, which
# times that 0 would be NaN.
_NO_LOGIT = -1e30


class MultiCategorical:
  """D independent categorical choices; params are their logits, one choice after the other.

  nvec: the number of alternatives of each choice, n_1 ... n_D; P = n_1 + ... + n_D, U = D.
  Internally all choices are padded to the longest and handled as one categorical batch.

  TFP's categoricals have no quantile, and a Blockwise of them has no mode either.
  """

  def __init__(self, nvec: Sequence[int]):
    sizes = np.asarray(nvec, np.int64)
    if sizes.ndim != 1 or sizes.size < 1 or sizes.min() < 1:
      raise ValueError(f'nvec ({nvec}) must list at least one choice, each of at least 1 action')
    self.num_params = int(sizes.sum())
    self.num_uniforms = self._num_choices = len(sizes)
    self.is_std = np.zeros([self.num_params], bool)
    self.is_reparametrizable = False
    longest = int(sizes.max())
    places = np.arange(longest)
    offsets = np.cumsum(sizes) - sizes
    self._exists = places < sizes[:, None]  # `[D, longest]`
    self._indices = offsets[:, None] + np.minimum(places, sizes[:, None] - 1)
    self._choice = distributions.Categorical(longest)

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., P]`, actions `[..., D]` integers, a_i in [0, n_i) -> `[...]`.

    log p(a) = sum_i log p_i(a_i)
    """
    params, actions = shapes.as_float(params), tf.cast(actions, tf.int32)
    shapes.check_event('actions', actions, params, [self._num_choices])
    return tf.reduce_sum(self._choice.log_prob(self._logits(params), actions), axis=-1)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]`,  H = sum_i H(p_i)."""
    return tf.reduce_sum(self._choice.entropy(self._logits(params)), axis=-1)

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., P]` -> `[...]`,  KL = sum_i KL(p_i || q_i)."""
    params, other_params = shapes.as_float(params), shapes.as_float(other_params)
    shapes.check_params(params, self.num_params, other_params)
    kls = self._choice.kl(self._logits(params), self._logits(other_params))
    return tf.reduce_sum(kls, axis=-1)

  def std(self, params: Any) -> None:
    """Returns None: no number is Normal."""
    del params

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[..., D]` int32, the likeliest alternative of each choice."""
    return self._choice.mode(self._logits(params))

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., P]`, uniforms `[..., D]` -> `[..., D]` int32, one uniform per choice."""
    params, uniforms = shapes.as_float(params), shapes.as_float(uniforms)
    shapes.check_event('uniforms', uniforms, params, [self._num_choices])
    return self._choice.sample(self._logits(params), uniforms[..., tf.newaxis])

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., P]`, uniforms `[..., D]` -> actions `[..., D]`, log p(a) `[...]`."""
    actions = self.sample(params, uniforms)
    return actions, self.log_prob(params, actions)

  def _logits(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[..., D, longest]`, padded."""
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    return tf.where(self._exists, tf.gather(params, self._indices, axis=-1), _NO_LOGIT)
