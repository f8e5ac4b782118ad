"""Closing environments when the work with them is done, or cannot begin.

An error of `close` is then told instead of raised: how the work has ended, with a result or with
an error of its own, is known by then and matters more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import sys
import traceback
from typing import TypeVar

from seed_acme import core

_Environment = TypeVar('_Environment', bound=core.VectorEnvironment)


def _on_standard_error(text: str) -> None:
  print(f'Notice: {text}', file=sys.stderr, flush=True)


@contextlib.contextmanager
def told(environment_id: str, tell: Callable[[str], None] = _on_standard_error) -> Iterator[None]:
  """Tells an error of the `close` that is called in this context, in one line."""
  try:
    yield
  except Exception as error:  # an environment may raise anything
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = ' '.join(f'{type(error).__name__}: {error}'.split())
    said += f' ({os.path.basename(frame.filename)}:{frame.lineno})'
    with contextlib.suppress(OSError):  # a full disk, or a terminal that is gone
      tell(f'environment {environment_id}: close() raised {said}, which changes no result')


@contextlib.contextmanager
def afterwards(environment: _Environment, environment_id: str) -> Iterator[_Environment]:
  """Closes the environment at the end of this context, as `told` does."""
  try:
    yield environment
  finally:
    with told(environment_id):
      environment.close()


@contextlib.contextmanager
def on_failure(
  environment_id: str, later: contextlib.ExitStack | None = None
) -> Iterator[contextlib.ExitStack]:
  """Gives a stack for the closing of what is made in this context, in case an exception leaves it.

  Whoever gets the complete result closes that. later: receives the closing, for a caller who first
    reports the exception; None = it is done at once, and its errors are told.
  """
  made = contextlib.ExitStack()
  try:
    yield made
  except BaseException:
    if later is None:
      with told(environment_id):
        made.close()
    else:
      later.callback(made.close)
    raise
