"""Ranges of configured numbers. Each raises `types.UserError` naming the setting and its value.

values: by the dotted name of the setting. NaN is in no range.
"""

from __future__ import annotations

from collections.abc import Mapping
import math

from seed_acme import types


def check_above_zero(values: Mapping[str, float], infinite: bool = False) -> None:
  """infinite: inf is a value, too, a bound that bounds nothing for instance."""
  for name, value in values.items():
    if not value > 0:
      raise types.UserError(f'{name} ({value}) must be > 0')
    if not infinite:
      _check_finite(name, value)


def check_at_least_zero(values: Mapping[str, float]) -> None:
  """Finite and not negative."""
  for name, value in values.items():
    if not value >= 0:
      raise types.UserError(f'{name} ({value}) must be >= 0')
    _check_finite(name, value)


def check_counts(values: Mapping[str, float], least: int) -> None:
  """Finite and not below `least`."""
  for name, value in values.items():
    if not math.isfinite(value) or value < least:
      raise types.UserError(f'{name} ({value}) must be >= {least}')


def check_finite(values: Mapping[str, float]) -> None:
  """Any number but inf, -inf and NaN."""
  for name, value in values.items():
    _check_finite(name, value)


def check_shares(values: Mapping[str, float]) -> None:
  """Within [0, 1]."""
  for name, value in values.items():
    if not 0 <= value <= 1:
      raise types.UserError(f'{name} ({value}) must be in [0, 1]')


def _check_finite(name: str, value: float) -> None:
  if not math.isfinite(value):
    raise types.UserError(f'{name} ({value}) must be a finite number')
