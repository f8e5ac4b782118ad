"""Follows a `metrics.csv` while a run writes it, for the process that watches the run."""

from __future__ import annotations

import os
import pathlib
from typing import BinaryIO

from seed_acme.loggers import csv_file

_IDENTITY = (csv_file.KEY, 'wall_s', 'updates')  # identify rows, whatever columns are added later


class Tail:
  """Returns each row once, except those that exist when it is made. Used by one thread.

  Rows that a resumed run writes in the place of truncated ones are new rows.
  """

  def __init__(self, path: str | os.PathLike[str]):
    self._path = pathlib.Path(path)
    # Kept open, so that no other file can get its inode number while it is compared.
    self._file: BinaryIO | None = None
    self._header = b''
    self._handed_over: list[tuple[float, ...]] = []  # identities
    self.new_rows()

  def new_rows(self) -> list[dict[str, float]]:
    """Returns the rows written since the last call, each with the metrics it has. Often `[]`."""
    if self._is_replaced():
      self._open()
      index = 0  # columns were added or rows truncated; most rows are known
    else:
      index = len(self._handed_over)
    return self._unknown(self._read_rows(), index)

  def close(self) -> None:
    """Closes the file; the next `new_rows` opens it again."""
    if self._file is not None:
      self._file.close()
      self._file = None

  def _is_replaced(self) -> bool:
    """Whether the path now refers to another file than the open one."""
    if self._file is None:
      return True
    try:
      return os.stat(self._path).st_ino != os.fstat(self._file.fileno()).st_ino
    except FileNotFoundError:
      return True

  def _open(self) -> None:
    self.close()
    try:
      self._file = open(self._path, 'rb')
    except FileNotFoundError:
      return
    self._header = b''

  def _read_rows(self) -> list[dict[str, float]]:
    if self._file is None:
      return []
    begin = self._file.tell()
    text = self._file.read()
    whole = text[: text.rfind(b'\n') + 1]
    self._file.seek(begin + len(whole))  # an incomplete line is read once it is complete
    columns, rows = csv_file.parse((self._header + whole).decode('utf-8'), self._path)
    self._header = self._header or whole[: whole.find(b'\n') + 1]
    return [{name: float(cell) for name, cell in zip(columns, row) if cell} for row in rows]

  def _unknown(self, rows: list[dict[str, float]], index: int) -> list[dict[str, float]]:
    """Returns the rows, from row `index` of the file on, that were not returned before."""
    identities = [tuple(row.get(name, 0.0) for name in _IDENTITY) for row in rows]
    num_known = 0
    for known, identity in zip(self._handed_over[index:], identities):
      if known != identity:
        break
      num_known += 1
    self._handed_over[index + num_known :] = identities[num_known:]
    return rows[num_known:]
