"""Keeps the evidence of a run: `python scripts/keep_evidence.py RUN_DIR FOLDER`.

The folder gets the configuration, the summary, the log (for long ones every n-th row, and each row
in which an episode ended) and the newest checkpoint without the arrays that only training needs. It
is a run folder: `seed-acme evaluate FOLDER` and `seed-acme plot FOLDER` work on it.
"""

from __future__ import annotations

import csv
import pathlib
import shutil
import sys

from seed_acme.storage import checkpoint

_ACTING = 'acting/'
_RETURN = 'episode/return'


def keep(run: pathlib.Path, folder: pathlib.Path, max_rows: int = 1000) -> None:
  """Writes `folder`, which must not exist. max_rows: of the log, besides those with episode
  ends."""
  found = checkpoint.load_found(run)
  acting = {name: array for name, array in found.arrays.items() if name.startswith(_ACTING)}
  if not acting:
    raise SystemExit(f'error: {found.path} holds no {_ACTING} arrays: train it with this version')
  folder.mkdir(parents=True)
  for name in ('config.json', 'summary.json'):
    shutil.copy(run / name, folder)
  checkpoint.save(
    folder / 'checkpoints', int(found.meta['counts']['updates']), acting, found.meta, keep=1
  )
  with open(run / 'metrics.csv', encoding='utf-8', newline='') as source:
    reader = csv.DictReader(source)
    rows = list(reader)
  every = max(1, len(rows) // max_rows)
  with open(folder / 'metrics.csv', 'w', encoding='utf-8', newline='') as target:
    writer = csv.DictWriter(target, reader.fieldnames or [], lineterminator='\n')
    writer.writeheader()
    writer.writerows(
      row for i, row in enumerate(rows) if i % every == 0 or i == len(rows) - 1 or row[_RETURN]
    )


if __name__ == '__main__':
  if len(sys.argv) != 3:
    sys.exit(f'usage: {sys.argv[0]} RUN_DIR FOLDER')
  keep(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
