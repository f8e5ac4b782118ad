"""Real runs whose environments live under Python 3.11 and 3.12."""

import dataclasses
import json
import pathlib
import shlex

import numpy as np
import psutil
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import actor_packages
from seed_acme.configs import registry as configs
from seed_acme.envs import experiment_environments
from seed_acme.envs import registry
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote
from seed_acme.programs.tools.doctor import actor_python
from seed_acme.storage import recordings
from seed_acme.testing import environment_contract
from tests import actor_pythons
from tests import sources

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1200)]


@pytest.fixture(scope='module', params=actor_pythons.VERSIONS)
def python(request, tmp_path_factory):
  return actor_pythons.make(actor_pythons.shared_folder(tmp_path_factory), request.param)


@pytest.fixture(scope='module')
def newest(tmp_path_factory):
  return actor_pythons.make(
    actor_pythons.shared_folder(tmp_path_factory), actor_pythons.VERSIONS[-1]
  )


def _experiment(python, environment_id, **settings):
  config = configs.load('catch_vtrace')
  return dataclasses.replace(
    config,
    actor=dataclasses.replace(config.actor, python=python),
    environment=config_lib.EnvironmentConfig(environment_id, settings),
  )


def test_a_run_learns_from_actors_there_and_is_evaluated_there(runs, python):
  folder = runs.folder()
  run = runs.train(
    f'--config.actor.python={python}',
    '--config.total_steps=5000',
    '--config.num_evaluation_environments=1',
    '--config.record_every=1000',
    folder=folder,
  )
  workers = lambda: [p for p in run.nodes('actor') if p.exe() != psutil.Process().exe()]
  run.wait_for_updates(1)
  assert workers(), 'no process of the other interpreter acts'
  assert run.wait() == 0, run.stderr
  assert run.summary()['agent_steps'] >= 5000
  # rendered there, filmed by the learner's Python
  assert recordings.steps(run.run_dir.videos)[0] == 0
  record = runs.start('evaluate', 'run', '--episodes=8', '--json', folder=folder)
  assert record.wait() == 0, record.stderr
  assert json.loads(record.stdout)['episodes'] == 8


def test_a_users_own_factory_is_found_there(runs, python):
  run = runs.train(
    f'--config.actor.python={python}',
    '--config.environment.id=drill_environments:Marked',
    '--config.total_steps=500',
  )
  assert run.wait() == 0, run.stderr


def test_wrong_settings_are_found_at_the_door(runs, python):
  run = runs.train(f'--config.actor.python={python}', '--config.environment.id=envpool:Pong-v55')
  assert run.wait() == 2
  assert "unknown environment 'envpool:Pong-v55' (near: envpool:Pong-v5" in run.stderr
  assert not run.run_dir.path.exists()


def test_all_in_one_thread_reaches_them_too(runs, newest):
  run = runs.start(
    'train',
    *runs.small,
    f'--config.actor.python={newest}',
    '--config.environment.id=envpool:CartPole-v1',
    '--config.total_steps=1000',
    '--launch=single_process',
    '--run_dir=run',
  )
  assert run.wait() == 0, run.stderr


def test_doctor_and_list_look_there(runs, newest):
  found = {check.name: check.state for check in actor_python.examine(newest)}
  # gymnasium comes with envpool.
  for name in ('actor python', 'catch', 'envpool:CartPole-v1', 'gymnasium:CartPole-v1'):
    assert found[name] == 'ok'
  assert found['atari:GAME'] == 'warning' and 'gymnasium:HalfCheetah-v5' not in found
  listing = runs.start('list', f'--python={newest}', '--json')
  assert listing.wait() == 0, listing.stderr
  known = {record['id']: record for record in json.loads(listing.stdout)['environments']}
  assert known['envpool:ID']['is_available']
  of_envpool = runs.start('list', 'envpool', f'--python={newest}', '--json')
  assert of_envpool.wait() == 0, of_envpool.stderr
  assert 'envpool:Pong-v5' in json.loads(of_envpool.stdout)['ids']
  folder = str(pathlib.Path(newest).parents[1])
  advice = f'seed-acme actor-env {folder} --extras '
  assert known['atari:GAME']['install'] == f'{advice}atari'
  assert 'the extra gym of learners' in known['gym:ID']['install']
  assert known['envpool:ID']['install'].startswith(f'{advice}envpool, then add --config.actor.')
  [wrong] = actor_python.examine('/nowhere/python')
  assert wrong.state == 'wrong'


def test_what_is_advised_there_can_be_run(runs, newest):
  [advice] = [
    known.install for known in remote.known_environments(newest, 60.0) if known.id == 'gymnasium:ID'
  ]
  name, *words = shlex.split(advice)
  assert name == 'seed-acme'
  done = runs.start(*words)
  assert done.wait() == 0, done.stderr
  assert f'Actors run there with --config.actor.python={newest}' in done.stdout


def test_all_that_is_installed_is_held_by_a_constraint(python):
  version = '.'.join(map(str, interpreter.probe(python).version[:2]))
  script = sources.script('try_extras')
  installed = interpreter.installed(python)
  assert installed and not script.not_held(installed, actor_packages.CONSTRAINTS, version)


class _Contract(environment_contract.EnvironmentContract):
  environment_id = ''
  settings: dict = {}

  @pytest.fixture(autouse=True)
  def _there(self, newest):
    self.python = newest

  def make_environment(self, num_environments, seed):
    config = _experiment(self.python, self.environment_id, **self.settings)
    return experiment_environments.make(config, num_environments, seed)


class TestPong(_Contract):
  environment_id = 'envpool:Pong-v5'
  settings = {'max_episode_steps': 20}


class TestDictionaries(_Contract):
  environment_id = 'envpool:MiniGrid-LavaCrossingS9N2-v0'
  settings = {'max_episode_steps': 20}


class TestContinuousActions(_Contract):
  environment_id = 'envpool:HalfCheetah-v4'
  settings = {'max_episode_steps': 20}


class TestFootball(_Contract):
  environment_id = 'envpool:gfootball/academy_empty_goal_close-v1'
  settings = {'max_episode_steps': 20}


def test_pong_is_the_same_game_as_the_other_adapters(newest):
  theirs = experiment_environments.make(
    _experiment(newest, 'envpool:Pong-v5', noop_max=1, max_episode_steps=120), 2, 1
  )
  ours = registry.make(
    config_lib.EnvironmentConfig(
      'atari:Pong', {'max_num_noops': 1, 'max_frames': 480, 'vectorized': False}
    ),
    2,
    1,
  )
  assert theirs.spec.frames_per_step == ours.spec.frames_per_step == 4
  assert theirs.spec.observation.shape == ours.spec.observation.shape
  rows = [(theirs.reset(), ours.reset())]
  for action in np.random.default_rng(1).integers(0, 18, (280, 2)).astype(np.int32):
    rows.append((theirs.step(action), ours.step(action)))
  theirs.close()
  ours.close()
  assert any((row.reward != 0).any() for row, _ in rows), 'no point was made'
  assert any((row.step_type == types.LAST).any() for row, _ in rows)
  for their_row, our_row in rows:
    environment_contract.assert_equal_rows(their_row, our_row)


def test_lost_lives_of_breakout_are_those_of_the_other_adapters(newest):
  """FIRE starts the game; some lives are lost, and games end and are truncated."""
  lives = {'life_loss': 'cut', 'fire_at_start': True}
  theirs = experiment_environments.make(
    _experiment(newest, 'envpool:Breakout-v5', noop_max=1, max_episode_steps=130, **lives), 2, 1
  )
  settings = {'max_num_noops': 1, 'max_frames': 520, 'vectorized': False, **lives}
  ours = registry.make(config_lib.EnvironmentConfig('atari:Breakout', settings), 2, 1)
  rows = [(theirs.reset(), ours.reset())]
  random = np.random.default_rng(1)
  for _ in range(400):
    # The first game soon loses its lives, because its player does nothing.
    action = np.array([0, random.integers(18)], np.int32)
    rows.append((theirs.step(action), ours.step(action)))
  theirs.close()
  ours.close()
  for their_row, our_row in rows:
    environment_contract.assert_equal_rows(their_row, our_row)
  cut = [(row.step_type == types.MID) & (row.discount == 0) for row, _ in rows]
  ends = {float(x) for row, _ in rows for x in row.discount[row.step_type == types.LAST]}
  assert np.sum(cut, axis=0).min() > 3 and ends == {0, 1}


@pytest.mark.parametrize(
  ('environment_id', 'settings', 'num_steps', 'discount'),
  [
    ('envpool:MountainCar-v0', {}, 200, 1.0),  # random play never solves it, so it is truncated
    ('envpool:CartPole-v1', {}, 60, 0.0),  # always to the left, so the pole falls
  ],
)
def test_time_that_is_up_is_no_end_and_a_fall_is_one(
  newest, environment_id, settings, num_steps, discount
):
  environment = experiment_environments.make(_experiment(newest, environment_id, **settings), 3, 1)
  rows = [environment.reset()]
  rows += [environment.step(np.zeros(3, np.int32)) for _ in range(num_steps)]
  environment.close()
  ends = [(row.step_type == types.LAST, row.discount) for row in rows]
  assert sum(int(is_last.sum()) for is_last, _ in ends) >= 3
  for is_last, discounts in ends:
    np.testing.assert_array_equal(discounts[is_last], discount)
    np.testing.assert_array_equal(discounts[~is_last], 1)


def test_wrong_levels_and_settings_of_envpool(newest):
  for environment_id, settings, words in (
    ('envpool:Pnog-v5', {}, 'near: envpool:Pong-v5'),
    ('envpool:Pong-v5', {'frame_skipp': 2}, "has no setting 'frame_skipp': expected .*frame_skip"),
    ('envpool:Pong-v5', {'frame_skip': 'two'}, r"frame_skip \('two'\) must be of type int"),
    ('envpool:Pong-v5', {'noop_max': 0}, r'noop_max \(0\) must be >= 1'),
    ('envpool:Pong-v5', {'life_loss': 'end'}, r"life_loss \('end'\) must be one of ignore, cut"),
    (
      'envpool:Skiing-v5',
      {'fire_at_start': True},
      'needs the full set of 18 actions, and there are 9',
    ),
    (
      'envpool:Pong-v5',
      {'fire_at_start': True, 'full_action_space': False},
      'there are 6: set full_action_space=True, or fire_at_start=False',
    ),
    ('envpool:CartPole-v1', {'life_loss': 'cut'}, "has no setting 'life_loss'"),
  ):
    with pytest.raises(types.UserError, match=words):
      experiment_environments.check(_experiment(newest, environment_id, **settings))


def test_pictures_of_envpool(newest):
  environment = experiment_environments.make(
    _experiment(newest, 'envpool:Breakout-v5'), 2, 1, renders=True
  )
  environment.reset()
  assert environment.render().shape == (210, 160, 3)
  environment.close()
  with pytest.raises(types.UserError, match='cannot show its screen'):
    experiment_environments.make(
      _experiment(newest, 'envpool:gfootball/academy_empty_goal_close-v1'), 1, 1, renders=True
    )
