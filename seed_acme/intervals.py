"""95% intervals of a mean over independent runs, by Student's t. Imports NumPy only."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
_MAX_T = 1e6  # above every quantile asked for: 12.7 at one degree of freedom


class Interval(NamedTuple):
  """mean, low, high: of values `[N, ...]`, `[...]` each.

  low and high are NaN for a single value, of which no spread is known; all three for none.
  """

  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray


def of_mean(values: np.ndarray) -> Interval:
  """mean +- t s / sqrt(N) over the first axis of `[N, ...]`, s with N - 1 in the denominator.

  Exact for normal values, and for few of them wider than 1.96 standard errors: 12.7 for N = 2.
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


@functools.cache
def t_quantile(degrees: int) -> float:
  """The t with P(|T| < t) = 95% for Student's T with so many degrees of freedom, by bisection."""
  low, high = 0.0, _MAX_T
  for _ in range(100):
    middle = (low + high) / 2
    low, high = (middle, high) if _probability_within(middle, degrees) < LEVEL else (low, middle)
  return (low + high) / 2


def _probability_within(t: float, degrees: int) -> float:
  """P(|T| < t): the finite series for whole degrees (Abramowitz & Stegun 26.7.3, 26.7.4)."""
  angle = math.atan(t / math.sqrt(degrees))
  sine, square = math.sin(angle), math.cos(angle) ** 2
  is_odd = degrees % 2
  term = math.cos(angle) if is_odd else 1.0
  total = 0.0
  for k in range(is_odd, degrees - 1, 2):  # k: the power of the cosine in this term
    total += term
    term *= square * (k + 1) / (k + 2)
  return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
