"""`metrics.csv`: one row per log period, one column per metric, safe against kill -9.

Rows are keyed by agent steps. A metric that appears later becomes a new column; the rows
before it stay, with an empty cell. Imports no TensorFlow.
"""

from __future__ import annotations

import csv
import io
import os
import pathlib
from typing import TextIO

from seed_acme import types
from seed_acme.files import local

KEY = 'agent_steps'
# Counters come first, in this order; metrics follow as they appear.
_LEADING = (KEY, 'wall_s', 'updates', 'frames', 'episodes', 'trained_steps')


class CsvLogger:
  """Appends rows to a file. Used by one process and one thread; every row is flushed.

  An existing file is continued; a last line torn by a kill is dropped first.
  """

  def __init__(self, path: str | os.PathLike[str]):
    self._path = pathlib.Path(path)
    self._columns, _ = _parse(self._path) if self._path.exists() else ([], [])
    self._file: TextIO | None = None
    if self._path.exists():
      _cut_torn_line(self._path)

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Writes one row. `metrics` may contain counters (`wall_s`, `updates`) as well."""
    row = {**{name: _cell(value) for name, value in metrics.items()}, KEY: str(int(agent_steps))}
    fresh = [name for name in row if name not in self._columns]
    if fresh:
      self._add_columns(fresh)
    if self._file is None:
      self._file = open(self._path, 'a', encoding='utf-8', newline='')
    self._file.write(_line([row.get(name, '') for name in self._columns]))
    self._file.flush()

  def truncate_after(self, agent_steps: int, updates: int) -> None:
    """Drops the rows after a checkpoint: those with more agent steps, or with more updates."""
    if not self._path.exists():
      return
    columns, rows = _parse(self._path)
    if not rows:
      return
    bounds = {
      columns.index(name): bound
      for name, bound in ((KEY, agent_steps), ('updates', updates))
      if name in columns
    }
    kept = [row for row in rows if all(float(row[i] or 0) <= bound for i, bound in bounds.items())]
    if len(kept) < len(rows):
      self._rewrite(columns, kept)

  def close(self) -> None:
    """Closes the file; a later `write` opens it again."""
    if self._file is not None:
      self._file.close()
      self._file = None

  def _add_columns(self, fresh: list[str]) -> None:
    old, rows = _parse(self._path) if self._path.exists() else ([], [])
    names = [*self._columns, *fresh]
    columns = [name for name in _LEADING if name in names]
    columns += [name for name in names if name not in _LEADING]
    cells = [dict(zip(old, row)) for row in rows]
    self._rewrite(columns, [[row.get(name, '') for name in columns] for row in cells])

  def _rewrite(self, columns: list[str], rows: list[list[str]]) -> None:
    """Replaces the file atomically, so that a kill leaves the old one or the new one."""
    self.close()
    with (
      local.replacing(self._path) as temporary,
      open(temporary, 'w', encoding='utf-8', newline='') as handle,
    ):
      handle.writelines(map(_line, [columns, *rows]))
      handle.flush()
      os.fsync(handle.fileno())
    self._columns = columns


def read(path: str | os.PathLike[str]) -> dict[str, list[float]]:
  """Returns columns by name, NaN where a cell is empty; `{}` for a file without a complete header.

  May be called while a run is writing. Raises `UserError` if the file is not a metrics file.
  """
  columns, rows = _parse(pathlib.Path(path))
  try:
    return {
      name: [float(row[i]) if row[i] else float('nan') for row in rows]
      for i, name in enumerate(columns)
    }
  except ValueError as error:
    raise types.UserError(f'{os.fspath(path)} holds a cell that is no number: {error}') from None


def _parse(path: pathlib.Path) -> tuple[list[str], list[list[str]]]:
  """Returns header and rows as text, without an incomplete last line."""
  try:
    text = path.read_text(encoding='utf-8')
  except (OSError, UnicodeDecodeError) as error:
    raise types.UserError(f'cannot read {path}: {error}') from error
  return parse(text, path)


def parse(text: str, path: pathlib.Path) -> tuple[list[str], list[list[str]]]:
  """Parses the text of a file, or of its header and some of its rows."""
  lines = list(csv.reader(io.StringIO(text[: text.rfind('\n') + 1])))
  if not lines:
    return [], []
  columns, rows = lines[0], lines[1:]
  if KEY not in columns:
    raise types.UserError(f'{path} is no metrics file (it has no column {KEY!r}): move it away')
  key = columns.index(KEY)
  for number, row in enumerate(rows, start=2):
    if len(row) != len(columns) or not row[key].isdigit():
      raise types.UserError(f'{path}, line {number}, is damaged: delete that line')
  return columns, rows


def _cut_torn_line(path: pathlib.Path) -> None:
  with open(path, 'rb+') as handle:
    handle.truncate(handle.read().rfind(b'\n') + 1)


def _line(cells: list[str]) -> str:
  buffer = io.StringIO()
  csv.writer(buffer, lineterminator='\n').writerow(cells)
  return buffer.getvalue()


def _cell(value: float) -> str:
  number = float(value)
  return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f'{number:.8g}'
