"""InferenceServer: runs, repeats, refusals, padding, seeds."""

from __future__ import annotations

import numpy as np
import pytest
import tree

from seed_acme.inference import batching
from tests.inference import rigs

pytestmark = pytest.mark.timeout(120)


@pytest.mark.slow
def test_a_new_run_resets_that_environment_alone(rig, acting):
  """The others act bit for bit as if nothing had happened, and this one as in a new server."""
  other = rigs.Rig(rig.acting)
  for r in (rig, other):
    r.step(rigs.request([0, 1, 2, 3], 0, rigs.F))
    r.step(rigs.request([0, 1, 2, 3], 1))
  one, two = (
    rigs.request([0, 1, 2, 3], 2),
    rigs.request([0, 1, 2, 3], 2, [rigs.M, rigs.M, rigs.F, rigs.M], [1, 1, 9, 1]),
  )
  first, second = rig.step(one)[0], other.step(two)[0]
  rigs.assert_same(first, second, [0, 1, 3])
  rigs.assert_same(rig.state(), other.state(), [0, 1, 3, 4, 5, 6, 7])
  fresh = rigs.Rig(rig.acting)
  fresh.step(rigs.request([0, 1, 2, 3], 2, rigs.F, [1, 1, 9, 1]))
  rigs.assert_same(fresh.state(), other.state(), [2])
  for number in (3, 4):
    rig.step(rigs.request([0, 1, 2, 3], number))
    other.step(rigs.request([0, 1, 2, 3], number, run_ids=[1, 1, 9, 1]))
  # Three transitions of 0, 1 and 3 are one unroll; environment 2 restarted at row 2.
  [unrolls] = rig.sink.unrolls
  [of_the_others] = other.sink.unrolls
  tree.map_structure(
    lambda a, b: np.testing.assert_array_equal(a[[0, 1, 3]], b), unrolls, of_the_others
  )
  other.step(rigs.request([2], 5, run_ids=9))
  assert other.sink.unrolls[1].inputs.step_type.tolist() == [
    [rigs.L, rigs.F, rigs.M, rigs.M, rigs.M]
  ]


def test_a_reset_drops_its_open_episode(rig):
  rig.step(rigs.request([0, 1], 0, rigs.F))
  rig.step(rigs.request([0, 1], 1, rigs.M, reward=5))
  rig.step(rigs.request([0, 1], 2, [rigs.F, rigs.M], [2, 1], reward=5))
  rig.step(rigs.request([0, 1], 3, rigs.L, [2, 1], reward=1, score=3))
  summary = rig.server.statistics.training_episodes.take_recent()
  assert summary == (2, (3 + 7) / 2, (1 + 11) / 2, (1 + 3) / 2)


def test_a_repeated_number_gets_the_stored_actions_and_nothing_is_stepped(rig):
  rig.step(rigs.request([0, 1], 0, rigs.F))
  [actions] = rig.step(rigs.request([0, 1], 1))
  before, counts = rig.state(), rig.counters.snapshot()
  repeated, fresh = rig.step(rigs.request([0, 1], 1), rigs.request([2], 0, rigs.F))
  np.testing.assert_array_equal(repeated, actions)
  assert fresh.shape == (1,)
  rigs.assert_same(before, rig.state(), [0, 1])
  assert rig.counters.snapshot()[:5] == counts[:5]
  rig.step(rigs.request([0, 1], 2))
  assert not rig.sink.unrolls  # the fourth row would finish the first one
  rig.step(rigs.request([0, 1], 3))
  assert rig.sink.num_unrolls() == 2


def test_the_first_request_of_a_run_may_be_repeated_too(rig):
  [actions] = rig.step(rigs.request([0, 1], 0, rigs.F))
  before = rig.state()
  np.testing.assert_array_equal(rig.step(rigs.request([0, 1], 0, rigs.F))[0], actions)
  rigs.assert_same(before, rig.state(), range(rigs.NUM_ENVIRONMENTS))


@pytest.mark.parametrize('number', [-1, 0, 1, 4, 2**62, -(2**63)])
def test_a_wrong_number_is_refused_and_nothing_is_kept(rig, number):
  for n, step_type in ((0, rigs.F), (1, rigs.M), (2, rigs.M)):
    rig.step(rigs.request([0, 1], n, step_type))
  before = rig.state()
  refusal, other = rig.step(rigs.request([0, 1], number), rigs.request([3], 0, rigs.F))
  assert isinstance(refusal, batching.Refusal)
  assert f'request {number} does not follow request 2' in refusal.reason
  assert other.shape == (1,)
  rigs.assert_same(before, rig.state(), [0, 1, 2, 4, 5, 6, 7])
  assert rig.step(rigs.request([0, 1], 3))[0].shape == (2,)


def test_a_new_run_beside_it_does_not_excuse_a_wrong_number(rig):
  rig.step(rigs.request([0, 1], 0, rigs.F))
  rig.step(rigs.request([0, 1], 1))
  before = rig.state()
  for number in (1, 5):
    [refusal] = rig.step(rigs.request([0, 1], number, [rigs.M, rigs.F], [1, 7]))
    assert isinstance(refusal, batching.Refusal) and 'does not follow' in refusal.reason
  rigs.assert_same(before, rig.state(), range(rigs.NUM_ENVIRONMENTS))
  assert rig.step(rigs.request([0, 1], 2, [rigs.M, rigs.F], [1, 7]))[0].shape == (2,)


@pytest.mark.parametrize('step_type', [rigs.M, rigs.L])
def test_a_run_that_does_not_begin_with_first_is_refused(rig, step_type):
  rig.step(rigs.request([0, 1], 0, rigs.F))
  before = rig.state()
  for one in (
    rigs.request([2, 3], 0, [rigs.F, step_type]),
    rigs.request([0, 1], 1, [rigs.M, step_type], [1, 2]),
  ):
    [refusal] = rig.step(one)
    assert isinstance(refusal, batching.Refusal) and 'not FIRST' in refusal.reason
  rigs.assert_same(before, rig.state(), range(rigs.NUM_ENVIRONMENTS))


def _with(request, field, value, row=1):
  """Returns the request with another value in one of its rows."""
  array = getattr(request.timestep, field).copy()
  array[row] = value
  return request._replace(timestep=request.timestep._replace(**{field: array}))


@pytest.mark.parametrize('number', [0, 2])
@pytest.mark.parametrize(
  'field, value, words',
  [
    ('reward', np.nan, 'reward: expected a finite scalar, got nan'),
    ('score', np.inf, 'score: expected a finite scalar, got inf'),
    ('discount', 5, 'discount: expected a number in [0, 1], got 5.0'),
    ('observation', [0, np.nan], 'observation: expected finite numbers, got nan at [1]'),
    ('step_type', 200, ', got 200'),
    ('step_type', None, 'step_type: expected '),  # a step type that cannot follow
  ],
)
def test_wrong_values_are_refused_in_the_words_of_the_actor(rig, field, value, words, number):
  for n in range(number):
    rig.step(rigs.request([0, 1], n, rigs.M if n else rigs.F))
  right = rigs.request([0, 1], number, rigs.M if number else rigs.F)
  if value is None:
    value = rigs.F if number else rigs.M
  before, counts = rig.state(), rig.counters.snapshot()
  beside = rigs.request([3], 0, rigs.F)
  refusal, other = rig.step(_with(right, field, value), beside)
  assert isinstance(refusal, batching.Refusal)
  if number or field != 'step_type':  # the message for a first row is different
    assert refusal.reason.startswith('environment 1 of rig: ') and words in refusal.reason
  assert other.shape == (1,)
  rigs.assert_same(before, rig.state(), [0, 1, 2, 4, 5, 6, 7])
  assert rig.counters.snapshot()[:5] == counts[:5]
  assert rig.step(right)[0].shape == (2,)  # the corrected request


def test_after_last_comes_first_alone(rig):
  rig.step(rigs.request([0, 1], 0, rigs.F))
  rig.step(rigs.request([0, 1], 1, [rigs.L, rigs.M]))
  for step_types in ([rigs.M, rigs.M], [rigs.L, rigs.L], [rigs.F, rigs.F]):
    [refusal] = rig.step(rigs.request([0, 1], 2, step_types))
    assert isinstance(refusal, batching.Refusal) and 'step_type: expected' in refusal.reason
  assert rig.step(rigs.request([0, 1], 2, [rigs.F, rigs.L]))[0].shape == (2,)


def test_refusals_within_a_batch_reach_their_callers_alone(rig):
  rig.step(rigs.request([0], 0, rigs.F))
  replies = rig.step(
    rigs.request([1, 2], 0, rigs.F),
    rigs.request([8], 0, rigs.F),
    rigs.request([2, 3], 0, rigs.F),
    rigs.request([0], 7),
    rigs.request([-1], 0, rigs.F),
    rigs.request([4], 0, rigs.F),
    rigs.request([0], 1),
  )
  refused = [isinstance(reply, batching.Refusal) for reply in replies]
  assert refused == [False, True, True, True, True, False, True]
  assert [len(r) for r in replies if not isinstance(r, batching.Refusal)] == [2, 1]
  assert rig.server.slots.is_known.nonzero()[0].tolist() == [0, 1, 2, 4]
  assert rig.step(rigs.request([0], 1))[0].shape == (1,)


def test_previous_action_and_reward_are_zero_at_first(rig):
  steps = [rigs.F, rigs.M, rigs.L, rigs.F, rigs.M, rigs.M, rigs.M]
  for number, step_type in enumerate(steps):
    rig.step(rigs.request([0, 1, 2, 3], number, step_type, reward=7.0))
  inputs = tree.map_structure(
    lambda *x: np.concatenate([x[0], x[1][:, 2:]], axis=1), *[u.inputs for u in rig.sink.unrolls]
  )
  outputs = np.concatenate(
    [rig.sink.unrolls[0].outputs.action, rig.sink.unrolls[1].outputs.action[:, 2:]], axis=1
  )
  assert inputs.step_type[0].tolist() == [rigs.L, *steps]
  is_first = inputs.step_type == rigs.F
  assert outputs.any() and (inputs.previous_action[is_first] == 0).all()
  assert (inputs.reward[is_first] == 0).all()
  after = ~is_first[:, 2:]
  np.testing.assert_array_equal(inputs.previous_action[:, 2:][after], outputs[:, 1:-1][after])
  assert (inputs.reward[:, 2:][after] == 7).all()


def test_padding_and_order_change_no_row(acting):
  """One batch of eight, eight batches of one, and other orders give the same actions and states."""
  lstm = acting('lstm')
  together, alone, shuffled = rigs.Rig(lstm), rigs.Rig(lstm), rigs.Rig(lstm, batch_size=100)
  random = np.random.default_rng(0)
  env_ids = list(range(rigs.NUM_ENVIRONMENTS))
  for number in range(12):
    step_type = rigs.F if number == 0 else rigs.M
    [actions] = together.step(rigs.request(env_ids, number, step_type))
    one_by_one = [alone.step(rigs.request([i], number, step_type))[0][0] for i in env_ids]
    order = random.permutation(env_ids)
    parts = np.split(order, [3, 4])
    replies = shuffled.step(*[rigs.request(part.tolist(), number, step_type) for part in parts])
    assert actions.tolist() == one_by_one
    np.testing.assert_array_equal(np.concatenate(replies), actions[order])
  for other in (alone, shuffled):
    tree.map_structure(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6),
      together.state(),
      other.state(),
    )


def test_padding_touches_no_slot(rig):
  rig.step(rigs.request([0, 1, 2, 3, 4, 5, 6, 7], 0, rigs.F))
  before = rig.state()
  rig.step(rigs.request([5, 2, 7], 1))  # padded to 8
  rigs.assert_same(before, rig.state(), [0, 1, 3, 4, 6])
  assert rig.server.slots.row_numbers.tolist() == [1, 1, 2, 1, 1, 2, 1, 2]
  assert rig.server.statistics.batch_sizes.summary()['max'] == 8
  for number in (2, 3):
    rig.step(rigs.request([2, 5, 7], number))
  assert rig.sink.num_unrolls() == 2  # from 2 and 5, by their fourth rows; 7 evaluates
  for number in (1, 2):
    rig.step(rigs.request([0], number))
  assert rig.sink.num_unrolls() == 2
  rig.step(rigs.request([0], 3))
  assert rig.sink.num_unrolls() == 3


def test_the_same_seed_acts_the_same_and_another_does_not(acting):
  def play(seed: int) -> list[list[int]]:
    rig = rigs.Rig(acting('none'), seed=seed)
    return [
      rig.step(rigs.request(range(6), n, rigs.F if n == 0 else rigs.M))[0].tolist()
      for n in range(10)
    ]

  assert play(1) == play(1)
  assert play(1) != play(2)
