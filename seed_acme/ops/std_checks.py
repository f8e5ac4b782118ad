"""Checks initial standard deviations, before anything is started. Imports no TensorFlow."""

from __future__ import annotations

from seed_acme import types

_LEAST_ABOVE, _MOST_ABOVE = 1e-6, 1e6  # the range of `std_functions`, minus a margin


def check(initial_std: float, min_std: float) -> None:
  """Raises `types.UserError` if the initial standard deviation is too close to its minimum, or too
  large."""
  if not _LEAST_ABOVE <= initial_std - min_std <= _MOST_ABOVE:
    raise types.UserError(
      f'agent.initial_std ({initial_std}) must be above agent.min_std ({min_std}) by '
      f'{_LEAST_ABOVE} to {_MOST_ABOVE}'
    )
