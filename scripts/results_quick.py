"""Repeats the rows of docs/results.md that take minutes: `python scripts/results_quick.py`.

Short runs are trained again. Of the long runs, two checkpoints in docs/evidence are played. The
exit code is 1 if a return is below the row's lower bound, which leaves room for luck. New runs are
kept in runs/results_quick.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_FOLDER = _ROOT / 'runs' / 'results_quick'


class Row(NamedTuple):
  """A row of the page to repeat.

  arguments: of seed-acme. field: of the JSON record that it prints, with the return. least: the
    lowest return that passes.
  """

  name: str
  arguments: tuple[str, ...]
  field: str
  least: float


def trained(config: str, seed: int, field: str, least: float, *options: str) -> Row:
  arguments = ('train', f'--config={config}', f'--config.seed={seed}', *options)
  return Row(
    f'{config}, seed {seed}', (*arguments, '--launch=single_process', '--json'), field, least
  )


def played(folder: str, least: float, episodes: int) -> Row:
  arguments = ('evaluate', f'docs/evidence/{folder}', f'--episodes={episodes}', '--json')
  return Row(f'docs/evidence/{folder}, played', arguments, 'return_mean', least)


_OF_TRAINING = 'episode_return_last_100'
_SEEDS = (1, 2, 3)
ROWS = (
  *(trained('cartpole_vtrace', seed, _OF_TRAINING, 475) for seed in _SEEDS),
  *(trained('cartpole_ppo', seed, _OF_TRAINING, 475) for seed in _SEEDS),
  *(
    trained('memory_chain_vtrace', seed, _OF_TRAINING, 0.9, '--config.total_steps=100000')
    for seed in _SEEDS
  ),
  played('pong_vtrace', 12, episodes=16),
  played('halfcheetah_sac/seed1', 8_000, episodes=2),
)


def repeat(row: Row, run_dir: pathlib.Path) -> float:
  """Returns the return that is reached now; raises SystemExit if the command fails."""
  is_new = row.arguments[0] == 'train'
  command = [pathlib.Path(sys.executable).with_name('seed-acme'), *row.arguments]
  done = subprocess.run(
    [*command, f'--run_dir={run_dir}'] if is_new else command,
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  if done.returncode:
    raise SystemExit(f'error: {row.name}: {done.stderr.strip().splitlines()[-1]}')
  record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
  return float(record[row.field])


def main(rows: tuple[Row, ...] = ROWS, folder: pathlib.Path = _FOLDER) -> int:
  """Prints a line for each row as soon as it is done; returns 1 if one is below."""
  shutil.rmtree(folder, ignore_errors=True)
  num_below = 0
  for number, row in enumerate(rows, start=1):
    reached = repeat(row, folder / f'{number:02d}')
    is_below = not reached >= row.least  # NaN is below
    num_below += is_below
    print(
      f'{number:2d} of {len(rows)}  {row.name:36}  {reached:10,.2f}  asked: {row.least:8,.2f}'
      f'{"  BELOW" if is_below else ""}',
      flush=True,
    )
  print(f'{len(rows) - num_below} of {len(rows)} reach their lower bounds')
  return int(num_below > 0)


if __name__ == '__main__':
  sys.exit(main())
