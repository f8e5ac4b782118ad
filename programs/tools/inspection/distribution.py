"""Summaries of many numbers: a histogram as text, and a JSON record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seed_acme.loggers import terminal

_NUM_BINS = 8
_BAR = 30  # characters in the longest bar


def lines(label: str, values: Sequence[float] | np.ndarray) -> list[str]:
  """Returns a text histogram, or one line if all values are equal. Needs at least one value."""
  low, high = np.min(values), np.max(values)
  if not np.isfinite([low, high]).all() or low == high:
    return [f'  {label}: all {low:g}' if low == high else f'  {label}: from {low:g} to {high:g}']
  counts, edges = np.histogram(values, _NUM_BINS)
  return [f'  {label}: median {terminal.number(float(np.median(values)))}'] + [
    f'  {terminal.number(edges[i]):>10} to {terminal.number(edges[i + 1]):>10}  '
    f'{"#" * int(np.ceil(_BAR * count / counts.max())):{_BAR}} {count}'
    for i, count in enumerate(counts)
  ]


def record(values: Sequence[float] | np.ndarray) -> dict[str, Any] | None:
  """Returns the same as a JSON record; None without values, or if one of them is not finite."""
  array = np.asarray(values, np.float64)
  if not array.size or not np.isfinite(array).all():
    return None
  counts, edges = np.histogram(array, _NUM_BINS)
  return {
    'min': array.min().item(),
    'median': np.median(array).item(),
    'mean': array.mean().item(),
    'max': array.max().item(),
    'counts': counts.tolist(),
    'edges': edges.tolist(),
  }
