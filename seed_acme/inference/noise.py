"""Random numbers that depend on the environment and its row, not on the batch.

A counter-based generator (SplitMix64's finaliser over a hash of the counters): the same
seed, environment, run and row give the same numbers in any batch, order or process.
Numpy has no vectorised generator with one key per row.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_SHIFT_41 = np.uint64(41)


def _mix(x: np.ndarray) -> np.ndarray:
  x = (x ^ (x >> _SHIFT_30)) * _MIX_1
  x = (x ^ (x >> _SHIFT_27)) * _MIX_2
  return x ^ (x >> _SHIFT_31)


def stream_keys(seed: int, env_ids: np.ndarray, run_ids: np.ndarray) -> np.ndarray:
  """Returns `[N]` uint64, the key of each environment's random stream in its current run."""
  with np.errstate(over='ignore'):  # the arithmetic is modulo 2^64 by design
    key = _mix(np.uint64(seed) + _GOLDEN + env_ids.astype(np.uint64) * _MIX_1)
    return _mix(key ^ run_ids.astype(np.uint64))


def uniforms(keys: np.ndarray, row_numbers: np.ndarray, num_uniforms: int) -> np.ndarray:
  """Returns `[N, num_uniforms]` float32 in (0, 1), with 23 random bits each.

  keys: `[N]` uint64 from `stream_keys`; row_numbers: `[N]` uint64, position in each stream.
  With 24 bits, adding one half would round the largest number up to 1.
  """
  counters = row_numbers[:, None] * np.uint64(num_uniforms) + np.arange(
    1, num_uniforms + 1, dtype=np.uint64
  )
  # Two rounds, because neighbouring counters differ in few bits, and one round leaves traces.
  bits = _mix(_mix(counters * _GOLDEN + keys[:, None])) >> _SHIFT_41
  return (bits.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
