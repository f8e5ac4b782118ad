"""Chooses the distribution for an environment's actions."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.ops import action_checks
from seed_acme.ops import deterministic_tanh
from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical
from seed_acme.ops import normal
from seed_acme.ops import shapes
from seed_acme.ops import std_functions
from seed_acme.ops import structured
from seed_acme.ops import tanh_normal

_CONTINUOUS: dict[str, Callable[[int, std_functions.StdFunction], distributions.Distribution]] = {
  'tanh_normal': tanh_normal.TanhNormal,
  'clipped_normal': normal.ClippedNormal,
  'deterministic_tanh': lambda num_actions, std: deterministic_tanh.DeterministicTanh(num_actions),
}


def make(
  action_spec: types.Nest, *, continuous: str, std: std_functions.StdFunction
) -> distributions.Distribution:
  """Makes the distribution of one environment's actions; `types.UserError` if none fits.

  action_spec: nest of dm_env specifications. Each leaf gets
    `DiscreteArray`, or a scalar integer `BoundedArray`: Categorical;
    an integer `BoundedArray` of any other shape, minimum 0: MultiCategorical;
    a float `BoundedArray`, bounds exactly [-1, 1]: the one that `continuous` names;
    and a nest of them Joint. Actions other than vectors are flattened, row-major, in params.
  continuous: `tanh_normal`, `clipped_normal` or `deterministic_tanh`.
  std: function of `ops.std_functions` from parameters to standard deviations.

  It returns actions as int32 or float32 in the shape of the specification and within its
  bounds; they only need a cast to its dtype.
  """
  if continuous not in _CONTINUOUS:
    raise types.UserError(
      f'continuous ({continuous!r}) must be one of {", ".join(map(repr, _CONTINUOUS))}'
    )
  action_checks.check(action_spec)

  def part(spec: Any) -> distributions.Distribution:
    if not action_checks.is_integer(spec):
      return _shaped(_CONTINUOUS[continuous](math.prod(spec.shape), std), spec)
    sizes = _sizes(spec)
    if not spec.shape:
      return distributions.Categorical(int(sizes[0]))
    return _shaped(multi_categorical.MultiCategorical(sizes.tolist()), spec)

  parts = tree.map_structure(part, action_spec)
  return structured.Joint(parts) if tree.is_nested(action_spec) else parts


def num_uniforms(action_spec: types.Nest) -> int:
  """Returns U of any distribution that `make` may choose: one for each number of the action."""
  action_checks.check(action_spec)
  return sum(math.prod(spec.shape) for spec in tree.flatten(action_spec))


def uniform_actions(action_spec: types.Nest, uniforms: Any) -> types.Nest:
  """Draws actions uniformly from the whole space, in the form that a distribution's `sample` has.

  uniforms: `[..., U]` in [0, 1], each used for the same part of the action as in `sample`.

    a = 2 u - 1 for float numbers in [-1, 1],  a = min(floor(u n), n - 1) for n choices
  """
  uniforms, wanted = shapes.as_float(uniforms), num_uniforms(action_spec)
  if not uniforms.shape[-1:].is_compatible_with([wanted]):
    raise ValueError(
      f'uniforms have shape {uniforms.shape}, but [..., {wanted}] is needed: one '
      'for each number of the action'
    )
  leaves = tree.flatten(action_spec)
  parts = tf.split(uniforms, [math.prod(spec.shape) for spec in leaves], axis=-1)
  return tree.unflatten_as(
    action_spec,
    [structured.reshape(_uniform(spec, part), 1, spec.shape) for spec, part in zip(leaves, parts)],
  )


def _uniform(spec: Any, uniforms: tf.Tensor) -> tf.Tensor:
  """uniforms `[..., n]` -> the n numbers of one leaf, still flat."""
  if not action_checks.is_integer(spec):
    return 2.0 * uniforms - 1.0
  sizes = _sizes(spec)
  choices = tf.cast(uniforms * sizes.astype(np.float32), tf.int32)
  return tf.minimum(choices, (sizes - 1).astype(np.int32))


def _sizes(spec: Any) -> np.ndarray:
  """Returns `[n]` int64, the number of alternatives of each choice of an integer leaf."""
  return np.broadcast_to(spec.maximum, spec.shape).astype(np.int64).ravel() + 1


def where(condition: Any, chosen: types.Nest, other: types.Nest) -> types.Nest:
  """Selects actions, nests of `[N, ...]`, by row: condition `[N]` bool."""

  def leaf(x: Any, y: Any) -> tf.Tensor:
    return tf.where(tf.reshape(condition, [-1] + [1] * (y.shape.rank - 1)), x, y)

  return tree.map_structure(leaf, chosen, other)


def _shaped(distribution: distributions.Distribution, spec: Any) -> distributions.Distribution:
  if len(spec.shape) == 1:
    return distribution
  return structured.Reshaped(distribution, spec.shape)
