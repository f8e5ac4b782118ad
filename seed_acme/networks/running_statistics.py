"""Running mean and standard deviation, and what is normalised with them.

All variables here change by `update` alone, never by a gradient. They belong to the network, so
that inference, checkpoints and published copies carry them.
"""

from __future__ import annotations

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types

_MIN_STD, _MAX_STD = 1e-6, 1e6


class RunningStatistics(snt.Module):
  """Mean and standard deviation of all there was, or with forgetting.

  Batches are merged as by Chan et al. 1983. In float64: in float32 the mean stops moving
  after some millions of updates, which the original met with two levels of statistics.
  Before the first update the mean is 0 and the standard deviation 1.
  """

  def __init__(self, shape: Sequence[int], decay: float | None, name: str):
    """decay: share of the newest batch in mean and variance; None = all batches count by size."""
    super().__init__(name=name)
    self._decay = decay
    zeros = lambda what: tf.Variable(tf.zeros(shape, tf.float64), trainable=False, name=what)
    self._mean, self._variance = zeros('mean'), zeros('variance')
    self._weight = tf.Variable(tf.zeros([], tf.float64), trainable=False, name='weight')

  def mean(self) -> tf.Tensor:
    """float32 of the shape; 0 before the first update."""
    return tf.cast(self._mean, tf.float32)

  def std(self) -> tf.Tensor:
    """float32 of the shape, within [1e-6, 1e6]; 1 before the first update."""
    std = tf.clip_by_value(tf.sqrt(self._variance), _MIN_STD, _MAX_STD)
    return tf.cast(tf.where(self._weight > 0, std, tf.ones_like(std)), tf.float32)

  def update(self, x: tf.Tensor, mask: tf.Tensor) -> None:
    """x `[N, *shape]`, mask `[N]`; masked rows may be NaN. Nothing changes if all are masked.

      average: W' = W + n,  share s = n / W'     ema: W' = W + beta (1 - W),  s = beta / W'
      mean' = mean + s (m - mean);  var' = (1 - s) var + s v + s (1 - s) (m - mean)^2

    m, v: mean and variance of the n unmasked rows. W of `ema` starts at 0, so that the first
    batch is not mixed with the zeros before it.
    """
    keep = tf.reshape(mask, [-1] + [1] * (x.shape.rank - 1))
    rows = tf.where(keep, tf.cast(x, tf.float64), tf.zeros_like(x, tf.float64))
    count = tf.reduce_sum(tf.cast(mask, tf.float64))
    divisor = tf.maximum(count, 1.0)
    mean = tf.reduce_sum(rows, axis=0) / divisor
    deviations = tf.where(keep, rows - mean, tf.zeros_like(rows))
    variance = tf.reduce_sum(tf.square(deviations), axis=0) / divisor
    if self._decay is None:
      weight, part = self._weight + count, count
    else:
      weight, part = self._weight + self._decay * (1.0 - self._weight), self._decay
    share = part / tf.maximum(weight, 1e-300)
    change = mean - self._mean
    new_variance = (
      (1.0 - share) * self._variance + share * variance + share * (1.0 - share) * tf.square(change)
    )
    new_mean = self._mean + share * change
    is_empty = tf.equal(count, 0.0)
    for variable, value in (
      (self._variance, new_variance),
      (self._mean, new_mean),
      (self._weight, weight),
    ):
      variable.assign(tf.where(is_empty, variable, value))


@snt.allow_empty_variables  # where no array of the observation is a float
class ObservationNormalizer(snt.Module):
  """(x - mean) / std, clipped, for every float array of the observation; others pass."""

  def __init__(
    self, observation_spec: types.Nest, decay: float | None, clip: float, name: str = 'observations'
  ):
    super().__init__(name=name)
    self._clip = clip
    self._statistics = [
      RunningStatistics(spec.shape, decay, f'statistics_{i}')
      if tf.as_dtype(spec.dtype).is_floating
      else None
      for i, spec in enumerate(tree.flatten(observation_spec))
    ]

  def __call__(self, observation: types.Nest) -> types.Nest:
    """Nest of `[..., *shape]`."""
    leaves = [
      x
      if statistics is None
      else tf.clip_by_value(
        (tf.cast(x, tf.float32) - statistics.mean()) / statistics.std(), -self._clip, self._clip
      )
      for x, statistics in zip(tree.flatten(observation), self._statistics)
    ]
    return tree.unflatten_as(observation, leaves)

  def update(self, observation: types.Nest, mask: tf.Tensor) -> None:
    """observation: nest of `[T, B, ...]`; mask `[T, B]`."""
    for x, statistics in zip(tree.flatten(observation), self._statistics):
      if statistics is not None:
        statistics.update(_merged(x), tf.reshape(mask, [-1]))


def _merged(x: tf.Tensor) -> tf.Tensor:
  """`[T, B, ...]` -> `[T*B, ...]`."""
  x = tf.convert_to_tensor(x)
  return tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0))


class ValueNormalizer(snt.Module):
  """PopArt (van Hasselt et al. 2016): the network predicts values in units of their spread.

    V = sigma (a x + b) + m,  x the network's output

  With compensation a and b change with m and sigma so that V stays the same:

    a' = (sigma / sigma') a,  b' = (m - m' + sigma b) / sigma'

  which is what the paper does to the weights of the last layer, whatever that layer is.
  Without it a = 1 and b = 0 for ever: plain normalisation of the targets.
  """

  def __init__(
    self, decay: float | None, compensates: bool, keeps_previous: bool, name: str = 'values'
  ):
    """keeps_previous: for `normalize_previous`."""
    super().__init__(name=name)
    self._statistics = RunningStatistics((), decay, 'statistics')
    self._compensates = compensates
    self._scale = tf.Variable(1.0, trainable=False, name='scale')
    self._shift = tf.Variable(0.0, trainable=False, name='shift')
    self._previous: tuple[tf.Variable, tf.Variable] | None = None
    if keeps_previous and not compensates:  # which keeps V, so that values need no conversion
      self._previous = (
        tf.Variable(0.0, trainable=False, name='previous_mean'),
        tf.Variable(1.0, trainable=False, name='previous_std'),
      )

  def value(self, x: tf.Tensor) -> tf.Tensor:
    """The network's output `[...]` -> value in units of the reward."""
    normalized = self._scale * x + self._shift
    return self._statistics.std() * normalized + self._statistics.mean()

  def normalize(self, value: tf.Tensor) -> tf.Tensor:
    """(v - m) / sigma, `[...]`."""
    return (value - self._statistics.mean()) / self._statistics.std()

  def normalize_previous(self, value: tf.Tensor) -> tf.Tensor:
    """V that the network gave before the last update -> a x + b of the same x now, `[...]`."""
    if self._previous is None:
      return self.normalize(value)
    mean, std = self._previous
    return (value - mean) / std

  def std(self) -> tf.Tensor:
    """Scalar sigma."""
    return self._statistics.std()

  def mean(self) -> tf.Tensor:
    """Scalar m."""
    return self._statistics.mean()

  def update(self, targets: tf.Tensor, mask: tf.Tensor) -> None:
    """targets `[...]` in units of the reward, mask `[...]`."""
    mean, std = self._statistics.mean(), self._statistics.std()
    if self._previous is not None:
      self._previous[0].assign(mean)
      self._previous[1].assign(std)
    self._statistics.update(tf.reshape(targets, [-1]), tf.reshape(mask, [-1]))
    if self._compensates:
      new_mean, new_std = self._statistics.mean(), self._statistics.std()
      self._shift.assign((mean - new_mean + std * self._shift) / new_std)
      self._scale.assign(std / new_std * self._scale)
