"""Atari with the games themselves, one emulator per environment (see also atari_frames_test.py)."""

import subprocess
import sys

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import registry
from seed_acme.envs import suite
from seed_acme.envs import vector
from seed_acme.testing import environment_contract

pytest.importorskip('ale_py')
pytest.importorskip('cv2')

FIRE = 1


def config(environment_id='atari:Pong', **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)


@pytest.mark.slow
class TestAtariContract(environment_contract.EnvironmentContract):
  num_steps = 20

  def make_environment(self, num_environments, seed):
    return registry.make(
      config(
        'atari:Breakout',
        vectorized=False,
        max_frames=20,
        stack=2,
        image_size=42,
        max_num_noops=8,
        repeat_action_probability=0.25,
      ),
      num_environments,
      seed,
    )


def test_specification():
  spec = registry.environment_spec(config(vectorized=False, stack=4, frames_per_step=2))
  assert spec == registry.environment_spec(config(stack=4, frames_per_step=2))
  assert spec.frames_per_step == 2
  assert spec.observation.shape == (84, 84, 4)
  assert spec.observation.dtype == np.uint8
  assert (spec.observation.minimum, spec.observation.maximum) == (0, 255)
  assert spec.observation.name == 'screen'
  assert spec.action.num_values == 18
  assert spec.action.dtype == np.int32
  assert types.num_discrete_actions(registry.environment_spec(config(full_action_set=False))) == 6


@pytest.mark.slow
def test_all_57_games_are_there_and_have_18_actions():
  assert set(atari_games.GAMES) < set(atari.known_games())
  for game in atari_games.GAMES:
    environment = atari.Atari(game, 1, atari.Settings(max_num_noops=0))
    assert environment.action_spec().num_values == 18, game
    assert environment.reset().observation.shape == (84, 84, 1)
    assert environment.step(17).observation.any(), f'{game} shows a black screen'


def test_a_game_without_a_button_plays_the_same_without_it():
  ale = atari.load_game('Skiing', 1, 0.0)
  codes = atari.action_codes(ale, full_action_set=True)
  assert len(codes) == 18
  assert codes[FIRE] == atari.NOOP
  assert codes[2:10] == codes[10:18] == list(range(2, 10))
  assert atari.action_codes(atari.load_game('Pong', 1, 0.0), True) == list(range(18))


@pytest.mark.slow
def test_sticky_actions_differ_from_episode_to_episode_and_seed_to_seed():
  def rewards_and_screens(environment):
    random, rows = np.random.default_rng(0), [environment.reset()]
    rows += [environment.step(random.integers(18)) for _ in range(60)]
    return np.stack([row.observation for row in rows])

  def make(seed, probability):
    return atari.Atari(
      'Breakout', seed, atari.Settings(max_num_noops=0, repeat_action_probability=probability)
    )

  sticky, same, other = make(4, 0.25), make(4, 0.25), make(6, 0.25)
  first = rewards_and_screens(sticky)
  np.testing.assert_array_equal(rewards_and_screens(same), first)
  assert (rewards_and_screens(sticky) != first).any()
  assert (rewards_and_screens(other) != first).any()
  plain = make(4, 0.0)
  first = rewards_and_screens(plain)
  np.testing.assert_array_equal(rewards_and_screens(plain), first)


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'frames_per_step': 0}, r'atari: frames_per_step \(0\) must be in \[1, 60\]'),
    ({'frames_per_step': 2.0}, r'frames_per_step \(2\.0\) is of type float; expected int'),
    ({'max_num_noops': -1}, r'max_num_noops \(-1\)'),
    ({'stack': 0}, r'stack \(0\)'),
    ({'stack': True}, r'stack \(True\)'),
    ({'max_frames': 0}, r'max_frames \(0\)'),
    ({'image_size': 7}, r'image_size \(7\)'),
    ({'num_threads': 0}, r'num_threads \(0\)'),
    ({'num_threads': 2, 'vectorized': False}, r'num_threads \(2\) needs vectorized=True'),
    ({'repeat_action_probability': 1}, r'repeat_action_probability \(1\) must be in \[0, 1\)'),
    ({'repeat_action_probability': 'no'}, r"repeat_action_probability \('no'\)"),
    ({'full_action_set': 1}, r'full_action_set \(1\) is of type int; expected bool'),
    ({'life_loss': 'end'}, r"life_loss \('end'\) must be one of 'ignore', 'cut'"),
    ({'life_loss': []}, r'life_loss \(\[\]\) must be one of'),
    ({'fire_at_start': 1}, r'fire_at_start \(1\) is of type int; expected bool'),
    ({'vectorized': 'yes'}, r"vectorized \('yes'\) is of type str; expected bool"),
    ({'frame_skip': 4}, r"has no setting 'frame_skip': expected frames_per_step, max_num_noops"),
  ],
)
def test_wrong_settings_are_user_errors(settings, message):
  for use in (registry.check, lambda c: registry.make(c, 2, 1)):
    with pytest.raises(types.UserError, match=message):
      use(config(**settings))


@pytest.mark.parametrize(
  ('game', 'message'),
  [
    ('Pongg', r"unknown Atari game 'Pongg' \(near: Pong"),
    ('pong', r'near: Pong'),
    ('montezuma_revenge', r'near: MontezumaRevenge'),
    ('Combat', r"unknown Atari game 'Combat'"),  # for two players, on which ale-py would exit
    ('', r"unknown Atari game ''"),
  ],
)
def test_wrong_games_are_user_errors(game, message):
  with pytest.raises(types.UserError, match=message):
    registry.check(config(f'atari:{game}'))


@pytest.mark.slow
@pytest.mark.parametrize('vectorized', [True, False])
def test_an_action_set_without_fire_is_refused(vectorized):
  def make(game, **settings):
    return registry.make(config(game, vectorized=vectorized, **settings), 1, seed=1)

  message = r'Freeway: .*FIRE, which is not among the 3 actions: set .*=False or full_action_set='
  with pytest.raises(types.UserError, match=message):
    make('atari:Freeway', fire_at_start=True, full_action_set=False)
  with pytest.raises(types.UserError, match=r'Skiing: .* the 18 actions: set fire_at_start=False$'):
    make('atari:Skiing', fire_at_start=True)
  make('atari:Freeway', full_action_set=False).close()
  make('atari:Breakout', fire_at_start=True, full_action_set=False).close()


@pytest.mark.parametrize('package', ['ale_py', 'cv2'])
def test_a_missing_package_names_the_extra(monkeypatch, package):
  monkeypatch.setattr(suite, 'is_installed', lambda name: name != package)
  with pytest.raises(types.UserError, match=rf'needs {package}: .*pip install -e .\.\[atari\]'):
    registry.make(config(), 1, seed=1)
  listed = {known.id: known for known in registry.known_environments()}
  assert not listed['atari:GAME'].is_available
  assert listed['atari:GAME'].install == "PIP_CONSTRAINT=constraints.txt pip install -e '.[atari]'"
  monkeypatch.setitem(sys.modules, package, None)  # makes its import fail
  with pytest.raises(
    types.UserError, match=rf'needs the package {package}: .*pip install -e .\.\[atari\]'
  ):
    atari.Atari('Pong', 1, atari.Settings())


def test_listing():
  listed = {known.id: known for known in registry.known_environments()}
  assert listed['atari:GAME'].is_available
  assert listed['atari:GAME'].settings[:2] == ('frames_per_step', 'max_num_noops')
  with pytest.raises(types.UserError, match='near: atari:Pong'):
    registry.check(config('atary:Pong'))


def test_render_is_the_emulators_screen_in_colour():
  environment = registry.make(config('atari:Breakout', num_threads=2), 2, seed=1, renders=True)
  assert isinstance(environment, vector.VectorOfEnvironments)
  environment.reset()
  screen = environment.render()
  assert screen.shape == (210, 160, 3)
  assert screen.dtype == np.uint8
  assert (screen.std(axis=2) > 0).any(), 'the walls have colours'
  for _ in range(5):
    environment.step(np.array([FIRE, FIRE]))
  assert (environment.render() != screen).any()
  environment.close()


def test_nothing_heavy_is_imported_and_gymnasium_is_not_needed():
  code = """
import sys
sys.modules['gymnasium'] = sys.modules['gym'] = None  # an import of them fails
import numpy as np
from seed_acme import config
from seed_acme.envs import registry
registry.known_environments()
early = [name for name in ('ale_py', 'cv2') if name in sys.modules]
for vectorized in (True, False):
  environment = registry.make(
      config.EnvironmentConfig('atari:Pong', {'vectorized': vectorized}), 2, 1)
  environment.reset()
  environment.step(np.ones(2, np.int32))
  environment.close()
heavy = ['tensorflow', 'reverb', 'sonnet', 'launchpad', 'matplotlib']
print(early + [name for name in heavy if name in sys.modules])
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == '[]'
  assert done.stderr == ''  # the emulator prints a page at each start unless told not to
