"""Continuous actions without randomness."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import shapes


class DeterministicTanh:
  """a = tanh(params), for evaluation and for losses whose gradient passes through the action.

  D actions, P = D. A point mass has no density, so log_prob and kl raise an error instead of
  returning numbers with which a policy gradient would train on nonsense, as TFP's
  VectorDeterministic does.
  """

  def __init__(self, num_actions: int):
    if num_actions < 1:
      raise ValueError(f'num_actions ({num_actions}) must be at least 1')
    self._num_actions = num_actions
    self.num_params = num_actions
    # Accepted but not used, so that U depends only on the environment, not on the distribution.
    self.num_uniforms = num_actions
    self.is_std = np.zeros([num_actions], bool)
    self.is_reparametrizable = True

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """Raises `types.UserError`: there is no density."""
    del params, actions
    self._refuse('log-probabilities')

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., D]` -> `[...]` zeros, because nothing is random, so an entropy bonus has no
    effect. (The differential entropy would be -inf.)
    """
    params = self._checked(params)
    return tf.zeros_like(params[..., 0])

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """Raises `types.UserError`: the divergence is 0 or infinite."""
    del params, other_params
    self._refuse('KL divergences')

  def std(self, params: Any) -> None:
    """Returns None: no number is Normal."""
    del params

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., D]` -> `[..., D]`, tanh(params), differentiable."""
    return tf.tanh(self._checked(params))

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., D]`, uniforms `[..., D]` -> `[..., D]`, the mode whatever the uniforms are."""
    params = self._checked(params)
    shapes.check_event('uniforms', shapes.as_float(uniforms), params, [self._num_actions])
    return self.mode(params)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Raises `types.UserError`: there is no density."""
    del params, uniforms
    self._refuse('log-probabilities')

  def _checked(self, params: Any) -> tf.Tensor:
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    return params

  def _refuse(self, what: str) -> NoReturn:
    raise types.UserError(
      f'a deterministic_tanh policy has no {what}, and policy gradient losses need them: '
      'choose a stochastic distribution, tanh_normal or clipped_normal'
    )
