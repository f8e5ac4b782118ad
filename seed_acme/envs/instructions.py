"""Encodes instructions as arrays of word ids, which are sent and stored like any other array."""

from __future__ import annotations

import zlib

import numpy as np

from seed_acme.envs import choices

NUM_BUCKETS = 1000  # as in IMPALA; two words may share one
PADDING = 0


def spec(max_words: int) -> choices.ChoicesArray:
  """Returns the specification `[max_words]` int32: 1 ... `NUM_BUCKETS`, 0 after the last word."""
  return choices.ChoicesArray(np.full(max_words, NUM_BUCKETS + 1), np.int32, 'instruction')


def encode(text: str, max_words: int) -> np.ndarray:
  """Returns the id of each word, the same in every process; words after `max_words` are left out.

  Words are separated by spaces, and converted to lower case.
  """
  ids = np.full(max_words, PADDING, np.int32)
  for position, word in enumerate(text.lower().split()[:max_words]):
    ids[position] = 1 + zlib.crc32(word.encode('utf-8')) % NUM_BUCKETS
  return ids
