"""What standard deviations can start at. Loads no TensorFlow: asked before anything is started."""

from __future__ import annotations

from seed_acme import types

_LEAST_ABOVE, _MOST_ABOVE = 1e-6, 1e6  # what `std_functions` can express, less a margin


def check(initial_std: float, min_std: float) -> None:
  """Raises `types.UserError` for an agent's initial standard deviation too near to its least."""
  if not _LEAST_ABOVE <= initial_std - min_std <= _MOST_ABOVE:
    raise types.UserError(
      f'agent.initial_std ({initial_std}) must be above agent.min_std ({min_std}) by '
      f'{_LEAST_ABOVE} to {_MOST_ABOVE}'
    )
