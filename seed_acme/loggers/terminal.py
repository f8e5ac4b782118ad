"""The progress of a run as people see it. Used by the front end, which has no TensorFlow."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from typing import Any, Callable, Mapping, Sequence, TextIO

_BAR_CELLS = 24
_CLEAR_TO_END = '\x1b[K'


class Progress:
  """One line that renews itself on a terminal; a plain line now and then elsewhere.

  `update` and `finish` take the run's status: `agent_steps`, `total_steps`, `updates`,
  `steps_per_s`, `wall_s` and `episode_return` (mean of the last 100 episodes), each of
  which may be None or absent while it is unknown. The progress of something else overrides
  `live` and `plain`.
  """

  plain_period_s = 10.0

  def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
    self._stream = stream if stream is not None else sys.stdout
    self._clock = clock
    self._live = self._stream.isatty() and os.environ.get('TERM', '') != 'dumb'
    self._cells = _cells(getattr(self._stream, 'encoding', None))
    self._next_plain = -math.inf
    self._last_text = ''

  def update(self, status: Mapping[str, Any]) -> None:
    """Shows the status; on a plain output at most one line in ten seconds."""
    if self._live:
      self._draw(self.live(status, shutil.get_terminal_size().columns, self._cells))
    elif self._clock() >= self._next_plain:
      self._next_plain = self._clock() + self.plain_period_s
      self._print(self.plain(status))

  def live(self, status: Mapping[str, Any], columns: int, cells: str) -> str:
    """The line on a terminal of so many columns."""
    return live_line(status, columns, cells)

  def plain(self, status: Mapping[str, Any]) -> str:
    """The line elsewhere."""
    return plain_line(status)

  def message(self, text: str) -> None:
    """Prints text above the progress line."""
    if self._live:
      self._stream.write('\r' + _CLEAR_TO_END + text + '\n')
      self._draw(self._last_text)
    else:
      self._print(text)

  def finish(self, status: Mapping[str, Any] | None = None) -> None:
    """Shows the last status, whenever the one before it was, and ends the line."""
    if self._live:
      if status is not None:
        self.update(status)
      if self._last_text:
        self._stream.write('\n')
        self._stream.flush()
        self._last_text = ''
    elif status is not None and self.plain(status) != self._last_text:
      self._print(self.plain(status))

  def _draw(self, text: str) -> None:
    self._last_text = text
    self._stream.write('\r' + text + _CLEAR_TO_END)
    self._stream.flush()

  def _print(self, text: str) -> None:
    self._last_text = text
    self._stream.write(text + '\n')
    self._stream.flush()


def live_line(status: Mapping[str, Any], columns: int, cells: str = '#-') -> str:
  """The line with a bar, never as wide as the terminal, where it would wrap.

  cells: the characters of a full and of an empty cell, and of the parts in between.
  """
  return with_bar(_share(status), [*_figures(status), _time_left(status)], columns, cells)


def with_bar(share: float, parts: Sequence[str], columns: int, cells: str) -> str:
  """A bar, the share it shows, and the parts that are not empty."""
  text = '  '.join(part for part in (f'{share:4.0%}', *parts) if part)
  bar_cells = min(_BAR_CELLS, columns - len(text) - 2)
  if bar_cells >= 4:
    text = f'{_bar(share, bar_cells, cells)} {text}'
  return text[: max(0, columns - 1)]


def plain_line(status: Mapping[str, Any]) -> str:
  """One line for a log file."""
  total = _number(status, 'total_steps')
  of_total = f' of {_compact(total)} steps ({_share(status):.0%})' if total else ' steps'
  head = _compact(_number(status, 'agent_steps') or 0.0) + of_total
  updates, wall_s = _number(status, 'updates'), _number(status, 'wall_s')
  parts = [
    head,
    *_figures(status),
    f'{int(updates):,} updates' if updates is not None else '',
    f'{duration(wall_s)} gone' if wall_s is not None else '',
    _time_left(status),
  ]
  return ', '.join(part for part in parts if part)


def duration(seconds: float) -> str:
  """`0:07`, `12:40`, `3:05:00`."""
  minutes, rest = divmod(int(max(0.0, seconds)), 60)
  hours, minutes = divmod(minutes, 60)
  return f'{hours}:{minutes:02}:{rest:02}' if hours else f'{minutes}:{rest:02}'


def _figures(status: Mapping[str, Any]) -> list[str]:
  episode_return = _number(status, 'episode_return')
  rate = _number(status, 'steps_per_s')
  return [
    f'return {episode_return:.3g}' if episode_return is not None else 'return -',
    f'{rate:,.0f} steps/s' if rate is not None else '',
  ]


def _time_left(status: Mapping[str, Any]) -> str:
  steps, total = _number(status, 'agent_steps'), _number(status, 'total_steps')
  rate = _number(status, 'steps_per_s')
  if total is None or not rate or rate < 0:
    return ''
  return f'{duration((max(0.0, total - (steps or 0.0))) / rate)} left'


def _share(status: Mapping[str, Any]) -> float:
  steps, total = _number(status, 'agent_steps'), _number(status, 'total_steps')
  return min(1.0, max(0.0, (steps or 0.0) / total)) if total else 0.0


def _number(status: Mapping[str, Any], name: str) -> float | None:
  value = status.get(name)
  return float(value) if value is not None and math.isfinite(value) else None


def _compact(count: float) -> str:
  for unit, suffix in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
    if count >= unit:
      return f'{count / unit:.3g}{suffix}'
  return f'{count:.0f}'


def _cells(encoding: str | None) -> str:
  """Block characters where the output can show them: full, empty, then eighths."""
  blocks = '█░▏▎▍▌▋▊▉'
  try:
    blocks.encode(encoding or 'ascii')
  except (UnicodeEncodeError, LookupError):
    return '#-'
  return blocks


def _bar(share: float, width: int, cells: str) -> str:
  full_cell, empty_cell, parts = cells[0], cells[1], cells[2:]
  full, part = divmod(share * width, 1.0)
  middle = parts[int(part * (len(parts) + 1)) - 1] if parts and part * (len(parts) + 1) >= 1 else ''
  bar = full_cell * int(full) + middle
  return bar + empty_cell * (width - len(bar))
