"""Shows a run's progress to the user. Used by the front end, which has no TensorFlow."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from typing import Any, Callable, Mapping, Sequence, TextIO

from seed_acme.loggers import time_left

_BAR_CELLS = 24
_COLUMNS = 80  # if a terminal does not know its size
_CLEAR_TO_END = '\x1b[K'


class Progress:
  """A line that updates itself on a terminal; elsewhere, a plain line now and then.

  `update` and `finish` take the run's status: `agent_steps`, `total_steps`, `updates`,
  `steps_per_s`, `wall_s`, `max_wall_s`, `actors` and `episode_return_last_100`, the `phase` of a
  run that is not learning right now, and `stalled`, the words for one that makes no progress. Each
  may be None or absent while it is unknown. The line has a clock of its own, which counts from when
  this is made. The progress of something else overrides `live` and `plain`.
  """

  plain_period_s = 10.0

  def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
    self._stream = stream if stream is not None else sys.stdout
    self._clock = clock
    self._started_s = clock()
    self._time_left = time_left.TimeLeft()
    self._live = self._stream.isatty() and os.environ.get('TERM', '') != 'dumb'
    self._cells = _cells(getattr(self._stream, 'encoding', None))
    self._next_plain = -math.inf
    self._last_phase = ''
    self._is_under_way = False  # whether it has learnt something
    self._last_text = ''

  def update(self, status: Mapping[str, Any]) -> None:
    """Shows the status. A plain output gets each phase before the first update, and then at most
    one line in ten seconds."""
    if not any(value for value in status.values()):
      return  # nothing is known yet
    status = self._with_times(status)
    phase = (status.get('phase') or '').partition(' (')[0]
    if self._live:
      text = self.live(status, shutil.get_terminal_size().columns or _COLUMNS, self._cells)
      if text != self._last_text:
        self._draw(text)
    elif self._clock() >= self._next_plain or phase != self._last_phase and not self._is_under_way:
      self._next_plain = self._clock() + self.plain_period_s
      self._print(self.plain(status))
    self._last_phase = phase
    self._is_under_way |= not phase

  def _with_times(self, status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds `elapsed_s`, the seconds since the start, and `left_s`; None = unknown."""
    return {
      'elapsed_s': self._clock() - self._started_s,
      'left_s': self._time_left.update(status),
      **status,
    }

  def live(self, status: Mapping[str, Any], columns: int, cells: str) -> str:
    """Returns the line for a terminal with this number of columns."""
    return live_line(status, columns, cells)

  def plain(self, status: Mapping[str, Any]) -> str:
    """Returns the line for other outputs."""
    return plain_line(status)

  def message(self, text: str, stream: TextIO | None = None) -> None:
    """Prints text above the progress line, or to another stream, which may share its terminal."""
    if self._live:
      self._stream.write('\r' + _CLEAR_TO_END)
      self._stream.flush()
    out = stream or self._stream
    out.write(text + '\n')
    out.flush()
    if self._live:
      self._draw(self._last_text)

  def hide(self) -> None:
    """Clears the line until the next update, so that others can print in its place."""
    if self._live and self._last_text:
      self._stream.write('\r' + _CLEAR_TO_END)
      self._stream.flush()
      self._last_text = ''

  def finish(self, status: Mapping[str, Any] | None = None) -> None:
    """Shows the last status, however recent the one before it was, and ends the line."""
    if status is not None:
      status = self._with_times(status)
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
  """Returns the line with a bar, narrower than the terminal, so that it does not wrap.

  cells: the characters of a full and of an empty cell, and of the parts in between.
  """
  parts = [*_figures(status), *_times(status)]
  if _number(status, 'total_steps') is None:  # it has just been started
    return '  '.join(part for part in parts if part)[: max(0, columns - 1)]
  return with_bar(max(_share(status), _share_of_time(status)), parts, columns, cells)


def with_bar(share: float, parts: Sequence[str], columns: int, cells: str) -> str:
  """Returns a bar, the share that it shows, and the parts that are not empty."""
  text = '  '.join(part for part in (f'{percent(share):>4}', *parts) if part)
  bar_cells = min(_BAR_CELLS, columns - len(text) - 2)
  if bar_cells >= 4:
    text = f'{_bar(share, bar_cells, cells)} {text}'
  return text[: max(0, columns - 1)]


def plain_line(status: Mapping[str, Any]) -> str:
  """Returns one line for a log file."""
  steps, total = _number(status, 'agent_steps'), _number(status, 'total_steps')
  of_total = f' of {_compact(total)} steps ({percent(_share(status))})' if total else ' steps'
  updates = _number(status, 'updates')
  parts = [
    '' if steps is None else _compact(steps) + of_total,
    *_figures(status),
    '' if updates is None else f'{int(updates):,} update{"" if updates == 1 else "s"}',
    *_times(status),
  ]
  text = ', '.join(part for part in parts if part)
  return text[:1].upper() + text[1:]


def percent(share: float) -> str:
  """Formats a share as `45%`, rounded down, so that 100% means the whole."""
  return f'{math.floor(100 * share + 1e-9)}%'


def number(value: float, digits: int = 4) -> str:
  """Formats a number with `digits` digits, or all before the point: `0.8712`, `-20.7`, `10,330`."""
  text = f'{value:.{digits}g}'
  return f'{value:,.0f}' if 'e+' in text else text


def aligned(rows: Sequence[Sequence[str]], num_left: int = 0) -> list[str]:
  """Returns a line a row with aligned columns: the first `num_left` to the left, others right."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  return [
    '  '.join(
      cell.ljust(width) if index < num_left else cell.rjust(width)
      for index, (cell, width) in enumerate(zip(row, widths))
    )
    for row in rows
  ]


def duration(seconds: float) -> str:
  """Formats a duration: `0:07`, `12:40`, `3:05:00`."""
  minutes, rest = divmod(int(max(0.0, seconds)), 60)
  hours, minutes = divmod(minutes, 60)
  return f'{hours}:{minutes:02}:{rest:02}' if hours else f'{minutes}:{rest:02}'


def _figures(status: Mapping[str, Any]) -> list[str]:
  """Returns what the run is doing, or its return, rate and connected actors."""
  mean_return, rate = _number(status, 'episode_return_last_100'), _number(status, 'steps_per_s')
  connected = [actor['is_connected'] for actor in status.get('actors') or []]
  is_short = status.get('status') == 'running' and not all(connected)
  if stalled := status.get('stalled'):
    return [stalled]
  doing = status.get('phase')
  if not doing:
    doing = 'return -' if mean_return is None else f'return {number(mean_return, 3)}'
  figures = [doing]
  has_ended = status.get('status', 'running') != 'running'  # the last row has no regular period
  if not has_ended and (rate or rate == 0 and not status.get('phase')):
    figures.append(f'{rate:,.0f} steps/s')
  if is_short and not status.get('phase'):
    figures.append(f'{sum(connected)} of {len(connected)} actors connected')
  return figures


def _times(status: Mapping[str, Any]) -> list[str]:
  elapsed_s, left_s = _number(status, 'elapsed_s'), _number(status, 'left_s')
  if status.get('status', 'running') != 'running' or status.get('stalled'):
    left_s = None
  return [
    f'{duration(elapsed_s)} elapsed' if elapsed_s is not None else '',
    f'{duration(left_s)} left' if left_s is not None else '',
  ]


def _share_of_time(status: Mapping[str, Any]) -> float:
  wall_s, max_wall_s = _number(status, 'wall_s'), _number(status, 'max_wall_s')
  return min(1.0, (wall_s or 0.0) / max_wall_s) if max_wall_s else 0.0


def _share(status: Mapping[str, Any]) -> float:
  steps, total = _number(status, 'agent_steps'), _number(status, 'total_steps')
  return min(1.0, max(0.0, (steps or 0.0) / total)) if total else 0.0


def _number(status: Mapping[str, Any], name: str) -> float | None:
  value = status.get(name)
  return float(value) if value is not None and math.isfinite(value) else None


def _compact(count: float) -> str:
  for unit, suffix in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
    if count >= 0.9995 * unit:  # 999,936 is 1M, not 1,000k
      return f'{count / unit:.3g}{suffix}'
  return f'{count:.0f}'


def _cells(encoding: str | None) -> str:
  """Returns the cells' characters: full, empty, then eighths, if the output can show them."""
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
