"""Both Atari adapters against a plain loop over the emulator, and what only the vector does."""

import importlib

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import atari_vector
from seed_acme.envs import registry
from seed_acme.envs import suite
from seed_acme.envs import vector
from seed_acme.testing import environment_contract

pytestmark = pytest.mark.slow

cv2 = pytest.importorskip('cv2')
pytest.importorskip('ale_py')


def make(game, seed=1, num_environments=1, **settings):
  return registry.make(
    config_lib.EnvironmentConfig(f'atari:{game}', settings), num_environments, seed
  )


class TestAtariVectorContract(environment_contract.EnvironmentContract):
  num_steps = 40

  def make_environment(self, num_environments, seed):
    return make(
      'Breakout',
      seed,
      num_environments,
      max_frames=100,
      stack=2,
      image_size=42,
      max_num_noops=8,
      repeat_action_probability=0.25,
      num_threads=2,
      life_loss='cut',
      fire_at_start=True,
    )


def test_the_registry_chooses_the_adapter():
  assert isinstance(make('Pong'), atari_vector.AtariVector)
  assert isinstance(make('Pong', vectorized=False), vector.VectorOfEnvironments)


def reference(game, actions, frames_per_step):
  """Returns one episode's rows of (screen, reward, is over), by a plain loop."""
  ale = atari.load_game(game, 0, 0.0)
  ale.reset_game()

  def small(screen):
    return cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)

  rows = [(small(ale.getScreenGrayscale()), 0, False)]
  for action in actions:
    frames, reward = [], 0
    while len(frames) < frames_per_step and not ale.game_over():
      reward += ale.act(int(action))
      frames.append(ale.getScreenGrayscale())
    is_over = ale.game_over()
    shown = frames[-1] if is_over else np.max(frames[-2:], axis=0)
    rows.append((small(shown), reward, is_over))
    if is_over:
      break
  return rows


# Random play ends two of these games within this number of steps.
@pytest.mark.parametrize(
  ('game', 'frames_per_step', 'num_steps', 'ends'),
  [
    ('Breakout', 1, 200, False),
    ('Breakout', 2, 600, True),
    ('Seaquest', 4, 700, True),
    ('Pong', 4, 100, False),
  ],
)
def test_both_adapters_equal_a_plain_loop(game, frames_per_step, num_steps, ends):
  actions = np.random.default_rng(2).integers(18, size=num_steps)
  expected = reference(game, actions, frames_per_step)
  assert expected[-1][2] == ends
  for vectorized in (True, False):
    environment = make(
      game, frames_per_step=frames_per_step, max_num_noops=0, vectorized=vectorized
    )
    rows = [environment.reset()]
    rows += [environment.step(np.array([action])) for action in actions[: len(expected) - 1]]
    for number, ((screen, reward, is_over), row) in enumerate(zip(expected, rows, strict=True)):
      where = f'row {number}, vectorized={vectorized}'
      kind = types.FIRST if number == 0 else types.LAST if is_over else types.MID
      assert (row.step_type, row.reward, row.discount) == (kind, reward, not is_over), where
      # ale-py's vector takes no picture when the game is over.
      if not (is_over and vectorized):
        np.testing.assert_array_equal(row.observation[0, :, :, 0], screen, where)
    if ends:
      row = environment.step(np.array([5]))
      assert row.step_type == types.FIRST
      np.testing.assert_array_equal(row.observation[0, :, :, 0], expected[0][0])
    environment.close()


@pytest.mark.parametrize('frames_per_step', [1, 2, 4])
def test_the_screen_moves_at_every_step(frames_per_step):
  # Freeway, because its cars drive whatever is played.
  environment = make('Freeway', frames_per_step=frames_per_step, max_num_noops=0)
  environment.reset()
  for _ in range(30):
    environment.step(np.zeros(1, int))
  rows = [environment.step(np.zeros(1, int)) for _ in range(60)]
  environment.close()
  for before, after in zip(rows, rows[1:]):
    assert (before.observation != after.observation).any()


@pytest.mark.parametrize('game', ['Berzerk', 'DoubleDunk', 'NameThisGame', 'Skiing'])
def test_games_with_an_unusual_start_or_without_a_button(game):
  """ale-py plays frames of its own at the start of the first three; Skiing has 9 actions."""
  settings = {'frames_per_step': 2, 'max_num_noops': 0}
  environments = [make(game, vectorized=vectorized, **settings) for vectorized in (True, False)]
  environment_contract.assert_equal_rows(*[one.reset() for one in environments])
  for action in (*range(18), 1, 1, 10, 11, 17):
    environment_contract.assert_equal_rows(*[one.step(np.array([action])) for one in environments])


def test_games_of_every_kind_are_played_alike_by_both_adapters():
  """Loading a game takes most of the time; `atari_test.py` has all 57 in the other adapter."""
  random = np.random.default_rng(5)
  for game in sorted(atari_games.GAMES)[::8]:
    environments = [
      make(game, vectorized=vectorized, max_num_noops=0) for vectorized in (True, False)
    ]
    assert isinstance(environments[0], atari_vector.AtariVector)
    rows = [environment.reset() for environment in environments]
    screens = [rows[0].observation]
    for action in random.integers(18, size=12):
      environment_contract.assert_equal_rows(*rows)
      rows = [environment.step(np.array([action])) for environment in environments]
      screens.append(rows[0].observation)
    environment_contract.assert_equal_rows(*rows)
    assert np.ptp(screens) > 0, f'{game} shows a screen of one colour'
    for environment in environments:
      environment.close()


def test_both_adapters_agree_on_stacks_sizes_and_truncations():
  settings = {
    'max_num_noops': 0,
    'max_frames': 50,
    'stack': 3,
    'image_size': 50,
    'full_action_set': False,
  }
  environments = [
    make('SpaceInvaders', 1, 2, vectorized=vectorized, **settings) for vectorized in (True, False)
  ]
  random = np.random.default_rng(3)
  rows = [environment.reset() for environment in environments]
  ends = 0
  for _ in range(100):
    environment_contract.assert_equal_rows(*rows)
    ends += (rows[0].step_type == types.LAST).sum()
    assert (rows[0].discount == 1).all()
    actions = random.integers(6, size=2)
    rows = [environment.step(actions) for environment in environments]
  assert ends == 2 * (100 // 14)  # 13 steps, and the step back to FIRST


def test_sticky_actions_come_from_the_same_seeds():
  """Both adapters use ale-py's random numbers, which are the same without no-ops."""
  settings = {'max_num_noops': 0, 'repeat_action_probability': 0.25}
  environment = make('Breakout', 5, 2, **settings)
  singles = [
    atari.Atari('Breakout', seed, atari.Settings(vectorized=False, **settings))
    for seed in suite.environment_seeds(5, 2)
  ]
  environment.reset()
  for single in singles:
    single.reset()
  random = np.random.default_rng(4)
  for _ in range(100):
    actions = random.integers(18, size=2)
    row = environment.step(actions)
    expected = [single.step(action) for single, action in zip(singles, actions)]
    np.testing.assert_array_equal(row.observation, [one.observation for one in expected])
  assert not (row.observation[0] == row.observation[1]).all()


@pytest.mark.parametrize('vectorized, frames_per_step', [(True, 1), (False, 4)])
def test_with_the_button_at_the_start_breakout_ends_under_a_player_without_one(
  vectorized, frames_per_step
):
  """Without the button the game waits for ever. The lost lives match the emulator's count."""
  settings = {'vectorized': vectorized, 'frames_per_step': frames_per_step}
  environment = make('Breakout', max_num_noops=0, life_loss='cut', fire_at_start=True, **settings)
  ale = atari.load_game('Breakout', 0, 0.0)
  ale.reset_game()
  for _ in range(2):
    row, lives, discounts, presses = environment.reset(), 5, [], True
    while row.step_type != types.LAST:
      row = environment.step(np.zeros(1, int))
      score = sum(ale.act(atari.FIRE if presses else atari.NOOP) for _ in range(frames_per_step))
      assert (row.reward, row.score) == (score, score)
      presses, lives = ale.lives() < lives, ale.lives()
      assert row.discount == (not presses)
      discounts.append(row.discount[0])
    assert ale.game_over() and discounts.count(0) == 5
    assert environment.step(np.zeros(1, int)).step_type == types.FIRST
    ale.reset_game()
  environment.close()
  waiting = make('Breakout', max_num_noops=0, life_loss='cut', **settings)
  waiting.reset()
  rows = [waiting.step(np.zeros(1, int)) for _ in range(len(discounts) + 100)]
  assert all(row.step_type == types.MID and row.discount == 1 for row in rows)
  waiting.close()


def test_lost_lives_change_discounts_alone_and_the_same_in_both_adapters():
  """Three games lose lives at different times; each that ends or is truncated starts anew alone."""
  settings = {'max_num_noops': 0, 'max_frames': 700, 'fire_at_start': True}
  environments = [
    make('Breakout', 1, 3, vectorized=vectorized, life_loss=life_loss, **settings)
    for vectorized, life_loss in ((True, 'cut'), (False, 'cut'), (True, 'ignore'))
  ]
  random, scores = np.random.default_rng(6), np.zeros(3)
  rows = [environment.reset() for environment in environments]
  cuts, discounts = 0, []
  for _ in range(260):
    actions = random.integers(18, size=3)
    rows = [environment.step(actions) for environment in environments]
    cut, single, ignored = rows
    for field in ('step_type', 'reward', 'discount', 'score'):
      np.testing.assert_array_equal(getattr(cut, field), getattr(single, field))
    is_over = (cut.step_type == types.LAST) & (ignored.discount == 0)
    np.testing.assert_array_equal(cut.observation[~is_over], single.observation[~is_over])
    np.testing.assert_array_equal(cut.observation, ignored.observation)
    np.testing.assert_array_equal(cut.reward, ignored.reward)
    np.testing.assert_array_equal(cut.step_type, ignored.step_type)
    assert (cut.discount <= ignored.discount).all()
    cuts += ((cut.step_type == types.MID) & (cut.discount == 0)).sum()
    discounts += list(ignored.discount[cut.step_type == types.LAST])
    scores += cut.score
  assert cuts > len(discounts) > 3 and scores.any()
  assert set(discounts) == {0, 1}, 'no termination or no truncation among the ends'
  for environment in environments:
    environment.close()


def test_the_hidden_step_of_a_truncated_game_brings_no_reward():
  environment = make('Skiing', 1, 2, max_num_noops=0, max_frames=40)  # its points count each moment
  environment.reset()
  rows = [environment.step(np.zeros(2, int)) for _ in range(33)]
  is_first = np.array([row.step_type for row in rows]) == types.FIRST
  rewards = np.array([row.reward for row in rows])
  assert is_first.sum() == 2 * 3
  assert (rewards[~is_first] != 0).mean() > 0.5
  assert (rewards[is_first] == 0).all()


class Counting:
  """A wrapper of the emulators that records each one's frame count at its last start."""

  def __init__(self, interface, num_environments):
    self._interface = interface
    self.frames = np.zeros(num_environments, int)

  def __getattr__(self, name):
    return getattr(self._interface, name)

  def reset(self, indices, seeds):
    screens, info = self._interface.reset(indices, seeds)
    self.frames[indices] = info['episode_frame_number'][indices]
    return screens, info


def test_noops_are_1_to_n(monkeypatch):
  """The no-ops occur at the first start, at resets, and after truncations."""
  num_start_frames = 7  # of this game, before any no-op; 0 in most games
  native, made, counts = importlib.import_module('ale_py._ale_py'), [], []
  interface = native.ALEVectorInterface

  def counting_interface(**options):
    made.append(Counting(interface(**options), 4))
    return made[-1]

  monkeypatch.setattr(native, 'ALEVectorInterface', counting_interface)
  environment = make('YarsRevenge', 1, 4, max_num_noops=3, max_frames=4)
  (counting,) = made
  for _ in range(6):
    environment.reset()
    counts += list(counting.frames - num_start_frames)
    for _ in range(2):  # to LAST and then to FIRST
      environment.step(np.zeros(4, int))
    counts += list(counting.frames - num_start_frames)
  assert set(counts) == {1, 2, 3}
  # 48 draws of 3: a standard deviation is 3.3.
  assert min(counts.count(count) for count in (1, 2, 3)) > 16 - 13


def test_wrong_actions_are_refused_before_they_hang_a_thread():
  environment = make('Pong', 1, 2)
  environment.reset()
  for actions in ([0, 18], [-1, 0], [0], [[0, 1]]):
    with pytest.raises(ValueError, match='expected'):
      environment.step(np.array(actions))
  assert (environment.step(np.zeros(2, int)).step_type == types.MID).all()


def test_episodes_of_other_seeds_and_later_ones_differ():
  def first_screens(seed):
    environment = make('Seaquest', seed, 2)
    return [environment.reset().observation for _ in range(2)]

  one, same, other = first_screens(1), first_screens(1), first_screens(2)
  np.testing.assert_array_equal(one, same)
  assert (np.array(one) != np.array(other)).any()
  assert (one[0] != one[1]).any()


def test_a_step_before_the_first_reset_is_a_reset():
  row = make('Pong', 1, 2).step(np.zeros(2, int))
  assert (row.step_type == types.FIRST).all()
