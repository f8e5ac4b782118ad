"""Football on its real engine, if `make football` has built it; skipped otherwise."""

import dataclasses
import itertools
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry as configs
from seed_acme.envs import experiment_environments
from seed_acme.envs import packed_planes
from seed_acme.envs.interpreters import interpreter
from seed_acme.testing import environment_contract

_ROOT = pathlib.Path(__file__).parents[2]
_PYTHON = os.environ.get('SEED_ACME_FOOTBALL', str(_ROOT / '.venv-football' / 'bin' / 'python'))
_LEVEL = 'football:academy_empty_goal_close'

pytestmark = [
  pytest.mark.slow,
  pytest.mark.timeout(900),
  pytest.mark.skipif(
    not pathlib.Path(_PYTHON).exists(), reason='the engine is not built here: make football'
  ),
]


def _make(num_environments, seed=1, level=_LEVEL, renders=False, **settings):
  config = dataclasses.replace(
    configs.load('football_academy'),
    environment=config_lib.EnvironmentConfig(level, settings),
    actor=config_lib.ActorConfig(python=_PYTHON),
  )
  return experiment_environments.make(config, num_environments, seed, renders=renders)


class TestScoringContract(environment_contract.EnvironmentContract):
  num_steps = 45

  def make_environment(self, num_environments, seed):
    return _make(num_environments, seed)


class TestCheckpointsContract(environment_contract.EnvironmentContract):
  num_steps = 45

  def make_environment(self, num_environments, seed):
    return _make(num_environments, seed, rewards='scoring,checkpoints', observation='simple115')


def test_views_and_rewards_are_those_of_the_engines_own_wrappers():
  done = subprocess.run(
    [_PYTHON, '-m', 'tests.envs.football_reference'],
    cwd=_ROOT,
    env={**os.environ, **interpreter.variables(_PYTHON), 'SDL_VIDEODRIVER': 'dummy'},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  counts = json.loads(done.stdout.splitlines()[-1])
  assert counts['steps'] > 200 and counts['episodes'] >= 2 and counts['paid'] > 0.5
  assert [counts[name] for name in ('maps', 'numbers', 'rewards', 'scores')] == [0, 0, 0, 0]


def test_the_shaped_reward_is_learnt_from_and_the_score_is_told():
  environment = _make(4, rewards='scoring,checkpoints')
  rows = [environment.reset()]
  rows += [environment.step(np.full(4, 5, np.int32)) for _ in range(60)]  # run to the right
  environment.close()
  assert sum(float(row.reward.sum()) for row in rows) > sum(float(row.score.sum()) for row in rows)
  assert all(np.isin(row.score, (-1, 0, 1)).all() for row in rows)


def test_a_whole_game_ends_by_its_clock():
  for terminates, discount in ((False, 1.0), (True, 0.0)):
    environment = _make(
      1, level='football:1_vs_1_easy', observation='simple115', time_up_terminates=terminates
    )
    row, num_steps = environment.reset(), 0
    while row.step_type[0] != types.LAST:
      row = environment.step(np.zeros(1, np.int32))
      num_steps += 1
    environment.close()
    assert row.discount[0] == discount and num_steps > 100


def test_the_map_is_packed_by_default():
  environment = _make(2)
  assert packed_planes.num_planes(environment.spec.observation) == 16
  assert environment.reset().observation.shape == (2, 72, 96, 1)
  environment.close()


def test_levels_and_pictures():
  with pytest.raises(types.UserError, match='near: football:academy_empty_goal_close'):
    _make(1, level='football:academy_emty_goal_close')
  environment = _make(1, renders=True)
  environment.reset()
  assert environment.render().shape == (252, 480, 3)
  environment.close()


def test_the_engine_draws_without_a_display_and_the_game_stays_the_same(monkeypatch, capfd):
  monkeypatch.setenv('DISPLAY', ':77')  # no such display exists
  plain, drawn = _make(1), _make(1, renders=True, picture='engine')
  rows, pictures = [(plain.reset(), drawn.reset())], []
  while sum(row.step_type[0] == types.FIRST for row, _ in rows) < 2 or len(rows) < 25:
    pictures.append(drawn.render())
    assert pictures[-1].shape == (360, 640, 3) and pictures[-1].dtype == np.uint8
    rows.append(tuple(one.step(np.full(1, 5, np.int32)) for one in (plain, drawn)))
  plain.close()
  drawn.close()
  for one, other in rows:
    np.testing.assert_array_equal(one.observation, other.observation)
    assert (one.step_type, one.reward) == (other.step_type, other.reward)
  assert all((one != other).any() for one, other in itertools.pairwise(pictures))
  red, green, blue = np.median(pictures[-1].reshape(-1, 3), axis=0)
  assert green > red > blue > 0  # grass
  assert capfd.readouterr().out == ''
