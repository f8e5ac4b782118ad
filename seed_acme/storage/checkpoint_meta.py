"""Checks the metadata of a checkpoint against what the training loop saves."""

from __future__ import annotations

import math
from typing import Any

from seed_acme.progress import counting


def wrong(meta: Any) -> str:
  """Describes what is wrong with the metadata; '' if nothing is.

  Missing values are not an error here; code that needs them checks for them.
  """
  if not isinstance(meta, dict):
    return f'"meta" is {_kind(meta)}, no object'
  counts = meta.get('counts', {})
  if not isinstance(counts, dict):
    return f'"counts" is {_kind(counts)}, no object'
  for name, count in counts.items():
    if name not in counting.Counts._fields:
      return f'"counts" has an unknown {name!r}'
    if not _is_number(count) or count < 0 or (isinstance(count, float) and name != 'wall_s'):
      return f'{name} of "counts" is {_short(count)}, no count'
  resumptions = meta.get('resumptions', 0)
  if not isinstance(resumptions, int) or isinstance(resumptions, bool) or resumptions < 0:
    return f'"resumptions" is {_short(resumptions)}, no count'
  return _wrong_episodes(meta.get('episodes', {})) or _wrong_best(meta.get('best'))


def _wrong_episodes(episodes: Any) -> str:
  if not isinstance(episodes, dict):
    return f'"episodes" is {_kind(episodes)}, no object'
  for kind, window in episodes.items():
    if not isinstance(window, list):
      return f'{kind} of "episodes" is {_kind(window)}, no list'
    for episode in window:
      # Checkpoints of earlier commits do not say at which step an episode ended.
      is_episode = isinstance(episode, list) and len(episode) in (3, 4)
      if not is_episode or not all(map(_is_number, episode)):
        return f'{kind} of "episodes" holds {_short(episode)}, not score, return, length and step'
  return ''


def _wrong_best(best: Any) -> str:
  if best is None:
    return ''
  if not isinstance(best, dict) or best.keys() != {'updates', 'evaluation_return', 'num_episodes'}:
    return f'"best" is {_short(best)}, not updates, evaluation_return and num_episodes'
  for name, value in best.items():
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not _is_number(value) or not (is_count or name == 'evaluation_return'):
      return f'{name} of "best" is {_short(value)}, no number'
  return ''


def _is_number(value: Any) -> bool:
  """Whether the value is a JSON number: a finite float, or an integer of at most 64 bits."""
  if isinstance(value, int):
    return not isinstance(value, bool) and abs(value) < 2**63
  return isinstance(value, float) and math.isfinite(value)


def _kind(value: Any) -> str:
  return f'a {type(value).__name__}'


def _short(value: Any) -> str:
  text = repr(value)
  return text if len(text) <= 40 else f'{text[:37]}...'
