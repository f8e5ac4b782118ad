"""Loads the rows of one or more runs as a pandas DataFrame. Needs the extra `metrics`."""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING, Any

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.loggers import csv_file
from seed_acme.storage import opening

if TYPE_CHECKING:
  import pandas as pd

RUN = 'run'
_COUNTS = (csv_file.KEY, 'updates', 'frames', 'episodes', 'trained_steps')
_Path = str | os.PathLike[str]


def load(run_dirs: _Path | Sequence[_Path]) -> pd.DataFrame:
  """Implements `seed_acme.load_metrics`, which documents it."""
  pandas = extras.import_module('pandas', 'metrics', 'load_metrics')
  if isinstance(run_dirs, (str, os.PathLike)):
    return _load_one(run_dirs, pandas)
  if not run_dirs:
    raise types.UserError(
      "load_metrics needs at least one run folder: seed_acme.load_metrics('runs/latest')"
    )
  frames = []
  for run_dir in run_dirs:
    frame = _load_one(run_dir, pandas)
    frame.insert(0, RUN, os.fspath(run_dir))
    frames.append(frame)
  return pandas.concat(frames, ignore_index=True)


def _load_one(run_dir: _Path, pandas: Any) -> pd.DataFrame:
  run = opening.open_run(run_dir)
  columns = csv_file.read(run.metrics) if run.metrics.is_file() else {}
  if not columns.get(csv_file.KEY):
    raise types.UserError(
      f'{os.fspath(run_dir)} has no metrics yet: a run writes its first row '
      'after its first updates; its logs say what it waits for'
    )
  frame = pandas.DataFrame(columns)
  whole = [name for name in _COUNTS if name in columns and frame[name].notna().all()]
  return frame.astype(dict.fromkeys(whole, 'int64'))
