"""`seed-acme plot`: draws learning curves of runs in one figure."""

from __future__ import annotations

import dataclasses

import tyro

from seed_acme import types
from seed_acme.programs.pictures import plot as plot_lib


@dataclasses.dataclass(frozen=True)
class PlotArguments:
  """Draw return against steps and against wall time, several runs in one figure.

  run_dirs: folders of the runs.
  out: picture to write.
  reference: CSV file of published points (columns label, steps, return), drawn as markers; '' =
    none.
  labels: a name for each run in the legend, in the order of the runs. Runs of one name are joined
    into their mean with its 95 % interval.
  """

  run_dirs: tyro.conf.Positional[tuple[str, ...]]
  out: str = 'plot.png'
  reference: str = ''
  labels: tuple[str, ...] = ()


def plot(arguments: PlotArguments) -> int:
  """Draws the figure and returns the exit code; raises `UserError`."""
  if not arguments.run_dirs:
    raise types.UserError('plot needs at least one run folder: seed-acme plot runs/latest')
  plot_lib.plot(list(arguments.run_dirs), arguments.out, arguments.reference, arguments.labels)
  print(f'Plot: {arguments.out}')
  return 0
