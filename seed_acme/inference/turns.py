"""Makes training environments and the learner take turns, for strictly on-policy updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import recorder as recorder_lib
from seed_acme.inference import rows as rows_lib
from seed_acme.inference import slots as slots_lib
from seed_acme.inference import unroll_quota
from seed_acme.inference import unrolls as unrolls_lib
from seed_acme.tensors import nests

# Maps rows to inputs, entering state and exploration, like `rows.InputReader`.
ReadInputs = Callable[[rows_lib.Rows], tuple[types.AgentInput, types.Nest, types.Exploration]]


class StrictTurns:
  """Holds back requests until the weights that must act on their rows are published.

  Used by the inference thread only.
  """

  def __init__(
    self,
    quota: unroll_quota.UnrollQuota,
    slots: slots_lib.EnvironmentSlots,
    unrolls: unrolls_lib.UnrollAssembler,
    recorder: recorder_lib.Recorder,
    read_inputs: ReadInputs,
    policy: policy_lib.Policy,
    num_training: int,
    is_right: Callable[[types.ActorRequest], bool],
  ):
    """is_right: whether the values of a request match the specification; a wrong request is refused
    when it is answered, and must not finish an unroll before."""
    self._quota = quota
    self._slots = slots
    self._unrolls = unrolls
    self._recorder = recorder
    self._read_inputs = read_inputs
    self._policy = policy
    self._num_training = num_training
    self._is_right = is_right
    self._example_outputs = policy.example_row()[1]

  def hold_back(self, request: types.ActorRequest) -> bool:
    """Whether the request must wait for the next weights; passes on unrolls that it finishes.

    It waits if its environments have given the current update all their unrolls, or if its row
    finishes the last one. In the second case the unroll is finished here. Must be called again
    with the same request until the result is False.
    """
    env_ids = request.env_ids
    if not env_ids.size:
      return False
    if batching.refuse_repeated_environments([request], self._num_training)[0] is not None:
      return False  # evaluation, or environments that are refused when the request is answered
    is_new_run = self._slots.is_new_run(env_ids, request.run_ids).any()
    stored = self._slots.request_numbers[env_ids]
    if not is_new_run and (stored != request.request_number - 1).any():
      return False  # repeated or wrong: answered without acting
    self._quota.renew(self._policy.newest_version())
    if self._quota.is_used_up(env_ids):
      return True
    is_end = (
      not is_new_run
      and self._quota.is_last(env_ids)
      and bool(self._unrolls.is_last_row(env_ids).all())
    )
    if is_end and not self._is_right(request):
      return False
    if is_end:
      self._finish_unrolls(request)
    return is_end

  def _finish_unrolls(self, request: types.ActorRequest) -> None:
    """Appends the row as the last one of its unrolls, with outputs of zeros, which no loss reads.
    The row also becomes row 0 of the next unrolls, then with an action of the new weights."""
    size = request.env_ids.size
    inputs, state, _ = self._read_inputs(rows_lib.Rows([request], size))
    outputs = nests.map_arrays(
      lambda x: np.zeros((size, *np.shape(x)), x.dtype), self._example_outputs
    )
    self._recorder.append(request.env_ids, inputs, outputs, state, self._policy.version)
    self._unrolls.rewind(request.env_ids)
