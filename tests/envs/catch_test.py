"""Catch: hand-computed play, a slow reference, and the contract."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import catch
from seed_acme.testing import environment_contract

LEFT, STAY, RIGHT = 0, 1, 2


class TestCatchContract(environment_contract.EnvironmentContract):
  has_seed_per_environment = False  # one stream for all boards

  def make_environment(self, num_environments, seed):
    return catch.Catch(num_environments, seed)


class TestSmallCatchContract(environment_contract.EnvironmentContract):
  has_seed_per_environment = False

  def make_environment(self, num_environments, seed):
    return catch.Catch(num_environments, seed, rows=2, columns=9)


class SlowCatch:
  """A slow reference of one board with a given column of the ball."""

  def __init__(self, rows, columns, ball):
    self.rows, self.columns, self.ball = rows, columns, ball
    self.paddle = columns // 2
    self.row = 0

  def board(self):
    board = [[0.0] * self.columns for _ in range(self.rows)]
    board[self.row][self.ball] = 1.0
    board[self.rows - 1][self.paddle] = 1.0
    return np.array(board, np.float32).reshape(-1)

  def step(self, action):
    self.row += 1
    if action == LEFT and self.paddle > 0:
      self.paddle -= 1
    if action == RIGHT and self.paddle < self.columns - 1:
      self.paddle += 1
    if self.row < self.rows - 1:
      return types.MID, 0, 1
    return types.LAST, 1 if self.paddle == self.ball else -1, 0


def ball_columns(timestep, columns):
  """Returns the ball's column in a FIRST row: the ball is in the top row and the paddle is not."""
  return timestep.observation[:, :columns].argmax(axis=1)


def cells(timestep, index, columns=5):
  """Returns (row, column) of the ones of one board."""
  board = timestep.observation[index].reshape(-1, columns)
  return {(int(row), int(column)) for row, column in np.argwhere(board == 1)}


def test_scripted_episode_by_hand():
  environment = catch.Catch(64, seed=3)
  row = environment.reset()
  ball = ball_columns(row, 5)
  assert set(ball) == {0, 1, 2, 3, 4}  # every column occurs among 64 boards
  far_left, middle = int(np.argmax(ball == 0)), int(np.argmax(ball == 2))
  assert cells(row, far_left) == {(0, 0), (9, 2)}
  # Two steps to the left reach the wall at column 0; the third changes nothing.
  for number, paddle in enumerate((1, 0, 0, 0, 0, 0, 0, 0), start=1):
    row = environment.step(np.full(64, LEFT))
    assert cells(row, far_left) == {(number, 0), (9, paddle)}
    assert (row.step_type == types.MID).all()
    assert not row.reward.any()
    assert (row.discount == 1).all()
  row = environment.step(np.full(64, STAY))
  assert (row.step_type == types.LAST).all()
  assert cells(row, far_left) == {(9, 0)}  # ball and paddle in one cell
  assert cells(row, middle) == {(9, 0), (9, 2)}
  assert row.reward[far_left] == 1
  assert row.reward[middle] == -1
  np.testing.assert_array_equal(row.reward, np.where(ball == 0, 1, -1))
  np.testing.assert_array_equal(row.score, row.reward)
  np.testing.assert_array_equal(row.discount, 0)
  row = environment.step(np.full(64, LEFT))
  assert (row.step_type == types.FIRST).all()
  assert (9, 2) in cells(row, 0)  # the paddle is back in the middle


@pytest.mark.parametrize(('rows', 'columns'), [(10, 5), (2, 1), (4, 6)])
def test_equals_the_slow_reference(rows, columns):
  environment = catch.Catch(7, seed=5, rows=rows, columns=columns)
  random = np.random.default_rng(0)
  timestep = environment.reset()
  for _ in range(12):
    boards = [SlowCatch(rows, columns, ball) for ball in ball_columns(timestep, columns)]
    np.testing.assert_array_equal(timestep.observation, [board.board() for board in boards])
    for _ in range(rows - 1):
      actions = random.integers(3, size=7)
      timestep = environment.step(actions)
      expected = [board.step(action) for board, action in zip(boards, actions)]
      got = list(zip(timestep.step_type, timestep.reward, timestep.discount))
      assert got == expected
      np.testing.assert_array_equal(timestep.observation, [board.board() for board in boards])
    timestep = environment.step(actions)


def test_equals_bsuite_step_by_step():
  bsuite_catch = pytest.importorskip('bsuite.environments.catch')
  theirs, random = bsuite_catch.Catch(seed=1), np.random.default_rng(1)
  ours = catch.Catch(40, seed=1)
  for _ in range(20):
    their_row, our_row = theirs.reset(), ours.reset()
    same_ball = int(np.argmax(ball_columns(our_row, 5) == their_row.observation[0].argmax()))
    while True:
      np.testing.assert_array_equal(
        our_row.observation[same_ball], their_row.observation.reshape(-1)
      )
      assert our_row.step_type[same_ball] == their_row.step_type
      assert our_row.reward[same_ball] == (their_row.reward or 0)
      assert our_row.discount[same_ball] == (1 if their_row.first() else their_row.discount)
      if their_row.last():
        break
      action = random.integers(3)
      their_row, our_row = theirs.step(action), ours.step(np.full(40, action))


def test_balls_fall_in_every_column_equally_often():
  environment = catch.Catch(1000, seed=0)
  counts = sum(np.bincount(ball_columns(environment.reset(), 5), minlength=5) for _ in range(10))
  # 10,000 draws, p = 0.2: a standard deviation is 40.
  np.testing.assert_allclose(counts, 2000, atol=200)


@pytest.mark.parametrize('actions', [[0, 3], [-1, 0], [0], [[0, 1]]])
def test_wrong_actions_are_refused(actions):
  environment = catch.Catch(2, seed=0)
  environment.reset()
  with pytest.raises(ValueError, match='expected'):
    environment.step(np.array(actions))


@pytest.mark.parametrize(
  'settings', [{'rows': 1}, {'columns': 0}, {'rows': 2.5}, {'columns': '5'}, {'rows': True}]
)
def test_wrong_settings_are_named_with_their_value(settings):
  ((name, value),) = settings.items()
  with pytest.raises(types.UserError, match=rf'{name} \({value!r}\)'):
    catch.Catch(1, seed=0, **settings)


def test_shared_arrays_are_write_protected():
  environment = catch.Catch(2, seed=0)
  with pytest.raises(ValueError, match='read-only'):
    environment.reset().reward[0] = 1
