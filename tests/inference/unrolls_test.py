"""UnrollAssembler: exact rows by hand, and any schedule against a reference with lists."""

from __future__ import annotations

import collections

import numpy as np
import psutil
import pytest
import tree

from seed_acme import types
from seed_acme.inference import unrolls as unrolls_lib
from tests.inference import unroll_rows

P = unroll_rows.PADDING
# unroll_length, overlap, numbers appended ('reset' between) -> rows of each unroll, and the number
# of the row whose entering state is its initial state (None = zeros).
SCENARIOS = {
  'overlap 0': (3, 0, [1, 2, 3, 4, 5, 6, 7], [[1, 2, 3, 4], [4, 5, 6, 7]], [1, 4]),
  'overlap 1': (3, 1, [1, 2, 3, 4, 5, 6, 7], [[P, 1, 2, 3, 4], [3, 4, 5, 6, 7]], [None, 3]),
  'overlap = length': (2, 2, [1, 2, 3, 4, 5], [[P, P, 1, 2, 3], [1, 2, 3, 4, 5]], [None, 1]),
  'overlap > length': (
    2,
    3,
    [1, 2, 3, 4, 5, 6, 7],
    [[P, P, P, 1, 2, 3], [P, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]],
    [None, None, 2],
  ),
  'length 1': (1, 0, [1, 2, 3], [[1, 2], [2, 3]], [1, 2]),
  'length 1, overlap 2': (
    1,
    2,
    [1, 2, 3, 4],
    [[P, P, 1, 2], [P, 1, 2, 3], [1, 2, 3, 4]],
    [None, None, 1],
  ),
  'unfinished': (3, 0, [1, 2, 3], [], []),
  'restart mid-unroll': (
    3,
    1,
    [1, 2, 3, 4, 5, 'reset', 11, 12, 13, 14, 15, 16, 17],
    [[P, 1, 2, 3, 4], [P, 11, 12, 13, 14], [13, 14, 15, 16, 17]],
    [None, None, 13],
  ),
  'restart before the first unroll': (
    3,
    0,
    [1, 2, 'reset', 11, 12, 13, 14],
    [[11, 12, 13, 14]],
    [11],
  ),
  'restart at the end of an unroll': (
    2,
    1,
    [1, 2, 3, 'reset', 11, 12, 13],
    [[P, 1, 2, 3], [P, 11, 12, 13]],
    [None, None],
  ),
}


@pytest.mark.parametrize('name', SCENARIOS)
@pytest.mark.parametrize('env_id', [0, 2])
def test_scenario(name, env_id):
  unroll_length, overlap, script, expected, expected_states = SCENARIOS[name]
  assembler = unroll_rows.make_assembler(3, unroll_length, overlap)
  found, states = [], []
  for number in script:
    if number == 'reset':
      assembler.reset(np.array([env_id]))
      continue
    finished = unroll_rows.append(assembler, [env_id], [number])
    if finished is not None:
      assert finished.policy_version.shape == (1, overlap + unroll_length + 1)
      found.append(unroll_rows.numbers_of(finished))
      states.append(finished.initial_state)
  assert found == expected
  for (vector, scalar), number in zip(states, expected_states):
    wanted = 0 if number is None else 1000 + number
    assert scalar.tolist() == [wanted] and vector.tolist() == [[wanted, wanted]]


def test_finished_unrolls_come_in_the_order_of_the_batch():
  assembler = unroll_rows.make_assembler(4, 1, 0)
  unroll_rows.append(assembler, [3, 0, 2], [31, 1, 21])
  finished = unroll_rows.append(assembler, [2, 1, 3], [22, 11, 32])
  assert [unroll_rows.numbers_of(finished, k) for k in (0, 1)] == [[21, 22], [31, 32]]
  assert finished.initial_state[1].tolist() == [1021, 1031]


def test_a_finished_unroll_is_not_changed_by_what_follows():
  assembler = unroll_rows.make_assembler(1, 2, 1)
  finished = [unroll_rows.append(assembler, [0], [n]) for n in (1, 2, 3)][-1]
  for n in range(4, 12):
    unroll_rows.append(assembler, [0], [n])
  assembler.reset(np.array([0]))
  assert unroll_rows.numbers_of(finished) == [P, 1, 2, 3]
  assert finished.initial_state[1].tolist() == [0]


def test_every_row_keeps_its_own_policy_version():
  assembler = unroll_rows.make_assembler(1, 2, 1)
  finished = [unroll_rows.append(assembler, [0], [n], version=10 + n) for n in range(1, 6)]
  assert finished[2].policy_version.tolist() == [[0, 11, 12, 13]]
  assert finished[4].policy_version.tolist() == [[12, 13, 14, 15]]


def test_a_feed_forward_network_has_no_initial_state():
  assembler = unroll_rows.make_assembler(1, 1, 0, is_recurrent=False)
  unroll_rows.append(assembler, [0], [1], is_recurrent=False)
  finished = unroll_rows.append(assembler, [0], [2], is_recurrent=False)
  assert finished.initial_state == () and unroll_rows.numbers_of(finished) == [1, 2]


@pytest.mark.parametrize('overlap', [0, 3])
def test_is_last_row_tells_which_environments_finish_an_unroll_with_their_next(overlap):
  assembler = unroll_rows.make_assembler(3, 2, overlap)
  every = np.arange(3)
  found = []
  for number in range(1, 6):
    unroll_rows.append(assembler, [0], [number])
    if number > 1:
      unroll_rows.append(assembler, [2], [number])
    found.append(assembler.is_last_row(every).tolist())
  assert found == [
    [False, False, False],
    [True, False, False],
    [False, False, True],
    [True, False, False],
    [False, False, True],
  ]
  assembler.reset(np.array([2]))
  assert assembler.is_last_row(np.array([2, 0])).tolist() == [False, False]


# Rows of the unrolls after each rewind, and the rows whose entering states they start from.
REWOUND = {
  0: ([[1, 2, 3], [13, 4, 5], [15, 6, 7]], [1, 13, 15]),
  1: ([[P, 1, 2, 3], [2, 13, 4, 5], [4, 15, 6, 7]], [None, 2, 4]),
  3: ([[P, P, P, 1, 2, 3], [P, 1, 2, 13, 4, 5], [2, 13, 4, 15, 6, 7]], [None, None, 2]),
}


@pytest.mark.parametrize('overlap', REWOUND)
def test_after_rewind_the_next_row_replaces_the_last_of_what_follows_alone(overlap):
  """Rows 3 and 5 each end an unroll, are rewound, and are appended again as 13 and 15."""
  assembler = unroll_rows.make_assembler(3, 2, overlap)
  found, states = [], []
  for number in (1, 2, 3, 13, 4, 5, 15, 6, 7):
    unroll_rows.append(assembler, [0], [100 + number])  # other environments are never rewound
    finished = unroll_rows.append(assembler, [1], [number])
    if finished is not None:
      found.append(unroll_rows.numbers_of(finished))
      states.append(finished.initial_state[1].tolist()[0])
      if number in (3, 5):
        assembler.rewind(np.array([1]))
        assert not assembler.is_last_row(np.array([1]))[0]
  expected, expected_states = REWOUND[overlap]
  assert found == expected
  assert states == [0 if n is None else 1000 + n for n in expected_states]


@pytest.mark.parametrize('overlap', [0, 3])
def test_a_row_that_comes_again_with_its_state_leaves_no_trace_of_the_rewinding(overlap):
  """The state that enters it is that of the row before, no matter when it is computed."""
  plain, rewound = (
    unroll_rows.make_assembler(1, 2, overlap),
    unroll_rows.make_assembler(1, 2, overlap),
  )
  env_ids = np.array([0])
  num_unrolls = 0
  for number in range(1, 12):
    is_last = rewound.is_last_row(env_ids)[0]
    expected = unroll_rows.append(plain, [0], [number], version=number)
    finished = unroll_rows.append(rewound, [0], [number], version=-1 if is_last else number)
    assert (finished is not None) == (expected is not None) == is_last
    if finished is not None:
      rewound.rewind(env_ids)
      assert unroll_rows.append(rewound, [0], [number], version=number) is None
      assert unroll_rows.numbers_of(finished) == unroll_rows.numbers_of(expected)
      tree.map_structure(
        np.testing.assert_array_equal, finished.initial_state, expected.initial_state
      )
      assert finished.policy_version[0].tolist() == [*expected.policy_version[0, :-1].tolist(), -1]
      num_unrolls += 1
  assert num_unrolls == 5


def test_a_restart_after_rewinding_begins_with_padding():
  assembler = unroll_rows.make_assembler(1, 2, 1)
  for number in (1, 2, 3):
    unroll_rows.append(assembler, [0], [number])
  assembler.rewind(np.array([0]))
  assembler.reset(np.array([0]))
  finished = [unroll_rows.append(assembler, [0], [number]) for number in (11, 12, 13)]
  assert finished[:2] == [None, None]
  assert unroll_rows.numbers_of(finished[2]) == [P, 11, 12, 13]
  assert finished[2].initial_state[1].tolist() == [0]


class _Reference:
  """The definition, with lists: unroll k of a run has its rows kT - overlap ... (k+1)T."""

  def __init__(self, unroll_length: int, overlap: int):
    self._length, self._overlap = unroll_length, overlap
    self._runs: dict[int, list[float]] = collections.defaultdict(list)

  def append(self, env_id: int, number: float) -> tuple[list[float], float] | None:
    run = self._runs[env_id]
    run.append(number)
    if len(run) == 1 or (len(run) - 1) % self._length:
      return None
    first = len(run) - 1 - self._length - self._overlap
    rows = [run[i] if i >= 0 else unroll_rows.PADDING for i in range(first, len(run))]
    return rows, 1000 + run[first] if first >= 0 else 0.0

  def reset(self, env_id: int) -> None:
    self._runs[env_id] = []


@pytest.mark.parametrize('unroll_length', [1, 2, 3, 5])
@pytest.mark.parametrize('overlap', [0, 1, 2, 4, 5, 11])
def test_any_schedule_agrees_with_the_definition(unroll_length, overlap):
  random = np.random.default_rng([unroll_length, overlap])
  num_environments = 5
  assembler = unroll_rows.make_assembler(num_environments, unroll_length, overlap)
  reference = _Reference(unroll_length, overlap)
  num_unrolls, number = 0, 0
  for _ in range(150):
    if random.random() < 0.08:
      restarted = random.choice(num_environments, random.integers(1, 3), replace=False)
      assembler.reset(restarted)
      for env_id in restarted:
        reference.reset(env_id)
    env_ids = random.choice(
      num_environments, random.integers(1, num_environments + 1), replace=False
    ).tolist()
    numbers = list(range(number + 1, number + 1 + len(env_ids)))
    number += len(env_ids)
    expected = [x for x in map(reference.append, env_ids, numbers) if x is not None]
    finished = unroll_rows.append(assembler, env_ids, numbers)
    assert (finished is None) == (not expected)
    for k, (rows, state) in enumerate(expected):
      assert unroll_rows.numbers_of(finished, k) == rows
      assert finished.initial_state[1][k] == state
    num_unrolls += len(expected)
  assert num_unrolls > 20


F, M, L = types.FIRST, types.MID, types.LAST


@pytest.mark.parametrize(
  'overlap, step_types, expected',
  [
    (0, [F, M, M, M], 3),
    (0, [M, L, F, M], 2),  # LAST -> FIRST is no transition
    (0, [M, M, M, L], 3),  # a LAST at the end begins the next loss part
    (0, [L, F, L, F], 1),
    (2, [L, L, F, M], 1),  # padding is no step
    (2, [M, L, F, M], 1),
    (1, [M, L, F, M], 1),
  ],
)
def test_num_steps_counts_unmasked_transitions_of_the_loss_part(overlap, step_types, expected):
  inputs = types.AgentInput(np.array([step_types, step_types], np.uint8), *[None] * 4)
  unrolls = types.Unroll((), inputs, None, None)
  assert unrolls_lib.num_steps(unrolls, overlap) == 2 * expected


def test_environments_that_never_come_take_no_memory():
  """With several devices or hosts, each knows all environments of the run."""
  scalar, picture = np.float32(0), np.zeros((84, 84, 4), np.uint8)
  inputs = types.AgentInput(np.uint8(0), scalar, scalar, np.int32(0), picture)
  outputs = types.AgentOutput(np.int32(0), types.QOutput(np.zeros(6, np.float32)))
  before = psutil.Process().memory_info().rss
  subject = unrolls_lib.UnrollAssembler(256, 80, 40, (inputs, outputs), ())
  overlap = 256 * 40 * picture.nbytes
  assert psutil.Process().memory_info().rss - before < overlap / 4
  del subject
