"""Keeps the evidence of a run: `python scripts/keep_evidence.py RUN_DIR FOLDER`.

The folder gets the configuration, the summary, the log (for long ones every n-th row, and each row
in which an episode ended) and the newest checkpoint without the arrays that only training needs. It
is a run folder: `seed-acme evaluate FOLDER` and `seed-acme plot FOLDER` work on it. docs/evidence
keeps one checkpoint per agent and game, which tests/evidence_test.py checks, so further seeds are
kept with `--curve_only`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import pathlib
import shutil

from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer

_ACTING = 'acting/'
_RETURN = 'episode/return'


def keep(
  run: pathlib.Path, folder: pathlib.Path, max_rows: int = 1000, curve_only: bool = False
) -> None:
  """Writes `folder`, which must not exist. max_rows: of the log, besides those with episode
  ends."""
  found = None if curve_only else _acting(run)
  folder.mkdir(parents=True)
  if found:
    updates = found.counts.updates
    checkpoint_writer.save(folder / 'checkpoints', updates, found.arrays, found.meta, keep=1)
  for name in ('config.json', 'summary.json'):
    shutil.copy(run / name, folder)
  with open(run / 'metrics.csv', encoding='utf-8', newline='') as source:
    reader = csv.DictReader(source)
    rows = list(reader)
  every = max(1, -(-len(rows) // max_rows))
  with open(folder / 'metrics.csv', 'w', encoding='utf-8', newline='') as target:
    writer = csv.DictWriter(target, reader.fieldnames or [], lineterminator='\n')
    writer.writeheader()
    writer.writerows(
      row for i, row in enumerate(rows) if i % every == 0 or i == len(rows) - 1 or row[_RETURN]
    )


def _acting(run: pathlib.Path) -> checkpoint.Checkpoint:
  found = checkpoint.load_found(run)
  acting = {name: array for name, array in found.arrays.items() if name.startswith(_ACTING)}
  if not acting:
    raise SystemExit(f'error: {found.path} holds no {_ACTING} arrays: train it with this version')
  return dataclasses.replace(found, arrays=acting)


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
  parser.add_argument('run_dir', type=pathlib.Path)
  parser.add_argument('folder', type=pathlib.Path)
  parser.add_argument('--curve_only', action='store_true', help='without a checkpoint')
  given = parser.parse_args()
  keep(given.run_dir, given.folder, curve_only=given.curve_only)
