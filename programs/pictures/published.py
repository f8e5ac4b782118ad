"""Published results, to be drawn beside one's own curves."""

from __future__ import annotations

import csv
import os
from typing import NamedTuple

import numpy as np

from seed_acme import types

_COLUMNS = ('label', 'steps', 'return')


class Points(NamedTuple):
  """The points of one source. steps: agent steps `[N]`, rising. returns: `[N]`."""

  label: str
  steps: np.ndarray
  returns: np.ndarray


def read(path: str | os.PathLike[str]) -> list[Points]:
  """Reads a CSV file with the columns `label`, `steps` and `return`; other columns are ignored.

  Rows with the same label form one source. Raises `types.UserError` naming the row that is wrong.
  """
  try:
    rows = _rows(path)
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    reason = getattr(error, 'strerror', None) or error
    raise types.UserError(
      f'cannot read {path} ({reason}): give a CSV file with the columns {", ".join(_COLUMNS)}'
    ) from None
  if not rows:
    raise types.UserError(f'{path} has no points: write a row for each')
  labels = dict.fromkeys(label for label, _, _ in rows)
  return [_of(label, rows) for label in labels]


def _rows(path: str | os.PathLike[str]) -> list[tuple[str, float, float]]:
  with open(path, encoding='utf-8-sig', newline='') as file:
    reader = csv.DictReader(file)
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
      raise types.UserError(
        f'{path} has no column {", ".join(missing)}: its first row has to '
        f'name {", ".join(_COLUMNS)}'
      )
    return [_row(path, reader.line_num, row) for row in reader]


def _row(
  path: str | os.PathLike[str], line: int, row: dict[str, str | None]
) -> tuple[str, float, float]:
  try:
    steps, value = float(row['steps'] or ''), float(row['return'] or '')
  except ValueError:
    steps = value = np.nan
  if not (np.isfinite(steps) and np.isfinite(value) and steps >= 0 and row['label']):
    raise types.UserError(
      f'{path}, line {line}: a label, steps >= 0 and a finite return are needed, there is '
      f'{row["label"]!r}, {row["steps"]!r}, {row["return"]!r}'
    )
  return row['label'], steps, value


def _of(label: str, rows: list[tuple[str, float, float]]) -> Points:
  points = np.array(sorted((steps, value) for name, steps, value in rows if name == label))
  return Points(label, points[:, 0], points[:, 1])
