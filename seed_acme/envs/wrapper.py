"""Base class of environments that wrap another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from seed_acme import core


class Wrapper:
  """The part of a `core.VectorEnvironment` that does not depend on its time steps."""

  def __init__(self, environment: core.VectorEnvironment):
    self._environment = environment
    self.num_environments = environment.num_environments

  @property
  def can_render(self) -> bool:
    """Whether the wrapped environment can render."""
    return hasattr(self._environment, 'render') and getattr(self._environment, 'can_render', True)

  def render(self) -> np.ndarray:
    """Returns the wrapped environment's picture, `[H, W, 3]` uint8."""
    inside: Any = self._environment
    return inside.render()

  def close(self) -> None:
    self._environment.close()
