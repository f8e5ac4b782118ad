"""Running mean and standard deviation, and normalisation with them.

Only `update` changes statistics, never a gradient. They are variables of the network, so that
they are part of checkpoints and of the weights published to inference.
"""

from __future__ import annotations

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.ops import shapes

_MIN_STD, _MAX_STD = 1e-6, 1e30
# What the network's output counts for in a value while the targets have had no spread. Targets are
# partly such values, and must not get a spread from them alone, even if outputs are in thousands.
_SCALE_BEFORE_SPREAD = 1e-12


class RunningStatistics(snt.Module):
  """Mean and standard deviation of all data so far, or as exponential moving averages.

  Batches are merged as by Chan et al. 1983, in float64, because in float32 the mean stops
  moving after some millions of updates; the original has two levels of statistics for that.
  """

  def __init__(self, shape: Sequence[int], decay: float | None, name: str, std_at_first: float = 1):
    """decay: weight of the newest batch in mean and variance; None = batches count by size.

    std_at_first: standard deviation before the first update, when the mean is 0.
    """
    super().__init__(name=name)
    self._decay = decay
    self._std_at_first = std_at_first
    zeros = lambda what: tf.Variable(tf.zeros(shape, tf.float64), trainable=False, name=what)
    self._mean, self._variance = zeros('mean'), zeros('variance')
    self._weight = tf.Variable(tf.zeros([], tf.float64), trainable=False, name='weight')

  def mean(self) -> tf.Tensor:
    """Returns the mean, float32 of the shape; 0 before the first update."""
    return tf.cast(self._mean, tf.float32)

  def deviation(self, x: tf.Tensor) -> tf.Tensor:
    """Returns x - mean, float32 `[..., *shape]`. x may be float64, which a vector of one's own can
    give, and is subtracted as such: in float32, clock times and map coordinates would all be the
    same number."""
    if x.dtype == tf.float64:
      return tf.cast(x - self._mean, tf.float32)
    return tf.cast(x, tf.float32) - self.mean()

  def std(self) -> tf.Tensor:
    """Returns the standard deviation, float32 of the shape, within [1e-6, 1e30]; `std_at_first`
    before the first update."""
    std = tf.clip_by_value(tf.sqrt(self._variance), _MIN_STD, _MAX_STD)
    return tf.cast(
      tf.where(self._weight > 0, std, self._std_at_first * tf.ones_like(std)), tf.float32
    )

  def has_spread(self) -> tf.Tensor:
    """Returns bool of the shape: whether the standard deviation is above its minimum."""
    return tf.sqrt(self._variance) > _MIN_STD

  def update(self, x: tf.Tensor, mask: tf.Tensor) -> None:
    """Adds x `[N, *shape]`, mask `[N]`; masked rows may be NaN. Does nothing if all are masked.

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


@snt.allow_empty_variables  # if no array of the observation is a float
class ObservationNormalizer(snt.Module):
  """Computes (x - mean) / std, clipped, for float arrays of the observation; keeps all others."""

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
    """Normalises an observation, a nest of `[..., *shape]`."""
    leaves = [
      x
      if statistics is None
      else tf.clip_by_value(statistics.deviation(x) / statistics.std(), -self._clip, self._clip)
      for x, statistics in zip(tree.flatten(observation), self._statistics)
    ]
    return tree.unflatten_as(observation, leaves)

  def update(self, observation: types.Nest, mask: tf.Tensor) -> None:
    """Updates the statistics. observation: nest of `[T, B, ...]`; mask `[T, B]`."""
    for x, statistics in zip(tree.flatten(observation), self._statistics):
      if statistics is not None:
        statistics.update(shapes.merge_rows(x), tf.reshape(mask, [-1]))


class ValueNormalizer(snt.Module):
  """PopArt (van Hasselt et al. 2016): the network predicts values in units of their deviation.

    V = sigma x + m,  x = w h + b the output of the last layer

  With compensation the last layer is rescaled when m and sigma change, so that V stays the
  same; it is trained as usual:

    w' = (sigma / sigma') w,  b' = (m - m' + sigma b) / sigma'

  Without it x stays the same, which is plain normalisation of the targets.

  Until targets differ (sigma above 1e-6), values are practically m and nothing is rescaled, as
  when all rewards so far were 0. A network that was initialised for outputs near 1 keeps them,
  whatever the scale of the rewards, so that training is the same at every scale. Preserving
  V = x would instead divide the last layer by the scale of the rewards.
  """

  def __init__(
    self,
    decay: float | None,
    compensates: bool,
    keeps_previous: bool,
    last_layer: tuple[tf.Variable, tf.Variable] | None = None,
    name: str = 'values',
  ):
    """keeps_previous: keep the variables that `normalize_previous` needs.

    last_layer: w `[H, 1]` and b `[1]`. None if they are not known; compensation then appends a
    linear layer with one input, which is also trained.
    """
    super().__init__(name=name)
    self._statistics = RunningStatistics((), decay, 'statistics', std_at_first=_MIN_STD)
    self._compensates = compensates
    self._appended: tuple[tf.Variable, tf.Variable] | None = None
    if compensates and last_layer is None:
      self._appended = tf.Variable(1.0, name='scale'), tf.Variable(0.0, name='shift')
    self._last_layer = last_layer or self._appended
    self._previous: tuple[tf.Variable, tf.Variable] | None = None
    if keeps_previous:
      self._previous = (
        tf.Variable(0.0, trainable=False, name='previous_mean'),
        tf.Variable(_SCALE_BEFORE_SPREAD, trainable=False, name='previous_std'),
      )

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """Variables of this module, without those of the network's last layer."""
    return (*self.trainable_variables, *self._statistics.variables, *(self._previous or ()))

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """Variables of the appended layer."""
    return self._appended or ()

  def value(self, x: tf.Tensor) -> tf.Tensor:
    """Converts the network's output `[...]` to values in units of the reward."""
    if self._appended is not None:
      scale, shift = self._appended
      x = scale * x + shift
    return self._scale() * x + self._statistics.mean()

  def normalize(self, value: tf.Tensor) -> tf.Tensor:
    """Returns (v - m) / sigma, `[...]`."""
    return (value - self._statistics.mean()) / self._statistics.std()

  def normalize_previous(self, value: tf.Tensor) -> tf.Tensor:
    """Converts V predicted before the last update to x that the same weights give now, `[...]`.

    V predicted before earlier updates, too, has the same x only with compensation, once there are
    statistics.
    """
    if self._previous is None:
      return self.normalize(value)
    mean, std = self._previous
    return (value - mean) / std

  def _scale(self) -> tf.Tensor:
    return tf.where(self.has_spread(), self.std(), _SCALE_BEFORE_SPREAD)

  def std(self) -> tf.Tensor:
    """Returns sigma, a scalar."""
    return self._statistics.std()

  def mean(self) -> tf.Tensor:
    """Returns m, a scalar."""
    return self._statistics.mean()

  def has_spread(self) -> tf.Tensor:
    """Returns a scalar bool: whether the targets so far differed, so that sigma is meaningful."""
    return self._statistics.has_spread()

  def update(self, targets: tf.Tensor, mask: tf.Tensor) -> None:
    """Updates the statistics with targets `[...]` in units of the reward, mask `[...]`."""
    old, of_values = (self.mean(), self.std()), (self.mean(), self._scale())
    preserves = tf.logical_and(self._compensates, self.has_spread())
    self._statistics.update(tf.reshape(targets, [-1]), tf.reshape(mask, [-1]))
    new = self.mean(), self.std()
    if self._compensates:
      assert self._last_layer is not None
      _preserve_outputs(*self._last_layer, old, new, preserves)
    if self._previous is not None:
      for variable, before, now in zip(self._previous, of_values, new):
        variable.assign(tf.where(preserves, now, before))


def _preserve_outputs(
  w: tf.Variable,
  b: tf.Variable,
  old: tuple[tf.Tensor, tf.Tensor],
  new: tuple[tf.Tensor, tf.Tensor],
  is_wanted: tf.Tensor,
) -> None:
  """Rescales w and b where it is wanted. old, new: mean and standard deviation."""
  (mean, std), (new_mean, new_std) = old, new
  w.assign(tf.where(is_wanted, std / new_std * w, w))
  b.assign(tf.where(is_wanted, (mean - new_mean + std * b) / new_std, b))
