"""State that the inference server keeps for every environment, addressed by `env_id`."""

from __future__ import annotations

import numpy as np
import tree

from seed_acme import types
from seed_acme.inference import noise
from seed_acme.tensors import nests


class EnvironmentSlots:
  """Recurrent state, last action, run, request number and end of episode of N environments.

  These are host arrays, because they are read and written by row once per batch, and a copy
  of the state must be on the host anyway when an unroll starts. Used by the inference thread only.
  """

  def __init__(
    self, num_environments: int, action_spec: types.Nest, initial_state: types.Nest, seed: int
  ):
    """initial_state: nest of `[1, ...]`, the state that a new episode starts from."""
    self._seed = seed
    self._initial_state = tree.map_structure(lambda x: np.array(x)[0], initial_state)
    self.state = tree.map_structure(
      lambda x: np.repeat(x[None], num_environments, axis=0), self._initial_state
    )
    self.action = tree.map_structure(
      lambda spec: np.zeros((num_environments, *spec.shape), spec.dtype), action_spec
    )
    self.run_ids = np.zeros(num_environments, np.int64)
    self.is_known = np.zeros(num_environments, bool)
    self.has_ended = np.ones(num_environments, bool)  # so that the next row must be FIRST
    self.request_numbers = np.full(num_environments, -1, np.int64)
    self.row_numbers = np.zeros(num_environments, np.uint64)
    self.noise_keys = np.zeros(num_environments, np.uint64)

  def is_new_run(self, env_ids: np.ndarray, run_ids: np.ndarray) -> np.ndarray:
    """`[N]` bool: environments that (re)started since they were last seen."""
    return ~self.is_known[env_ids] | (self.run_ids[env_ids] != run_ids)

  def reset(self, env_ids: np.ndarray, run_ids: np.ndarray) -> None:
    """Clears the slots of these environments and starts their new runs."""
    tree.map_structure(
      lambda slot, initial: slot.__setitem__(env_ids, initial), self.state, self._initial_state
    )
    tree.map_structure(lambda slot: slot.__setitem__(env_ids, 0), self.action)
    self.run_ids[env_ids] = run_ids
    self.is_known[env_ids] = True
    self.has_ended[env_ids] = True
    self.request_numbers[env_ids] = -1
    self.row_numbers[env_ids] = 0
    self.noise_keys[env_ids] = noise.stream_keys(self._seed, env_ids, run_ids)

  def write(
    self,
    env_ids: np.ndarray,
    request_numbers: np.ndarray,
    step_type: np.ndarray,
    action: types.Nest,
    state: types.Nest,
  ) -> None:
    """Stores the inputs and outputs of one batch; every leaf `[N, ...]`."""
    nests.map_arrays(lambda slot, rows: slot.__setitem__(env_ids, rows), self.state, state)
    nests.map_arrays(lambda slot, rows: slot.__setitem__(env_ids, rows), self.action, action)
    self.request_numbers[env_ids] = request_numbers
    self.has_ended[env_ids] = step_type == types.LAST
    self.row_numbers[env_ids] += np.uint64(1)
