"""Reads which arguments a user's function or class takes."""

from __future__ import annotations

from collections.abc import Callable
import functools
import inspect
from typing import Any


def of(make: Callable[..., Any]) -> inspect.Signature:
  """Returns what `inspect.signature` does, but for a class what its `__init__` takes.

  The signature of a class with a metaclass, as Sonnet's modules are, would fit everything.
  """
  return inspect.signature(_function(make))


def _function(make: Callable[..., Any]) -> Callable[..., Any]:
  if isinstance(make, functools.partial):
    return functools.partial(_function(make.func), *make.args, **make.keywords)
  if inspect.isclass(make):
    init: Callable[..., Any] = make.__init__
    if inspect.isfunction(init):
      return functools.partial(init, None)
  return make
