"""Refuses symbolic links out of a run folder, which may come from an untrusted source."""

from __future__ import annotations

from collections.abc import Iterable
import os
import pathlib

from seed_acme import types


def refuse(folder: pathlib.Path, names: Iterable[str]) -> None:
  """Raises `types.UserError` for a link at or below `folder/<name>` that leads out of the folder.

  The folder itself may be a link, such as `runs/latest`.
  """
  root = folder.resolve()
  for name in names:
    top = folder / name
    below = [
      pathlib.Path(base, entry)
      for base, folders, files in os.walk(top)
      for entry in (*folders, *files)
    ]
    for path in (top, *below):
      if path.is_symlink() and root not in path.resolve().parents:
        raise types.UserError(
          f'{path} is a link to {os.readlink(path)}, out of the run folder: '
          'put the file or folder itself there'
        )
