"""The items in a run's saved replay memory, for `seed-acme inspect` without `--sample`."""

from __future__ import annotations

import time
from typing import Any

from seed_acme.programs.tools.inspection import distribution
from seed_acme.replay import saved_items
from seed_acme.storage import run_directory

_FOREIGN = 'a Reverb server tells them to nobody, and --server knows no checkpoints'


class Saved:
  """A reader of the items in a run's newest saved memory, which caches them."""

  def __init__(self, run: run_directory.RunDirectory | None):
    """run: None if only the address of a server is known."""
    self._run = run
    self._items: saved_items.SavedItems | None = None
    self._state: tuple[str, int] | None = None
    self.reason = _FOREIGN  # why there are no items

  def look(self) -> saved_items.SavedItems | None:
    """Returns the newest saved items; None if there are none, and `reason` says why."""
    if self._run is None:
      return None
    try:
      folder = saved_items.newest_folder(self._run.checkpoints)
      state = (str(folder), folder.parent.stat().st_mtime_ns)
      if state != self._state:
        self._items = saved_items.newest(self._run.checkpoints)
        self._state = state
    except saved_items.NothingSaved as error:
      self._items, self._state, self.reason = None, None, str(error)
    except OSError:  # the folder is just being replaced; keep the known items
      pass
    return self._items


def lines(saved: saved_items.SavedItems, table: str) -> list[str]:
  """Returns histograms for one table, with the time at which its items were saved."""
  items = saved.tables.get(table)
  number = 0 if items is None else len(items.keys)
  when = (
    f'{time.strftime("%H:%M:%S", time.localtime(saved.time_s))}, '
    f'{max(0.0, time.time() - saved.time_s):,.0f} s ago, in checkpoint {saved.updates}'
  )
  found = [f'  single items: {number:,}, as saved at {when}']
  if items is None:
    return found
  return [
    *found,
    *distribution.lines('priority', items.priorities),
    *distribution.lines('times sampled', items.times_sampled),
    *distribution.lines('age in seconds then', items.ages_s),
  ]


def record(saved: saved_items.SavedItems | None, table: str) -> dict[str, Any] | None:
  """Returns the same as a JSON record."""
  if saved is None:
    return None
  items = saved.tables.get(table)
  return {
    'checkpoint_updates': saved.updates,
    'time_s': saved.time_s,
    'size': 0 if items is None else len(items.keys),
    'priority': items and distribution.record(items.priorities),
    'times_sampled': items and distribution.record(items.times_sampled),
    'age_s': items and distribution.record(items.ages_s),
  }
