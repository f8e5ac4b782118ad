"""What a router binds to a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def BuildPyCallHandler(function: Callable[..., Any]) -> Callable[..., Any]:
  """The function itself; the compiled courier wrapped it."""
  return function
