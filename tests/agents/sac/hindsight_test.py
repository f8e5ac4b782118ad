"""Hindsight relabelling against a slow loop over transitions, and its draws by chi-squared."""

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.sac import hindsight
from seed_acme.envs import goals
from seed_acme.ops import uniforms
from tests.agents.sac import goal_rows


def test_without_substitution_pairs_of_rows_come_back():
  rows = goal_rows.bit_rows()
  pairs = goal_rows.relabel(rows, probability=0.0)
  tree.map_structure(
    lambda pair, x: np.testing.assert_array_equal(pair, np.stack([x[:-1], x[1:]])), pairs, rows
  )
  assert pairs.observation['observation'].shape == (2, 8, 4, 5)


@pytest.mark.slow
def test_every_transition_gets_one_goal_at_both_ends_from_later_in_its_episode():
  rows, is_transition = goal_rows.numbered_rows(), goal_rows.STEP_TYPES[:-1] != goal_rows.LAST
  last = goal_rows.last_rows(goal_rows.STEP_TYPES)
  for number in range(50):
    pairs = goal_rows.relabel(rows, tf.constant([number, 1]))
    goal = pairs.observation['desired_goal']
    np.testing.assert_array_equal(goal[0], goal[1])
    np.testing.assert_array_equal(goal[:, ~is_transition], -1)  # unchanged
    goal_row, environment = goal[0, ..., 0], goal[0, ..., 1]
    start = np.broadcast_to(np.arange(8)[:, None], (8, 4))
    assert (goal_row > start)[is_transition].all()
    assert (goal_row <= last)[is_transition].all()
    np.testing.assert_array_equal(
      environment[is_transition], np.broadcast_to(np.arange(4), (8, 4))[is_transition]
    )


def test_only_goals_rewards_and_discounts_of_second_rows_change():
  rows = goal_rows.bit_rows()
  pairs, plain = goal_rows.relabel(rows), goal_rows.relabel(rows, probability=0.0)
  for pair in (pairs, plain):
    del pair.observation['desired_goal']
  tree.map_structure(
    np.testing.assert_array_equal,
    pairs._replace(reward=0, discount=0),
    plain._replace(reward=0, discount=0),
  )
  np.testing.assert_array_equal(pairs.reward[0], plain.reward[0])
  np.testing.assert_array_equal(pairs.discount[0], plain.discount[0])
  assert (pairs.reward[1] != plain.reward[1]).any()
  assert (pairs.discount[1] != plain.discount[1]).any()


@pytest.mark.parametrize('probability', [0.3, 1.0])
@pytest.mark.parametrize('ends_at_goal', [True, False])
@pytest.mark.parametrize(
  'outcome, slow_outcome',
  [(goals.bits_equal, goal_rows.equal_outcome), (goals.within_5_cm, goal_rows.near_outcome)],
)
def test_rewards_and_discounts_are_those_of_the_rules(
  outcome, slow_outcome, ends_at_goal, probability
):
  step_types = np.tile(goal_rows.STEP_TYPES, (1, 50))
  rows = goal_rows.bit_rows(step_types)
  # The same draws over numbered goals show which row each goal comes from.
  numbered = goal_rows.relabel(goal_rows.numbered_rows(step_types), probability=probability)
  goal_row = numbered.observation['desired_goal'][0, ..., 0].astype(int)
  is_substituted = goal_row >= 0
  chosen = rows.observation['achieved_goal'][np.maximum(goal_row, 0), np.arange(200)]
  expected = goal_rows.slow_relabel(rows, chosen, is_substituted, slow_outcome, ends_at_goal)
  pairs = goal_rows.relabel(
    rows, probability=probability, goal_outcome=outcome, ends_at_goal=ends_at_goal
  )
  np.testing.assert_allclose(pairs.reward[1], expected[0], atol=1e-6)
  np.testing.assert_array_equal(pairs.discount[1], expected[1])
  np.testing.assert_array_equal(pairs.observation['desired_goal'], expected[2])


def one_transition(achieved_next, goal, next_type=goal_rows.MID, reward=5.0, discount=1.0):
  """Returns two rows, so that the new goal is the one achieved in the second."""
  return types.AgentInput(
    step_type=np.array([[goal_rows.MID], [next_type]], np.uint8),
    reward=np.float32([[7], [reward]]),
    discount=np.float32([[0.25], [discount]]),
    previous_action=np.zeros((2, 1), np.int32),
    observation={
      'achieved_goal': np.float32([[[0]], [[achieved_next]]]),
      'desired_goal': np.float32([[[goal]], [[goal]]]),
    },
  )


@pytest.mark.parametrize(
  'case, reward, discount',
  [
    ({'achieved_next': 1, 'goal': 0}, 6, 0),  # the new goal is reached, the old one was not
    (
      {'achieved_next': 1, 'goal': 1, 'discount': 0.0, 'next_type': goal_rows.LAST},
      5,
      0,
    ),  # both are reached
    ({'achieved_next': 1, 'goal': 0, 'discount': 0.0, 'next_type': goal_rows.LAST}, 6, 0),
  ],
)
def test_the_next_row_as_the_goal_by_hand(case, reward, discount):
  pairs = goal_rows.relabel(one_transition(**case))
  assert (pairs.reward[1, 0, 0], pairs.discount[1, 0, 0]) == (reward, discount)
  assert (pairs.reward[0, 0, 0], pairs.discount[0, 0, 0]) == (7, 0.25)
  assert pairs.observation['desired_goal'].ravel().tolist() == [1, 1]


def three_rows(goal, discount):
  """Returns three rows; row 1 achieves 1 and row 2 achieves 2."""
  return types.AgentInput(
    step_type=np.full((3, 1), goal_rows.MID, np.uint8),
    reward=np.float32([[0], [1], [0]]),
    discount=np.float32([[1], [discount], [1]]),
    previous_action=np.zeros((3, 1), np.int32),
    observation={
      'achieved_goal': np.arange(3, dtype=np.float32).reshape(3, 1, 1),
      'desired_goal': np.full((3, 1, 1), goal, np.float32),
    },
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'goal, old_discount, ends_at_goal, reward, discount',
  [
    (1, 0.0, True, 0, 1),  # the old goal ended the episode, the new one was not reached: it goes on
    (9, 0.0, True, 1, 0),  # it ended for another reason, and still does
    (9, 1.0, True, 1, 1),
    (1, 0.0, False, 0, 0),
  ],
)  # goals end no episode, so no discount changes
def test_a_goal_that_is_not_reached_by_hand(goal, old_discount, ends_at_goal, reward, discount):
  rows, seen = three_rows(goal, old_discount), 0
  for number in range(20):
    pairs = goal_rows.relabel(rows, tf.constant([number, 0]), ends_at_goal=ends_at_goal)
    if pairs.observation['desired_goal'][0, 0, 0, 0] == 2:
      seen += 1
      assert (pairs.reward[1, 0, 0], pairs.discount[1, 0, 0]) == (reward, discount)
  assert seen > 3


def test_the_share_of_substitutions_is_the_probability_and_goals_are_drawn_evenly():
  batch_size, probability = 4000, 0.8
  step_types = np.full((6, batch_size), goal_rows.MID, np.uint8)
  step_types[3, batch_size // 2 :] = goal_rows.LAST
  pairs = goal_rows.relabel(goal_rows.numbered_rows(step_types), probability=probability)
  goal_row = pairs.observation['desired_goal'][0, ..., 0]
  for half, last in ((slice(0, batch_size // 2), 5), (slice(batch_size // 2, None), 3)):
    for t in range(last):
      rows = goal_row[t, half]
      counts = np.bincount(rows[rows >= 0].astype(int), minlength=last + 1)
      expected = np.full(last - t, probability * len(rows) / (last - t))
      kept = len(rows) * (1 - probability)
      assert not counts[: t + 1].any() and len(counts) == last + 1
      assert stats.chisquare([*counts[t + 1 :], (rows < 0).sum()], [*expected, kept]).pvalue > 1e-3
  # The rows after LAST belong to another episode, which has its own end.
  assert set(goal_row[4, batch_size // 2 :]) == {-1, 5}


def test_transitions_are_drawn_independently_of_each_other():
  goal_row = goal_rows.relabel(
    goal_rows.numbered_rows(np.full((3, 20_000), goal_rows.MID, np.uint8)), probability=0.5
  ).observation['desired_goal'][0, ..., 0]
  table = np.array(
    [[((goal_row[0] == a) & (goal_row[1] == b)).sum() for b in (-1, 2)] for a in (-1, 1, 2)]
  )
  assert stats.chi2_contingency(table).pvalue > 1e-3
  neighbours = np.corrcoef(goal_row[0, :-1], goal_row[0, 1:])[0, 1]
  assert abs(neighbours) < 4 / np.sqrt(20_000)


def test_the_key_decides_the_draws():
  rows = goal_rows.numbered_rows()
  first, again, other = (
    goal_rows.relabel(rows, tf.constant(key), probability=0.5).observation['desired_goal']
    for key in ([1, 2], [1, 2], [1, 3])
  )
  np.testing.assert_array_equal(first, again)
  assert (first != other).any()


def test_the_draws_are_not_those_of_another_user_of_the_key():
  rows = goal_rows.numbered_rows(np.full((2, 10_000), goal_rows.MID, np.uint8))
  is_substituted = (
    goal_rows.relabel(rows, probability=0.5).observation['desired_goal'][0, 0, :, 0] >= 0
  )
  for key in (goal_rows.KEY, *uniforms.split(goal_rows.KEY, 3)):
    others = uniforms.draw(key, [1, 10_000]).numpy()[0]
    assert abs(np.corrcoef(is_substituted, others)[0, 1]) < 4 / 100


def test_garbage_in_masked_pairs_does_not_spread():
  """Reward and discount of a row after LAST, and a NaN goal there, change nothing."""
  rows = goal_rows.bit_rows()
  clean = goal_rows.relabel(rows, goal_outcome=goals.within_5_cm)
  after_last = np.zeros(goal_rows.STEP_TYPES.shape, bool)
  after_last[1:] = goal_rows.STEP_TYPES[:-1] == goal_rows.LAST
  dirty = rows._replace(
    reward=np.where(after_last, np.float32(np.nan), rows.reward),
    discount=np.where(after_last, np.float32(np.nan), rows.discount),
  )
  lonely = after_last & np.vstack([np.zeros((8, 4), bool), np.ones((1, 4), bool)])
  assert lonely.any()  # a FIRST row at the end of the window belongs to no transition
  for name in ('achieved_goal', 'desired_goal', 'observation'):
    dirty.observation[name] = np.where(
      lonely[..., None], np.float32(np.nan), rows.observation[name]
    )
  pairs = goal_rows.relabel(dirty, goal_outcome=goals.within_5_cm)
  is_transition = goal_rows.STEP_TYPES[:-1] != goal_rows.LAST
  np.testing.assert_array_equal(pairs.reward[1][is_transition], clean.reward[1][is_transition])
  np.testing.assert_array_equal(pairs.discount[1][is_transition], clean.discount[1][is_transition])
  np.testing.assert_array_equal(
    pairs.observation['desired_goal'][:, is_transition],
    clean.observation['desired_goal'][:, is_transition],
  )


@pytest.mark.slow
@pytest.mark.parametrize('jit_compile', [False, True])
def test_in_a_graph_and_compiled_by_xla_it_is_the_same(jit_compile):
  rows = goal_rows.bit_rows(np.tile(goal_rows.STEP_TYPES, (1, 10)), num_bits=2)
  compiled = tf.function(
    lambda rows, key: hindsight.relabel(
      rows, key, probability=0.8, goal_outcome=goals.bits_equal, ends_at_goal=True
    ),
    jit_compile=jit_compile,
    autograph=False,
  )
  tree.map_structure(
    np.testing.assert_array_equal,
    compiled(tree.map_structure(tf.constant, rows), goal_rows.KEY),
    goal_rows.relabel(rows, probability=0.8),
  )


def test_the_size_of_the_batch_may_be_unknown_when_traced():
  rows = goal_rows.bit_rows(num_bits=2)
  signature = tree.map_structure(
    lambda x: tf.TensorSpec([x.shape[0], None, *x.shape[2:]], x.dtype), rows
  )
  traced = tf.function(
    lambda rows: hindsight.relabel(
      rows, goal_rows.KEY, probability=0.8, goal_outcome=goals.within_5_cm, ends_at_goal=True
    ),
    input_signature=[signature],
    autograph=False,
  )
  pairs = traced(rows)
  tree.map_structure(
    np.testing.assert_array_equal,
    pairs,
    goal_rows.relabel(rows, probability=0.8, goal_outcome=goals.within_5_cm),
  )
  static = traced.get_concrete_function().structured_outputs.observation['desired_goal'].shape
  assert static.as_list() == [2, 8, None, 2]
