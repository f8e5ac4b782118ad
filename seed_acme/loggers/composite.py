"""Several loggers behind one."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
from typing import Sequence, cast

from seed_acme import core
from seed_acme import types


class CompositeLogger:
  """Passes every row to each logger in turn, in the caller's thread."""

  def __init__(
    self,
    loggers: Sequence[core.Logger],
    during: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
  ):
    """during: makes what is entered during each call of the loggers."""
    self._loggers = tuple(loggers)
    self._during = during
    self._is_closed = False

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Writes one row everywhere."""
    with self._during():
      for logger in self._loggers:
        logger.write(agent_steps, metrics)

  def write_video(self, recording: types.Recording) -> None:
    """Passes a filmed episode to the loggers that show films."""
    with self._during():
      for logger in self._loggers:
        if hasattr(logger, 'write_video'):
          cast(core.VideoLogger, logger).write_video(recording)

  def close(self) -> None:
    """Closes each logger once, because a user's own logger may not support being closed twice."""
    if not self._is_closed:
      self._is_closed = True
      with self._during():
        for logger in self._loggers:
          logger.close()
