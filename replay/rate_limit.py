"""Computes how far a Reverb table is from blocking, from the numbers that its server reports.

Reverb's rate limiter counts inserts I, samples S and the present size (inserts less
deletions). It admits one more
```
insert  while size + 1 <= min_size_to_sample, or (I + 1) samples_per_insert - S <= max_diff
sample  while size >= min_size_to_sample and I samples_per_insert - S - 1 >= min_diff
```
and all its kinds (queue, stack, minimum size, ratio) are choices of these four numbers.
Pure arithmetic: imports no Reverb.
"""

from __future__ import annotations

import dataclasses
import math

_UNBOUNDED = 1e300  # `MinSize` writes the largest double for "never"
_FAR = 1e15  # a distance that is never used up; beyond it doubles cannot count in ones


@dataclasses.dataclass(frozen=True)
class Distance:
  """Number of calls that are still admitted if the other side makes none.

  at_least, at_most: None = unlimited. They differ only if items are removed after more than one
  sample, because Reverb does not report how often each item was sampled.
  """

  at_least: int | None
  at_most: int | None

  @property
  def is_exact(self) -> bool:
    return self.at_least == self.at_most

  @property
  def is_blocked(self) -> bool:
    """Whether the next call would wait."""
    return self.at_most == 0


@dataclasses.dataclass(frozen=True)
class Limiter:
  """State of a rate limiter at one moment: its settings, and the counts it decides by.

  inserts, samples: since the table was made or reset (restored with a checkpoint).
  size, max_size: items. max_times_sampled: samples after which an item is removed; 0 = never.
  """

  samples_per_insert: float
  min_size_to_sample: int
  min_diff: float
  max_diff: float
  inserts: int
  samples: int
  size: int
  max_size: int
  max_times_sampled: int

  @property
  def difference(self) -> float:
    """`samples_per_insert` x inserts - samples, which is held between the two bounds."""
    return self.inserts * self.samples_per_insert - self.samples

  @property
  def bounds_inserts(self) -> bool:
    return self.max_diff < _UNBOUNDED

  @property
  def bounds_samples(self) -> bool:
    """Whether samples are bounded by inserts, not only by the table's size."""
    return self.min_diff > -_UNBOUNDED

  @property
  def is_queue_like(self) -> bool:
    """Whether this has the settings of `Table.queue` and `Table.stack`, whose inserts wait for
    samples one by one."""
    return (
      self.samples_per_insert == 1
      and self.min_size_to_sample == 1
      and self.min_diff == 0
      and self.max_diff == self.max_size
      and self.max_times_sampled == 1
    )

  def until_inserts_block(self) -> Distance:
    """Returns how many inserts are still admitted if nothing is sampled."""
    number = self._inserts_left()
    return Distance(number, number)

  def until_samples_block(self) -> Distance:
    """Returns how many samples are still admitted if nothing is inserted."""
    if self.size < self.min_size_to_sample:
      return Distance(0, 0)
    by_ratio = self._samples_left()
    spare = self.size - self.min_size_to_sample + 1  # deletions until the table is too small
    times = self.max_times_sampled
    if times < 1:
      return Distance(by_ratio, by_ratio)
    # At the earliest, every sample is some item's last. At the latest, items are sampled evenly
    # until those that may stay have one sample left each.
    most = spare * times + (self.min_size_to_sample - 1) * (times - 1)
    return Distance(_smaller(by_ratio, spare), _smaller(by_ratio, most))

  def _inserts_left(self) -> int | None:
    if self.min_size_to_sample > self.max_size:
      return None  # the table never gets large enough for the ratio to matter
    free = max(0, self.min_size_to_sample - self.size)

    def fits(number: int) -> bool:
      """Whether the ratio admits one more after `number`."""
      return (self.inserts + number + 1) * self.samples_per_insert - self.samples <= self.max_diff

    if not fits(free):
      return free
    if self.samples_per_insert <= 0 or not self.bounds_inserts:
      return None
    estimate = (self.max_diff + self.samples) / self.samples_per_insert - self.inserts
    if estimate > _FAR:
      return None
    number = max(free, math.floor(estimate) - 1)  # rounding may have moved it by one
    while fits(number):
      number += 1
    return number

  def _samples_left(self) -> int | None:
    """Returns how many samples the ratio alone admits."""
    if not self.bounds_samples:
      return None
    room = self.difference - self.min_diff
    if room > _FAR:
      return None
    return max(0, math.floor(room))


def _smaller(bound: int | None, other: int) -> int:
  return other if bound is None else min(bound, other)
