"""The table of a server's functions by name."""

from __future__ import annotations

from collections.abc import Callable
import threading
from typing import Any

_ANY = '*'  # a function bound to this is called for every name without one of its own


class Router:
  """A table of functions that may be changed while a server uses it."""

  def __init__(self) -> None:
    self._lock = threading.Lock()
    self._handlers: dict[str, Callable[..., Any]] = {}

  def Bind(self, name: str, handler: Callable[..., Any]) -> None:
    with self._lock:
      self._handlers[name] = handler

  def Unbind(self, name: str) -> None:
    with self._lock:
      self._handlers.pop(name, None)

  def find(self, name: str) -> Callable[..., Any] | None:
    with self._lock:
      return self._handlers.get(name) or self._handlers.get(_ANY)

  def names(self) -> list[str]:
    with self._lock:
      return [name for name in self._handlers if name != _ANY]
