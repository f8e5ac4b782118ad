"""The handlers that a router binds to names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def BuildPyCallHandler(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the function itself, which the compiled courier would wrap."""
  return function
