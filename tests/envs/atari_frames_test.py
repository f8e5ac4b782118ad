"""Atari on a made-up emulator: pooled and stacked frames, limits, and no-ops."""

import dm_env
import numpy as np
import pytest

from seed_acme.envs import atari

pytest.importorskip('ale_py')
pytest.importorskip('cv2')

FIRE, RIGHT = 1, 3


class FakeAle:
  """An emulator whose frame n (1, 2, ... after a reset) shows `screens[n]` and has reward n.

  It ends at `last_frame`. losses: frames that lose one of three lives.
  """

  def __init__(self, screens, last_frame=10**6, losses=()):
    self._screens, self._last_frame, self._losses = screens, last_frame, losses
    self.frame = 0
    self.actions = []

  def getLegalActionSet(self):
    import ale_py

    return [ale_py.Action(code) for code in range(18)]

  def getScreenDims(self):
    return 84, 84

  def reset_game(self):
    self.frame = 0

  def act(self, code):
    self.actions.append(code)
    self.frame += 1
    return self.frame

  def game_over(self):
    return self.frame >= self._last_frame

  def lives(self):
    return 3 - sum(loss <= self.frame for loss in self._losses)

  def getScreenGrayscale(self, buffer):
    np.copyto(buffer, self._screens[self.frame])


def fake_environment(monkeypatch, last_frame=10**6, losses=(), **settings):
  """Makes an environment with random pixels, so that each maximum shows which frames are in it."""
  screens = np.random.default_rng(1).integers(256, size=(200, 84, 84), dtype=np.uint8)
  ale = FakeAle(screens, last_frame, losses)
  monkeypatch.setattr(atari, 'load_game', lambda *args: ale)
  environment = atari.Atari('Fake', 3, atari.Settings(**{'max_num_noops': 0, **settings}))
  return environment, ale, screens


@pytest.mark.parametrize('frames_per_step', [1, 2, 3, 4])
def test_the_last_two_frames_of_a_step_are_pooled(monkeypatch, frames_per_step):
  environment, ale, screens = fake_environment(monkeypatch, frames_per_step=frames_per_step)
  np.testing.assert_array_equal(environment.reset().observation[:, :, 0], screens[0])
  for step in range(1, 9):
    timestep = environment.step(RIGHT)
    last = step * frames_per_step
    frames = screens[last - 1 : last + 1] if frames_per_step > 1 else screens[last : last + 1]
    np.testing.assert_array_equal(timestep.observation[:, :, 0], frames.max(axis=0))
    assert timestep.reward == sum(range(last - frames_per_step + 1, last + 1))
  assert ale.actions == [RIGHT] * 8 * frames_per_step


@pytest.mark.parametrize('last_frame', [5, 6, 7, 8])
def test_game_over_shows_its_own_frame_and_plays_no_other(monkeypatch, last_frame):
  environment, ale, screens = fake_environment(monkeypatch, last_frame)
  environment.reset()
  assert environment.step(0).mid()
  timestep = environment.step(0)
  assert timestep.last()
  assert timestep.discount == 0
  assert timestep.reward == sum(range(5, last_frame + 1))
  np.testing.assert_array_equal(timestep.observation[:, :, 0], screens[last_frame])
  assert ale.frame == last_frame
  timestep = environment.step(RIGHT)
  assert timestep.first()
  np.testing.assert_array_equal(timestep.observation[:, :, 0], screens[0])
  assert RIGHT not in ale.actions


def test_the_stack_has_the_newest_screen_first_and_zeros_before_the_episode(monkeypatch):
  environment, _, screens = fake_environment(monkeypatch, frames_per_step=1, stack=3)
  zeros = np.zeros_like(screens[0])
  expected = [
    [screens[0], zeros, zeros],
    [screens[1], screens[0], zeros],
    [screens[2], screens[1], screens[0]],
    [screens[3], screens[2], screens[1]],
  ]
  for _ in range(2):  # the second episode shows nothing of the first
    observations = [environment.reset().observation]
    for _ in range(3):
      observations.append(environment.step(0).observation)
      observations[-1][:] += 0
    np.testing.assert_array_equal(observations, np.moveaxis(expected, 1, -1))


def test_what_the_caller_writes_stays_with_the_caller(monkeypatch):
  environment, _, screens = fake_environment(monkeypatch, frames_per_step=1, stack=2)
  environment.reset().observation[:] = 7
  np.testing.assert_array_equal(environment.step(0).observation[:, :, 1], screens[0])


@pytest.mark.parametrize(('max_frames', 'num_steps'), [(8, 2), (9, 3), (1, 1)])
def test_the_frame_limit_truncates(monkeypatch, max_frames, num_steps):
  environment, _, screens = fake_environment(monkeypatch, max_frames=max_frames)
  for _ in range(2):
    rows = [environment.reset()] + [environment.step(0) for _ in range(num_steps)]
    assert [row.step_type for row in rows[1:-1]] == [dm_env.StepType.MID] * (num_steps - 1)
    assert rows[-1].last()
    assert rows[-1].discount == 1
    last = 4 * num_steps
    np.testing.assert_array_equal(
      rows[-1].observation[:, :, 0], screens[last - 1 : last + 1].max(axis=0)
    )


def test_game_over_wins_over_the_frame_limit(monkeypatch):
  environment, _, _ = fake_environment(monkeypatch, last_frame=8, max_frames=8)
  environment.reset()
  environment.step(0)
  timestep = environment.step(0)
  assert timestep.last()
  assert timestep.discount == 0


@pytest.mark.parametrize('max_num_noops', [0, 1, 5])
def test_an_episode_starts_with_1_to_n_noops(monkeypatch, max_num_noops):
  environment, ale, screens = fake_environment(monkeypatch, max_num_noops=max_num_noops)
  counts = []
  for _ in range(200):
    observation = environment.reset().observation
    counts.append(ale.frame)
    np.testing.assert_array_equal(observation[:, :, 0], screens[ale.frame])
  assert set(counts) == (set(range(1, max_num_noops + 1)) or {0})
  # 200 draws of 5: a standard deviation is 5.7.
  assert min(counts.count(count) for count in set(counts)) > 200 / max(max_num_noops, 1) - 25
  assert set(ale.actions) <= {atari.NOOP}


def test_noops_that_end_the_game_start_it_again(monkeypatch):
  environment, ale, _ = fake_environment(monkeypatch, last_frame=2, max_num_noops=30)
  for _ in range(20):
    environment.reset()
    assert ale.frame < 2


def test_the_frame_limit_does_not_count_noops(monkeypatch):
  environment, _, _ = fake_environment(monkeypatch, max_num_noops=30, max_frames=8)
  for _ in range(5):
    environment.reset()
    assert environment.step(0).mid()
    assert environment.step(0).last()


@pytest.mark.parametrize('action', [-1, 18])
def test_a_wrong_action_is_refused(monkeypatch, action):
  environment, _, _ = fake_environment(monkeypatch)
  environment.reset()
  with pytest.raises(ValueError, match=rf'action {action}: expected 0 ... 17'):
    environment.step(action)


@pytest.mark.parametrize('life_loss', ['ignore', 'cut'])
def test_a_lost_life_cuts_the_value_and_the_game_goes_on(monkeypatch, life_loss):
  """Lives are lost within steps 2 and 3 of 4 frames; losing the last one ends the game."""
  environment, _, _ = fake_environment(monkeypatch, 19, [6, 9, 19], life_loss=life_loss)
  for _ in range(2):  # the lives of the second game are counted separately
    rows = [environment.reset()] + [environment.step(RIGHT) for _ in range(5)]
    assert [row.step_type for row in rows[1:]] == [dm_env.StepType.MID] * 4 + [dm_env.StepType.LAST]
    cut = 0 if life_loss == 'cut' else 1
    assert [row.discount for row in rows[1:]] == [1, cut, cut, 1, 0]
    assert sum(row.reward for row in rows[1:]) == sum(range(20))


@pytest.mark.parametrize('fire_at_start', [False, True])
def test_the_button_is_pressed_at_the_start_and_after_a_lost_life(monkeypatch, fire_at_start):
  environment, ale, _ = fake_environment(
    monkeypatch, 19, [6, 10, 19], fire_at_start=fire_at_start, max_num_noops=1
  )
  for _ in range(2):
    ale.actions.clear()
    environment.reset()
    while not environment.step(RIGHT).last():
      pass
    # A no-op, then steps of 4 frames; the last one is cut short.
    pressed = [FIRE, RIGHT, FIRE, FIRE, RIGHT] if fire_at_start else [RIGHT] * 5
    assert ale.actions == ([0] + [code for code in pressed for _ in range(4)])[:19]


def test_a_life_that_is_lost_where_the_frames_run_out_cuts_the_value(monkeypatch):
  for life_loss, discount in (('ignore', 1), ('cut', 0)):
    environment, _, _ = fake_environment(
      monkeypatch, losses=[6], max_frames=8, life_loss=life_loss, fire_at_start=True
    )
    environment.reset()
    environment.step(RIGHT)
    timestep = environment.step(RIGHT)
    assert timestep.last() and timestep.discount == discount
    assert environment.step(RIGHT).first()
