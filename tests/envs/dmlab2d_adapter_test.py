"""The real DeepMind Lab2D: contract, actions, ends, seeds, pictures, settings."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import dmlab2d_adapter
from seed_acme.envs import registry
from seed_acme.envs import suite as suite_lib
from seed_acme.testing import environment_contract
from tests.envs import configs


@pytest.fixture(autouse=True)
def fixture_installed(request):
  if 'missing' not in request.node.name and not suite_lib.is_installed('dmlab2d'):
    pytest.skip('dmlab2d is not installed')


def make(level='pushbox', num_environments=1, seed=1, **settings):
  return registry.make(configs.of(f'dmlab2d:{level}', **settings), num_environments, seed)


@pytest.mark.slow
class TestPushboxContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return make('pushbox', num_environments, seed, max_steps=25)


class TestCleanUpContract(environment_contract.EnvironmentContract):
  """The contract with four agents' actions at once, a choice each, and a view for each agent."""

  def make_environment(self, num_environments, seed):
    return make('clean_up', num_environments, seed, max_steps=25, flat_actions=False)


@pytest.mark.parametrize('level', dmlab2d_adapter.LEVELS)
def test_every_level_is_played(level):
  environment = make(level)
  row = environment.reset()
  assert row.observation.shape == (1, *environment.spec.observation.shape)
  rows = environment_contract.play(environment, 20)
  assert any((row.observation != rows[0].observation).any() for row in rows)
  environment.close()


def test_the_image_and_the_actions_of_pushbox():
  spec = make().spec
  assert (spec.observation.shape, spec.observation.dtype) == ((80, 80, 3), np.uint8)
  assert spec.action.num_values == 5 and spec.frames_per_step == 1


def play(environment, actions):
  environment.reset()
  return [environment.step(np.array([action], np.int32)) for action in actions]


def test_the_limit_of_steps_truncates_as_the_level_has_it():
  rows = play(make(stepCost=0.5), [0] * 121)
  assert [row.step_type[0] for row in rows[-3:]] == [types.MID, types.LAST, types.FIRST]
  assert rows[-2].discount[0] == 1 and rows[-2].reward[0] == -0.5


def solved(environment, least):
  """Returns rows of episode ends in which all boxes were in place, under random actions."""
  random, found = np.random.default_rng(3), []
  environment.reset()
  for _ in range(40_000):
    row = environment.step(random.integers(0, 5, environment.num_environments))
    found.extend(
      (row.reward[index], row.discount[index])
      for index in np.flatnonzero((row.step_type == types.LAST) & (row.reward > 5))
    )
    if len(found) >= least:
      return found
  raise AssertionError(f'solved {len(found)} times only')


def test_a_level_that_is_solved_terminates():
  easy = {'numBoxes': 1, 'roomSteps': 5}
  for reward, discount in solved(make(num_environments=8, **easy), least=5):
    assert discount == 0 and reward == pytest.approx(10.9)


def test_a_level_solved_at_the_limit_terminates_all_the_same():
  ends = solved(make(num_environments=8, numBoxes=1, roomSteps=5, max_steps=2), least=1)
  assert {discount for _, discount in ends} == {0}


def test_flat_actions_are_all_combinations():
  flat, separate = make('clean_up'), make('clean_up', flat_actions=False)
  assert flat.spec.action.num_values == 5 * 3 * 2 * 2
  assert separate.spec.action.num_values.tolist() == [5, 3, 2, 2]
  flat.reset()
  separate.reset()
  random = np.random.default_rng(1)
  for _ in range(30):
    choice = random.integers([5, 3, 2, 2])
    number = np.ravel_multi_index(choice, (5, 3, 2, 2))
    rows = flat.step(np.array([number])), separate.step(choice[np.newaxis])
    environment_contract.assert_equal_rows(*rows)


@pytest.mark.parametrize(
  ('settings', 'action'), [({}, 60), ({}, -1), ({'flat_actions': False}, [0, 3, 0, 0])]
)
def test_wrong_actions_are_errors(settings, action):
  environment = make('clean_up', **settings)
  environment.reset()
  with pytest.raises(ValueError, match=r'action .*: expected'):
    environment.step(np.array([action], np.int32))


def test_options_of_the_level():
  spec = make(**{'gridShape.width': 6, 'gridShape.height': 8, 'numBoxes': 1}).spec
  assert spec.observation.shape == (64, 48, 3)
  assert make(spriteSize=4).spec.observation.shape == (40, 40, 3)


def test_pictures():
  environment = registry.make(configs.of('dmlab2d:pushbox'), 1, seed=1, renders=True)
  row = environment.reset()
  np.testing.assert_array_equal(environment.render(), row.observation[0])


@pytest.mark.parametrize(
  ('level', 'settings', 'message'),
  [
    ('pushbx', {}, r'one of chase_eat, .* \(near: dmlab2d:pushbox'),
    ('', {}, r"unknown environment 'dmlab2d:'"),
    ('pushbox', {'boxes': 3}, r'cannot be loaded: Invalid setting: boxes = "3".*numBoxes'),
    ('pushbox', {'numBoxes': 'many'}, r"cannot be loaded: .*'numBoxes'"),
    ('pushbox', {'episodeLengthFrames': 9}, 'it follows from max_steps'),
    ('pushbox', {'levelName': 'clean_up'}, 'it follows from the id'),
    ('clean_up', {'numPlayers': 2}, 'it follows from one player'),
    ('pushbox', {'max_steps': -1}, r'dmlab2d: max_steps \(-1\) must be >= 0'),
    ('pushbox', {'flat_actions': 1}, r'flat_actions \(1\) is of type int; expected bool'),
  ],
)
def test_wrong_ids_and_settings_are_user_errors(level, settings, message):
  with pytest.raises(types.UserError, match=message) as caught:
    registry.check(configs.of(f'dmlab2d:{level}', **settings))
  assert '\n' not in str(caught.value) and '\x1b' not in str(caught.value)


def test_a_missing_package_names_its_extra(monkeypatch):
  monkeypatch.setattr(suite_lib, 'is_installed', lambda name: name != 'dmlab2d')
  with pytest.raises(types.UserError, match=r'needs dmlab2d: .*pip install -e .\.\[dmlab2d\]'):
    registry.check(configs.of('dmlab2d:pushbox'))
