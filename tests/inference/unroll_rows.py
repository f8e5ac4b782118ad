"""Rows that are identified by a number, and the row numbers of unrolls."""

from __future__ import annotations

import numpy as np
import tree

from seed_acme import types
from seed_acme.inference import unrolls as unrolls_lib

PADDING = -1.0


def row(number: float, step_type: int = types.MID) -> tuple[types.AgentInput, types.AgentOutput]:
  """Returns one row with every leaf derived from its number."""
  inputs = types.AgentInput(
    step_type=np.uint8(step_type),
    reward=np.float32(number),
    discount=np.float32(1),
    previous_action=np.int32(number),
    observation={'x': np.full((2,), number, np.float32)},
  )
  return inputs, types.AgentOutput(
    np.int32(number), types.ActorCriticOutput(np.full(3, number, np.float32), np.float32(number))
  )


def make_assembler(
  num_environments: int, unroll_length: int, overlap: int, is_recurrent: bool = True
) -> unrolls_lib.UnrollAssembler:
  state = (np.zeros(2, np.float32), np.zeros((), np.float32)) if is_recurrent else ()
  return unrolls_lib.UnrollAssembler(num_environments, unroll_length, overlap, row(0), state)


def append(
  assembler: unrolls_lib.UnrollAssembler,
  env_ids: list[int],
  numbers: list[float],
  step_types: list[int] | None = None,
  version: int = 0,
  is_recurrent: bool = True,
) -> types.Unroll | None:
  """Appends row `numbers[i]` of `env_ids[i]`; the state that enters it is the number + 1000."""
  step_types = step_types or [types.MID] * len(numbers)
  rows = [row(n, s) for n, s in zip(numbers, step_types)]
  inputs, outputs = (stack([r[i] for r in rows]) for i in (0, 1))
  entering = np.array(numbers, np.float32) + 1000
  state = (np.repeat(entering[:, None], 2, axis=1), entering) if is_recurrent else ()
  return assembler.append(np.array(env_ids, np.int64), inputs, outputs, state, version)


def stack(rows: list[types.Nest]) -> types.Nest:
  return tree.map_structure(lambda *leaves: np.stack(leaves), *rows)


def numbers_of(unrolls: types.Unroll, k: int = 0) -> list[float]:
  """Returns the row numbers of unroll k, or `PADDING`, after checking that all leaves agree."""
  inputs, outputs = unrolls.inputs, unrolls.outputs
  numbers = inputs.reward[k]
  for leaf in (
    inputs.previous_action[k],
    inputs.observation['x'][k, :, 0],
    inputs.observation['x'][k, :, 1],
    outputs.action[k],
    outputs.prediction.value[k],
    outputs.prediction.policy_params[k, :, 2],
  ):
    np.testing.assert_array_equal(leaf, numbers)
  # Padding is all zero except for its type; real rows are numbered from 1.
  is_padding = numbers == 0
  assert (inputs.step_type[k][is_padding] == types.LAST).all()
  assert (inputs.discount[k][is_padding] == 0).all()
  return np.where(is_padding, PADDING, numbers).tolist()
