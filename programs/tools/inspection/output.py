"""A table's description for `seed-acme inspect`, as text and as a JSON record."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from seed_acme.loggers import terminal

if TYPE_CHECKING:  # takes seconds, and this module calls none of it
  from seed_acme.replay import inspection
  from seed_acme.replay import rate_limit

INDENT = 12 * ' '  # width of the labels' column
UNKNOWN = 'Unknown: priority, age and samples of single items ({reason}); --sample=N draws some.'
_NEITHER = 'neither'
_OF_ALL_SHARDS = (
  'inserts_per_s',
  'inserts_waiting',
  'samples_per_s',
  'samples_waiting',
  'interval_s',
  'signature',
)
_IN_LEARNER = ", in the learner's process; the mirror has some of them"


def table_lines(table: inspection.Table, rates: inspection.Rates) -> list[str]:
  """Returns one table as a block of text."""
  limiter, rule = table.limiter, limiter_words(table.limiter)
  if table.shards:
    limiter = table.shards[0].limiter
    rule = f'{limiter_words(limiter, tells_state=False)}; so each shard'
  lines = [
    f'{table.name}: {_size_words(table.limiter)}',
    _line(
      'selectors',
      f'sampler {table.sampler}, remover {table.remover}; ' + _use_words(limiter.max_times_sampled),
    ),
    _line('limiter', rule),
    _line('blocked', blocked_words(table, rates)),
    *_count_lines(table, rates),
  ]
  if not table.shards:
    lines.append(_line('age', _age_words(table, rates)))
  episodes = (
    f'{table.num_episodes:,} with items here; '
    f'{table.num_deleted_episodes:,} times the last item of one left'
  )
  return [*lines, _line('episodes', episodes), *_leaf_lines(table)]


def _count_lines(table: inspection.Table, rates: inspection.Rates) -> list[str]:
  """Returns lines on inserts, samples and shards."""
  inserts, samples = table.limiter.inserts, table.limiter.samples
  insert_words = f'{inserts:,} so far, {_rate(rates.inserts_per_s)}'
  sample_words = f'{samples:,} so far, {_rate(rates.samples_per_s)}'
  if not table.shards:
    until_insert, until_sample = _distances(table.limiter)
    insert_words += f'; {until_insert}'
    sample_words += f'; {until_sample}'
  lines = [_line('inserts', insert_words), _line('samples', sample_words)]
  for i, shard in enumerate(table.shards):
    until_insert, until_sample = _distances(shard.limiter)
    words = f'{_size_words(shard.limiter)}; inserts: {until_insert}; samples: {until_sample}'
    if shard.limiter.bounds_inserts and not shard.limiter.is_queue_like:
      words += f'; the difference is {shard.limiter.difference:g}'
    lines.append(_line(f'shard {i}', words))
  if inserts:
    lines.append(
      _line(
        'use',
        f'{terminal.number(samples / inserts, 3)} samples per insert; '
        f'{table.num_unique_samples:,} of {inserts:,} inserted items '
        f'({table.num_unique_samples / inserts:.0%}) were sampled',
      )
    )
  return lines


def _distances(limiter: rate_limit.Limiter) -> tuple[str, str]:
  """Returns how many calls are left until inserts block, and until samples do."""
  return (
    _distance_words(limiter.until_inserts_block(), 'insert', 'no sample'),
    _distance_words(limiter.until_samples_block(), 'sample', 'no insert'),
  )


def _leaf_lines(table: inspection.Table) -> list[str]:
  if table.leaves is None:
    return [_line('items', 'no signature: --sample=N shows what they hold')]
  width = max((len(leaf.name) for leaf in table.leaves), default=0)
  return [
    _line('items', f'{len(table.leaves)} leaves' + _IN_LEARNER * table.is_in_learner),
    *(
      f'    {leaf.name:{width}}  {leaf.dtype:8} {shape_words(leaf.shape)}' for leaf in table.leaves
    ),
  ]


def _use_words(max_times_sampled: int) -> str:
  if not max_times_sampled:
    return 'sampling removes nothing'
  if max_times_sampled == 1:
    return 'an item leaves after 1 sample, so none here was sampled'
  return f'an item leaves after {max_times_sampled} samples'


def _size_words(limiter: rate_limit.Limiter) -> str:
  return f'{limiter.size:,} of {limiter.max_size:,} items ({limiter.size / limiter.max_size:.0%})'


def _line(label: str, text: str) -> str:
  return f'  {label}'.ljust(len(INDENT)) + text


def limiter_words(limiter: rate_limit.Limiter, *, tells_state: bool = True) -> str:
  """Describes the rate limiter's rule, and its current state unless that is not asked for."""
  least = limiter.min_size_to_sample
  if limiter.is_queue_like:
    return (
      f'queue: each item is handed out once; inserts block while {limiter.max_size:,} '
      'wait, samples while none does'
    )
  rules = [f'samples block below {least:,} item{"s" if least > 1 else ""}']
  if not limiter.bounds_inserts and not limiter.bounds_samples:
    return f'minimum size: {rules[0]}, inserts never'
  low = f'{limiter.min_diff:g}' if limiter.bounds_samples else '-inf'
  high = f'{limiter.max_diff:g}' if limiter.bounds_inserts else 'inf'
  now = f', now {limiter.difference:g},' if tells_state else ''
  return (
    f'ratio: {limiter.samples_per_insert:g} samples per insert; {rules[0]}, and '
    f'{limiter.samples_per_insert:g} x inserts - samples{now} is held from {low} to {high}'
  )


def blocked(limiter: rate_limit.Limiter) -> str:
  """Returns which calls would have to wait now: `inserts`, `samples`, `both` or `neither`."""
  inserts = limiter.until_inserts_block().is_blocked
  samples = limiter.until_samples_block().is_blocked
  if inserts and samples:
    return 'both'
  return 'inserts' if inserts else 'samples' if samples else 'neither'


def blocked_words(table: inspection.Table, rates: inspection.Rates) -> str:
  """Describes which calls would block now, in which shard, and how long they recently waited."""
  words = _blocked_now(table.limiter)
  if table.shards:
    each = [_blocked_now(shard.limiter) for shard in table.shards]
    named = [f'shard {i}: {text}' for i, text in enumerate(each) if text != _NEITHER]
    words = ', '.join(named) or _NEITHER
  if rates.inserts_waiting is None or rates.samples_waiting is None:
    return words
  return (
    f'{words}; in the last {rates.interval_s:.1f} s inserts were kept waiting '
    f'{rates.inserts_waiting:.0%} of the time, samples {rates.samples_waiting:.0%}'
  )


def _blocked_now(limiter: rate_limit.Limiter) -> str:
  words = {
    'inserts': 'inserts blocked',
    'samples': 'samples blocked',
    'neither': _NEITHER,
    'both': 'inserts and samples blocked: nothing can go on',
  }[blocked(limiter)]
  if limiter.min_size_to_sample > limiter.max_size:
    words += (
      f' for ever (the table holds at most {limiter.max_size:,} items, '
      f'samples need {limiter.min_size_to_sample:,})'
    )
  return words


def _distance_words(distance: rate_limit.Distance, call: str, other: str) -> str:
  if distance.is_blocked:
    return 'the next one blocks'
  if distance.at_least is None:
    return 'never blocks'
  number = f'{distance.at_least:,}'
  if not distance.is_exact:
    number = f'at least {number}' + (
      '' if distance.at_most is None else f', at most {distance.at_most:,},'
    )
  return f'{number} more until {call}s block, if {other} comes'


def _rate(per_s: float | None) -> str:
  return 'rate unknown (the counts began anew)' if per_s is None else f'{terminal.number(per_s)}/s'


def _age_words(table: inspection.Table, rates: inspection.Rates) -> str:
  limiter = table.limiter
  if not table.is_fifo:
    return "unknown: the table is not first in, first out, and Reverb tells no item's"
  if not limiter.size:
    return 'no items'
  words = f'inserted 0 to {limiter.size - 1:,} items ago, one each (first in, first out)'
  if rates.inserts_per_s:
    oldest_s = terminal.number(limiter.size / rates.inserts_per_s, 3)
    words += f'; the oldest about {oldest_s} s at this rate'
  return words


def table_record(table: inspection.Table, rates: inspection.Rates) -> dict[str, Any]:
  """Returns the same as a JSON record; None = unlimited or unknown."""
  limiter = table.limiter
  inserts, samples = limiter.until_inserts_block(), limiter.until_samples_block()
  if table.shards:
    return {
      **table_record(dataclasses.replace(table, shards=()), rates),
      'blocked': None,
      'inserts_until_block': None,
      'samples_until_block': None,
      'samples_until_block_at_most': None,
      'oldest_item_inserts_ago': None,
      'shards': [
        {k: v for k, v in table_record(shard, rates).items() if k not in _OF_ALL_SHARDS}
        for shard in table.shards
      ],
    }
  return {
    'size': limiter.size,
    'capacity': limiter.max_size,
    'sampler': table.sampler,
    'remover': table.remover,
    'max_times_sampled': limiter.max_times_sampled,
    'rate_limiter': {
      'words': limiter_words(limiter),
      'samples_per_insert': limiter.samples_per_insert,
      'min_size_to_sample': limiter.min_size_to_sample,
      'min_diff': limiter.min_diff if limiter.bounds_samples else None,
      'max_diff': limiter.max_diff if limiter.bounds_inserts else None,
      'difference': finite(limiter.difference),
    },
    'blocked': blocked(limiter),
    'inserts': limiter.inserts,
    'inserts_until_block': inserts.at_least,
    'inserts_per_s': rates.inserts_per_s,
    'inserts_waiting': rates.inserts_waiting,
    'samples': limiter.samples,
    'samples_until_block': samples.at_least,
    'samples_until_block_at_most': samples.at_most,
    'samples_per_s': rates.samples_per_s,
    'samples_waiting': rates.samples_waiting,
    'interval_s': rates.interval_s,
    'unique_samples': table.num_unique_samples,
    'oldest_item_inserts_ago': (limiter.size - 1 if table.is_fifo and limiter.size else None),
    'episodes': table.num_episodes,
    'deleted_episodes': table.num_deleted_episodes,
    'signature': None if table.leaves is None else [leaf._asdict() for leaf in table.leaves],
  }


def shape_words(shape: Sequence[int | None] | None) -> str:
  """Returns a shape as `[2, ?, 84]`, or `?` if not even the rank is fixed."""
  if shape is None:
    return '?'
  return f'[{", ".join("?" if size is None else str(size) for size in shape)}]'


def finite(value: float | None) -> float | None:
  """Returns None for NaN and infinities, which JSON does not have."""
  return value if value is not None and math.isfinite(value) else None
