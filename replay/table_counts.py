"""What Reverb counts of the table of unrolls."""

from __future__ import annotations

from typing import NamedTuple

import reverb

from seed_acme.replay import tables


class TableCounts(NamedTuple):
  """Of the table of unrolls, in items; inserted and sampled as its rate limiter counts them."""

  inserted: int
  sampled: int
  size: int


def read(client: reverb.Client, timeout_s: int) -> TableCounts:
  """Raises `reverb.ReverbError` or RuntimeError where the server does not answer in time."""
  table = client.server_info(timeout=timeout_s)[tables.UNROLLS]
  limiter = table.rate_limiter_info
  return TableCounts(
    limiter.insert_stats.completed, limiter.sample_stats.completed, table.current_size
  )
