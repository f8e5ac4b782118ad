"""Distributions of actions that are nests or arrays of any rank, built from simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.ops import distributions
from seed_acme.ops import shapes


class Joint:
  """Joint distribution of a nested action whose parts are independent, such as (arm, gripper).

  parts: a nest of distributions with the structure of the action. The params and uniforms of the
  parts are concatenated in dm-tree's order: tuples in their order, dicts by sorted key.

  TFP's joint distributions have no quantile and accept only TFP distributions.
  """

  def __init__(self, parts: types.Nest):
    self._parts = parts
    self._leaves: list[distributions.Distribution] = tree.flatten(parts)
    if not self._leaves:
      raise ValueError(f'parts ({parts!r}) must hold at least one distribution')
    self.num_params = sum(part.num_params for part in self._leaves)
    self.num_uniforms = sum(part.num_uniforms for part in self._leaves)
    self.is_std = np.concatenate([part.is_std for part in self._leaves])
    self.is_reparametrizable = all(part.is_reparametrizable for part in self._leaves)

  def log_prob(self, params: Any, actions: types.Nest) -> tf.Tensor:
    """params `[..., P]`, nest of actions `[..., *A_i]` -> `[...]`, the sum over the parts."""
    leaves = tree.flatten_up_to(self._parts, actions, check_types=False)
    parts = zip(self._leaves, self._split_params(params), leaves)
    return tf.add_n([part.log_prob(its_params, leaf) for part, its_params, leaf in parts])

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]`, the sum over the parts."""
    parts = zip(self._leaves, self._split_params(params))
    return tf.add_n([part.entropy(its_params) for part, its_params in parts])

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., P]` -> `[...]`, the sum over the parts."""
    parts = zip(self._leaves, self._split_params(params), self._split_params(other_params))
    return tf.add_n([part.kl(its_params, others) for part, its_params, others in parts])

  def std(self, params: Any) -> tf.Tensor | None:
    """params `[..., P]` -> `[..., K]`, those of the parts one after the other; None without any."""
    parts = zip(self._leaves, self._split_params(params))
    stds = [part.std(its_params) for part, its_params in parts]
    known = [std for std in stds if std is not None]
    return tf.concat(known, axis=-1) if known else None

  def mode(self, params: Any) -> types.Nest:
    """params `[..., P]` -> nest of `[..., *A_i]`."""
    parts = zip(self._leaves, self._split_params(params))
    return tree.unflatten_as(self._parts, [part.mode(its_params) for part, its_params in parts])

  def sample(self, params: Any, uniforms: Any) -> types.Nest:
    """params `[..., P]`, uniforms `[..., U]` -> nest of `[..., *A_i]`."""
    parts = zip(self._leaves, self._split_params(params), self._split_uniforms(params, uniforms))
    actions = [part.sample(its_params, numbers) for part, its_params, numbers in parts]
    return tree.unflatten_as(self._parts, actions)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[types.Nest, tf.Tensor]:
    """params `[..., P]`, uniforms `[..., U]` -> nest of `[..., *A_i]`, their log p `[...]`."""
    parts = zip(self._leaves, self._split_params(params), self._split_uniforms(params, uniforms))
    drawn = [part.sample_with_log_prob(its_params, numbers) for part, its_params, numbers in parts]
    actions, log_probs = zip(*drawn)
    return tree.unflatten_as(self._parts, actions), tf.add_n(log_probs)

  def _split_params(self, params: Any) -> list[tf.Tensor]:
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    return tf.split(params, [part.num_params for part in self._leaves], axis=-1)

  def _split_uniforms(self, params: Any, uniforms: Any) -> list[tf.Tensor]:
    uniforms = shapes.as_float(uniforms)
    shapes.check_event('uniforms', uniforms, shapes.as_float(params), [self.num_uniforms])
    return tf.split(uniforms, [part.num_uniforms for part in self._leaves], axis=-1)


class Reshaped:
  """Turns a distribution of vectors `[n]` into one of arrays with n numbers, row-major.

  TFP's equivalent accepts only TFP's own distributions, and has no quantile.
  """

  def __init__(self, distribution: distributions.Distribution, action_shape: Sequence[int]):
    self._distribution = distribution
    self._action_shape = tuple(action_shape)
    self.num_params = distribution.num_params
    self.num_uniforms = distribution.num_uniforms
    self.is_std = distribution.is_std
    self.is_reparametrizable = distribution.is_reparametrizable

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., P]`, actions `[..., *shape]` -> `[...]`."""
    params, actions = shapes.as_float(params), tf.convert_to_tensor(actions)
    shapes.check_event('actions', actions, params, self._action_shape)
    vectors = reshape(actions, len(self._action_shape), [math.prod(self._action_shape)])
    return self._distribution.log_prob(params, vectors)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[...]`."""
    return self._distribution.entropy(params)

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., P]` -> `[...]`."""
    return self._distribution.kl(params, other_params)

  def std(self, params: Any) -> tf.Tensor | None:
    """params `[..., P]` -> `[..., K]`, of the numbers row by row; None without any."""
    return self._distribution.std(params)

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., P]` -> `[..., *shape]`."""
    return reshape(self._distribution.mode(params), 1, self._action_shape)

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., P]`, uniforms `[..., U]` -> `[..., *shape]`."""
    return reshape(self._distribution.sample(params, uniforms), 1, self._action_shape)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., P]`, uniforms `[..., U]` -> `[..., *shape]`, log p(a) `[...]`."""
    vectors, log_prob = self._distribution.sample_with_log_prob(params, uniforms)
    return reshape(vectors, 1, self._action_shape), log_prob


def reshape(x: tf.Tensor, old_rank: int, new_shape: Sequence[int]) -> tf.Tensor:
  """Reshapes the last `old_rank` axes to `new_shape`; leading ones may be unknown when traced."""
  leading_rank = x.shape.rank - old_rank
  result = tf.reshape(x, tf.concat([tf.shape(x)[:leading_rank], list(new_shape)], axis=0))
  result.set_shape(x.shape[:leading_rank].concatenate(list(new_shape)))
  return result
