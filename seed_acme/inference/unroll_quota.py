"""Counts, for strictly on-policy updates, the unrolls that each environment gives to an update."""

from __future__ import annotations

import numpy as np


class UnrollQuota:
  """Every training environment gives the same number of unrolls to each update, then waits.

  An update therefore learns from all rows that were acted with the weights it starts from,
  and from no others. Used by the inference thread only.
  """

  def __init__(self, num_environments: int, unrolls_per_update: int):
    self._unrolls_per_update = unrolls_per_update
    self._num_given = np.zeros(num_environments, np.int64)  # unrolls for the current update
    self._version = -1

  def renew(self, version: int) -> None:
    """Starts a new quota if the newest published weights, of version `version`, are new."""
    if version != self._version:
      self._version = version
      self._num_given[:] = 0

  def add(self, env_ids: np.ndarray) -> None:
    """Counts one more unroll of each of these environments."""
    self._num_given[env_ids] += 1

  def is_last(self, env_ids: np.ndarray) -> bool:
    """Whether the current unroll is the last of the quota; the environments step together."""
    return bool((self._num_given[env_ids] == self._unrolls_per_update - 1).all())

  def is_used_up(self, env_ids: np.ndarray) -> bool:
    """Whether any of these environments must wait for new weights."""
    return bool((self._num_given[env_ids] >= self._unrolls_per_update).any())
