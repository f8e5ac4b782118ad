"""The text, records and pictures of items for `seed-acme inspect --sample=N`."""

from __future__ import annotations

from collections.abc import Sequence
import pathlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from seed_acme.loggers import terminal
from seed_acme.programs.tools.inspection import distribution
from seed_acme.programs.tools.inspection import output as inspect_output
from seed_acme.replay import contact_sheet

if TYPE_CHECKING:  # takes seconds; the caller has imported it already
  from seed_acme.replay import inspection
  from seed_acme.replay import inspection_sample

_STATE = 'initial_state/'
_UNROLL_AXES = 2  # leading axes of our leaves: unrolls, rows

Ranges = dict[str, 'inspection_sample.Range']


def item_ranges(items: Sequence[inspection_sample.Item]) -> list[Ranges]:
  """Returns the range of every leaf of every item."""
  from seed_acme.replay import inspection_sample

  return [
    {name: inspection_sample.value_range(array) for name, array in item.leaves.items()}
    for item in items
  ]


def sample_lines(
  table: inspection.Table,
  items: Sequence[inspection_sample.Item],
  asked: int,
  sheets: Sequence[pathlib.Path],
  files: Sequence[pathlib.Path],
) -> list[str]:
  """Returns a line per item, then a line per leaf over all items. asked: how many were wanted."""
  ranges = item_ranges(items)
  num_different = len({item.key for item in items})
  lines = [
    f'{table.name}: {len(items)} drawn, {num_different} different' + _missing(table, items, asked),
    f'  {_meaning(table)}',
    f'  {"key":>20}  {"priority":>10}  {"probability":>11}  {"sampled":>7}  {"NaN":>5}',
  ]
  for item, found in zip(items, ranges):
    num_nan = sum(leaf.num_nan for leaf in found.values())
    lines.append(
      f'  {item.key:20}  {terminal.number(item.priority):>10}  '
      f'{terminal.number(item.probability):>11}  {item.times_sampled:7}  {num_nan:5}'
    )
  lines += [
    '',
    *distribution.lines('priority', [item.priority for item in items]),
    *distribution.lines('times sampled', [item.times_sampled for item in items]),
    '',
  ]
  lines += _leaf_lines(ranges)
  lines += ['', *(f'Pictures: {path} (rows: items, columns: time)' for path in sheets)]
  if files:
    lines.append(f'Items: {len(files)} files {files[0].parent}/item_*.npz')
  return lines if lines[-1] else lines[:-1]


def _missing(table: inspection.Table, items: Sequence[inspection_sample.Item], asked: int) -> str:
  """Explains why there are fewer items than were asked for; '' if there are enough."""
  if len(items) >= asked:
    return ''
  if table.is_harmless_to_sample:
    return f' of the {asked} asked for: it holds {table.limiter.size}'
  return f' of the {asked} asked for: it let no more out in time'


def _meaning(table: inspection.Table) -> str:
  ages = (
    '`policy_version` dates them in updates'
    if table.holds_unrolls
    else "ages unknown: Reverb tells no item's"
  )
  if table.is_harmless_to_sample:
    return (
      'of the newest items, about one a second; priority as inserted, sampled by '
      f'inspections only; {ages}'
    )
  return f"as the table's own sampler draws; sampled counts this draw; {ages}"


def _extremes_and_mean(leaves: Sequence[inspection_sample.Range]) -> tuple[str, str, str]:
  known = [leaf for leaf in leaves if leaf.minimum is not None]
  if not known:
    return '-', '-', '-'
  return (
    terminal.number(min(leaf.minimum for leaf in known)),  # type: ignore[type-var,arg-type]
    terminal.number(max(leaf.maximum for leaf in known)),  # type: ignore[type-var,arg-type]
    terminal.number(float(np.mean([leaf.mean for leaf in known]))),  # type: ignore[arg-type]
  )


def _leaf_lines(ranges: Sequence[Ranges]) -> list[str]:
  """Returns a line for each leaf over all items; it says so if shapes differ between items."""
  rows = [('leaf', 'dtype', 'shape', 'min', 'max', 'mean', 'NaN')]
  for name in ranges[0]:
    found = [item[name] for item in ranges if name in item]
    shapes = {leaf.shape for leaf in found}
    shape = inspect_output.shape_words(found[0].shape) + (' varies' if len(shapes) > 1 else '')
    num_nan = sum(leaf.num_nan for leaf in found)
    rows.append((name, found[0].dtype, shape, *_extremes_and_mean(found), str(num_nan)))
  return [f'  {line}' for line in terminal.aligned(rows, num_left=3)]


def sample_record(
  table: inspection.Table,
  items: Sequence[inspection_sample.Item],
  asked: int,
  sheets: Sequence[pathlib.Path],
  files: Sequence[pathlib.Path],
) -> dict[str, Any]:
  """Returns the same as a JSON record, with the leaves of each item."""
  finite = inspect_output.finite
  item_records = [
    {
      'key': str(item.key),  # 64 bits, which many JSON readers would round
      'priority': finite(item.priority),
      'probability': finite(item.probability),
      'times_sampled': item.times_sampled,
      'leaves': {name: _leaf_record(leaf) for name, leaf in ranges.items()},
    }
    for item, ranges in zip(items, item_ranges(items))
  ]
  return {
    'table': table.name,
    'meaning': _meaning(table),
    'asked': asked,
    'missing': _missing(table, items, asked).strip(),
    'items': item_records,
    'pictures': [str(path) for path in sheets],
    'files': [str(path) for path in files],
  }


def _leaf_record(leaf: inspection_sample.Range) -> dict[str, Any]:
  finite = inspect_output.finite
  return {
    'shape': list(leaf.shape),
    'dtype': leaf.dtype,
    'min': finite(leaf.minimum),
    'max': finite(leaf.maximum),
    'mean': finite(leaf.mean),
    'nan': leaf.num_nan,
  }


def write_sheets(
  table: inspection.Table, items: Sequence[inspection_sample.Item], folder: pathlib.Path
) -> list[pathlib.Path]:
  """Writes a contact sheet of every leaf that holds images, `folder/inspect_<leaf>.png`.

  Rows are items (their first unroll), columns time steps. Leaves of an unroll's recurrent state are
  skipped, because their axes are not time, even if they hold stacked screens.
  """
  num_leading = _UNROLL_AXES if table.holds_unrolls else None
  paths = []
  for name in items[0].leaves:
    if table.holds_unrolls and name.startswith(_STATE):
      continue
    rows = [
      contact_sheet.image_frames(item.leaves[name], num_leading)
      for item in items
      if name in item.leaves
    ]
    pictures = [frames for frames in rows if frames is not None]
    if not pictures or len({frames.shape[1:] for frames in pictures}) > 1:
      continue
    path = folder / f'inspect_{re.sub("[^A-Za-z0-9_-]+", ".", name)}.png'
    contact_sheet.write(contact_sheet.compose(pictures), path)
    paths.append(path)
  return paths
