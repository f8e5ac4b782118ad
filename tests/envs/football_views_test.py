"""The mini map, the numbers and the checkpoint reward, on handwritten records."""

import numpy as np
import pytest

from seed_acme.envs import football_views
from seed_acme.envs import packed_planes


def record(**changes):
  """Returns the record of a kick-off of two against one."""
  return {
    'left_team': np.array([[-1.0, 0.0], [0.0, 0.0]]),
    'left_team_direction': np.array([[0.0, 0.0], [0.1, 0.2]]),
    'right_team': np.array([[1.0, 0.42]]),
    'right_team_direction': np.array([[-0.1, 0.0]]),
    'ball': np.array([0.5, -0.25, 0.1]),
    'ball_direction': np.array([0.01, 0.02, 0.03]),
    'ball_owned_team': 0,
    'ball_owned_player': 1,
    'active': 1,
    'game_mode': 0,
    'steps_left': 100,
    **changes,
  }


def _set_pixels(plane):
  return {tuple(map(int, pixel)) for pixel in np.argwhere(plane)}


def test_each_layer_marks_its_points():
  view = football_views.MiniMap(96, 72, stack=1, packed=False)
  planes = view.first(record())
  assert planes.shape == (72, 96, 4) and planes.dtype == np.uint8
  assert set(np.unique(planes)) == {0, 255}
  view.spec.validate(planes)
  own, others, ball, active = np.moveaxis(planes, -1, 0)
  assert _set_pixels(own) == {(36, 0), (36, 48)}
  assert _set_pixels(others) == {(70, 95)}
  assert _set_pixels(ball) == {(15, 72)}
  assert _set_pixels(active) == {(36, 48)}


def test_what_is_off_the_map_is_at_its_edge_and_nobody_may_act():
  view = football_views.MiniMap(96, 72, stack=1, packed=False)
  planes = view.first(record(ball=np.array([1.2, -0.6, 0]), active=-1))
  assert _set_pixels(planes[..., 2]) == {(0, 95)}
  assert not planes[..., 3].any()


def test_maps_are_stacked_with_the_newest_last():
  view = football_views.MiniMap(96, 72, stack=4, packed=False)
  balls = [np.array([x, 0.0, 0.0]) for x in (-0.5, 0.0, 0.5)]
  first = view.first(record(ball=balls[0]))
  assert first.shape == (72, 96, 16)
  np.testing.assert_array_equal(first[..., :4], first[..., 12:])  # all the same at first
  view.next(record(ball=balls[1]))
  last = view.next(record(ball=balls[2]))
  columns = [int(np.argwhere(last[..., 4 * age + 2])[0, 1]) for age in range(4)]
  assert columns == [24, 24, 48, 72]
  again = view.first(record(ball=balls[1]))  # no trace of the previous episode
  assert {int(np.argwhere(again[..., 4 * age + 2])[0, 1]) for age in range(4)} == {48}


@pytest.mark.parametrize('stack', [1, 2, 4])
@pytest.mark.parametrize(('width', 'height'), [(96, 72), (120, 90), (144, 108)])
def test_the_packed_map_is_the_same_map(stack, width, height):
  plain = football_views.MiniMap(width, height, stack, packed=False)
  packed = football_views.MiniMap(width, height, stack, packed=True)
  random = np.random.default_rng(1)
  for number in range(6):
    one = record(
      left_team=random.uniform(-1.1, 1.1, (2, 2)), ball=random.uniform(-1, 1, 3), active=number % 2
    )
    step = 'first' if number == 0 else 'next'
    planes, bits = getattr(plain, step)(one), getattr(packed, step)(one)
    assert bits.shape == (height, width, 1) and bits.dtype == np.uint16
    packed.spec.validate(bits)
    np.testing.assert_array_equal(packed_planes.unpack(bits, 4 * stack), planes)


def test_the_115_numbers():
  numbers = football_views.Numbers().next(record())
  assert numbers.shape == (115,) and numbers.dtype == np.float32
  np.testing.assert_allclose(numbers[:5], [-1, 0, 0, 0, -1])
  np.testing.assert_allclose(numbers[22:26], [0, 0, 0.1, 0.2])
  np.testing.assert_allclose(numbers[44:47], [1, 0.42, -1])
  np.testing.assert_allclose(numbers[88:94], [0.5, -0.25, 0.1, 0.01, 0.02, 0.03], rtol=1e-6)
  np.testing.assert_allclose(numbers[94:97], [0, 1, 0])
  np.testing.assert_allclose(numbers[97:108], np.eye(11)[1])
  np.testing.assert_allclose(numbers[108:], np.eye(7)[0])


def test_rings_pay_once_each_and_a_goal_pays_the_rest():
  reward = football_views.CheckpointReward()
  at = lambda distance, **more: record(ball=np.array([1 - distance, 0, 0]), **more)
  assert reward(0, at(1.0)) == 0
  assert reward(0, at(0.98)) == pytest.approx(0.1)
  assert reward(0, at(0.98)) == 0
  assert reward(0, at(0.5)) == pytest.approx(0.5)  # rings at 0.90, 0.81, 0.72, 0.63 and 0.546
  assert reward(0, at(0.9)) == 0
  assert reward(1, at(0.0)) == pytest.approx(0.4)
  assert reward(1, at(0.0)) == 0
  reward.reset()
  assert reward(0, at(0.1)) == pytest.approx(1.0)


def test_rings_do_not_pay_who_has_not_the_ball():
  reward = football_views.CheckpointReward()
  near = {'ball': np.array([0.9, 0, 0])}
  assert reward(0, record(ball_owned_team=-1, **near)) == 0
  assert reward(0, record(ball_owned_team=1, **near)) == 0
  assert reward(0, record(ball_owned_player=0, **near)) == 0  # a team-mate of the acting player
  assert reward(-1, record(ball_owned_team=1, **near)) == 0
  assert reward(0, record(**near)) == pytest.approx(1.0)


def test_the_pitch_shows_who_is_where():
  picture = football_views.drawn_pitch(record())
  assert picture.shape == (252, 480, 3) and picture.dtype == np.uint8
  moved = football_views.drawn_pitch(record(ball=np.array([-0.5, 0.25, 0])))
  changed = np.argwhere((picture != moved).any(-1))
  assert 0 < len(changed) < 400
  assert (football_views.drawn_pitch(record(active=0)) != picture).any()
