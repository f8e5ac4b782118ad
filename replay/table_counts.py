"""Reverb's counts of the table of unrolls."""

from __future__ import annotations

from typing import NamedTuple

import reverb

from seed_acme.replay import tables


class TableCounts(NamedTuple):
  """Counts of items in the table of unrolls; inserted and sampled are those of its rate limiter."""

  inserted: int
  sampled: int
  size: int


def read(client: reverb.Client, timeout_s: int) -> TableCounts:
  """Reads the counts. Raises `reverb.ReverbError` or RuntimeError if no answer comes in time."""
  table = client.server_info(timeout=timeout_s)[tables.UNROLLS]
  limiter = table.rate_limiter_info
  return TableCounts(
    limiter.insert_stats.completed, limiter.sample_stats.completed, table.current_size
  )
