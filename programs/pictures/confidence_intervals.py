"""95% intervals of a mean over independent runs, by Student's t."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

LEVEL = 0.95


class Interval(NamedTuple):
  """A mean with its interval. mean, low, high: `[...]` each, from values `[N, ...]`.

  low and high are NaN for a single value, whose spread is unknown; all three are NaN for no value.
  """

  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray


def of_mean(values: np.ndarray) -> Interval:
  """Returns mean +- t s / sqrt(N) over the first axis of `[N, ...]`, with N - 1 in s.

  Exact for normal values. For few values it is wider than 1.96 standard errors: 12.7 for N = 2.
  """
  values = np.asarray(values, np.float64)
  count = len(values)
  nothing = np.full(values.shape[1:], np.nan)
  if not count:
    return Interval(nothing, nothing, nothing)
  mean = values.mean(axis=0)
  if count == 1:
    return Interval(mean, nothing, nothing)
  half = t_quantile(count - 1) * values.std(axis=0, ddof=1) / math.sqrt(count)
  return Interval(mean, mean - half, mean + half)


def t_quantile(degrees: int) -> float:
  """Returns t with P(|T| < t) = 95% for Student's T with this many degrees of freedom."""
  from scipy import special  # its import would take a quarter of the start-up of `seed-acme`

  return float(special.stdtrit(degrees, (1 + LEVEL) / 2))
