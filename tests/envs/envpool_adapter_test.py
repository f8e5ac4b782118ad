"""envpool in this Python; tests/programs/other_pythons_test.py has its games under another one."""

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import envpool_adapter
from seed_acme.envs import registry

envpool = pytest.importorskip('envpool')


def _check(level, **settings):
  registry.check(config_lib.EnvironmentConfig(f'envpool:{level}', settings))


def test_a_discount_that_only_their_dm_env_interface_has_is_refused():
  with pytest.raises(types.UserError, match='no effect here: set life_loss cut'):
    _check('Breakout-v5', zero_discount_on_life_loss=True)


@pytest.mark.parametrize(
  ('level', 'name', 'value', 'bound'),
  [
    ('Pong-v5', 'frame_skip', 0, '>= 1'),
    ('Pong-v5', 'frame_skip', -1, '>= 1'),
    ('HalfCheetah-v4', 'frame_skip', 0, '>= 1'),
    ('Pong-v5', 'stack_num', 0, '>= 1'),
    ('Pong-v5', 'img_height', 0, '>= 1'),
    ('Pong-v5', 'img_width', -3, '>= 1'),
    ('Pong-v5', 'max_episode_steps', 0, '>= 1'),
    ('CartPole-v1', 'max_episode_steps', 0, '>= 1'),
    ('Pong-v5', 'noop_max', 0, '>= 1'),
    ('Pong-v5', 'num_threads', -1, '>= 0'),
    ('Pong-v5', 'repeat_action_probability', 1.5, r'in \[0, 1\)'),
    ('Pong-v5', 'repeat_action_probability', -0.5, r'in \[0, 1\)'),
  ],
)
def test_numbers_that_no_game_can_be_played_with_are_refused(level, name, value, bound):
  with pytest.raises(types.UserError, match=rf'{level}.*{name} \({value}\) must be {bound}'):
    _check(level, **{name: value})


@pytest.mark.parametrize('level', ['ConnectFour-v1', 'SparrowMahjong-v1'])
def test_a_game_of_several_players_is_refused(level):
  with pytest.raises(types.UserError, match=f"'envpool:{level}' is for up to [23] players"):
    _check(level)


def test_the_least_numbers_are_right():
  _check(
    'Pong-v5', frame_skip=1, stack_num=1, noop_max=1, num_threads=0, repeat_action_probability=0
  )


def test_a_default_of_the_level_itself_is_right():
  level = 'BabyAI-BossLevel-v0'
  assert envpool.make_spec(level).config.max_episode_steps == 0
  _check(level, max_episode_steps=0)


@pytest.mark.parametrize(
  ('function', 'level'), [('make_spec', 'Acrobot-v1'), ('make_gymnasium', 'MountainCar-v0')]
)
def test_a_library_of_the_system_that_is_missing_is_named(monkeypatch, function, level):
  def needs_it(*_, **__):
    raise ImportError('this suite requires the runtime of Qt')

  monkeypatch.setattr(envpool, function, needs_it)
  config = config_lib.EnvironmentConfig(f'envpool:{level}')
  with pytest.raises(types.UserError, match=f"'envpool:{level}'.*the runtime of Qt"):
    registry.make(config, 1, seed=1)


@pytest.mark.parametrize(
  ('stack_num', 'gray_scale'), [(2, True), (2, False), (20, True), (20, False)]
)
def test_stacked_screens_have_the_newest_first_and_their_colours_in_order(stack_num, gray_scale):
  settings = {'stack_num': stack_num, 'gray_scale': gray_scale, 'noop_max': 1}
  settings |= {'use_fire_reset': False, 'img_height': 40, 'img_width': 48}
  theirs = envpool.make_gymnasium('Breakout-v5', num_envs=1, seed=[1], num_threads=1, **settings)
  ours = envpool_adapter.Envpool('Breakout-v5', [1], {**settings, 'full_action_space': False})
  colours = 1 if gray_scale else 3
  assert ours.spec.observation.shape == (40, 48, stack_num * colours)
  rows = [(ours.reset().observation, theirs.reset()[0])]
  for action in (1, 3, 3, 2):
    actions = np.array([action], np.int32)
    rows.append((ours.step(actions).observation, theirs.step(actions)[0]))
  for mine, plain in rows:  # [1, H, W, channels] and [1, channels, H, W]
    screens = np.split(plain, stack_num, axis=1)  # the newest last
    for number, screen in enumerate(reversed(screens)):
      for channel in range(colours):
        np.testing.assert_array_equal(mine[..., number * colours + channel], screen[:, channel])
  older, newer = screens[-2:]
  assert not np.array_equal(older, newer), 'the two screens must differ for this test'
  if not gray_scale:
    assert not np.array_equal(newer[:, 0], newer[:, 2]), 'red and blue must differ for this test'
  ours.close()
  theirs.close()


def test_a_picture_of_a_suite_with_channels_last_stays_as_it_is():
  level = 'MiniGrid-Empty-5x5-v0'  # [7, 7, 3]
  ours = envpool_adapter.Envpool(level, [1], {})
  theirs = envpool.make_gymnasium(level, num_envs=1, seed=[1], num_threads=1)
  np.testing.assert_array_equal(ours.reset().observation['image'], theirs.reset()[0]['image'])
  ours.close()
  theirs.close()


@pytest.mark.parametrize('stack_num', [1, 20])
def test_the_doom_suite_has_its_channels_last(tmp_path, monkeypatch, stack_num):
  monkeypatch.chdir(tmp_path)  # VizDoom writes its settings into the current folder
  ours = envpool_adapter.Envpool('Basic-v1', [1], {'stack_num': stack_num})
  assert ours.spec.observation.shape == (84, 84, 3 * stack_num)
  assert ours.spec.frames_per_step == 4
  ours.close()


def test_choices_that_do_not_begin_at_0_are_counted_from_0():
  ours = envpool_adapter.Envpool('TSP-v1', [1], {})
  theirs = envpool.make_gymnasium('TSP-v1', num_envs=1, seed=[1], num_threads=1)
  assert theirs.observation_space['position'].start == -1
  rows = [(ours.reset().observation, theirs.reset()[0])]
  rows.append((ours.step(np.array([3])).observation, theirs.step(np.array([3]))[0]))
  for mine, plain in rows:
    np.testing.assert_array_equal(mine['position'], plain['position'] + 1)
  ours.close()
  theirs.close()


def test_spaces_that_envpool_cannot_make_are_a_user_error():
  with pytest.raises(types.UserError, match="'envpool:WalkerRun-v1': envpool cannot describe"):
    envpool_adapter.Envpool('WalkerRun-v1', [1], {})
