"""Real runs whose environments live under Python 3.12 and 3.13."""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess

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
from seed_acme.programs import cli
from seed_acme.programs.tools.doctor import actor_python
from seed_acme.storage import recordings
from seed_acme.testing import environment_contract
from tests import actor_pythons
from tests import sources
from tests.programs import evaluated_runs

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1200)]


@pytest.fixture(scope='module')
def pythons(tmp_path_factory):
  folder = actor_pythons.shared_folder(tmp_path_factory)
  return [actor_pythons.make(folder, version) for version in actor_pythons.VERSIONS]


@pytest.fixture(scope='module')
def oldest(pythons):
  return pythons[0]


@pytest.fixture(scope='module')
def newest(pythons):
  return pythons[-1]


def _experiment(python, environment_id, **settings):
  config = configs.load('catch_vtrace')
  return dataclasses.replace(
    config,
    actor=dataclasses.replace(config.actor, python=python),
    environment=config_lib.EnvironmentConfig(environment_id, settings),
  )


def test_a_run_learns_from_actors_there_and_is_evaluated_there(runs, newest, capsys, monkeypatch):
  run = runs.train(
    f'--config.actor.python={newest}',
    '--config.total_steps=2000',
    '--config.num_evaluation_environments=1',
    '--config.record_every=1000',
  )
  workers = lambda: [p for p in run.nodes('actor') if p.exe() != psutil.Process().exe()]
  run.wait_for_updates(1)
  assert workers(), 'no process of the other interpreter acts'
  assert run.wait() == 0, run.stderr
  assert run.summary()['agent_steps'] >= 2000
  # rendered there, filmed by the learner's Python
  assert recordings.steps(run.run_dir.videos)[0] == 0
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  command = [run.run_dir.path, '--episodes=8', '--json']
  assert 'another Python' in evaluated_runs.refusal(capsys, *command)
  said = evaluated_runs.evaluate(capsys, *command, '--trust_run_dir')
  assert json.loads(said.out)['episodes'] == 8


def test_a_users_own_factory_is_found_there_by_a_run_in_one_thread(runs, oldest):
  run = runs.train(
    f'--config.actor.python={oldest}',
    '--config.environment.id=drill_environments:Marked',
    '--config.total_steps=500',
    '--launch=single_process',
  )
  assert run.wait() == 0, run.stderr


def test_doctor_and_list_look_there(newest, capsys, monkeypatch):
  found = {check.name: check.state for check in actor_python.examine(newest)}
  # gymnasium comes with envpool.
  for name in ('actor python', 'catch', 'envpool:CartPole-v1', 'gymnasium:CartPole-v1'):
    assert found[name] == 'ok'
  assert found['atari:GAME'] == 'warning' and 'gymnasium:HalfCheetah-v5' not in found
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  assert cli.main(['list', f'--python={newest}', '--json']) == 0
  records = json.loads(capsys.readouterr().out)['environments']
  known = {record['id']: record for record in records}
  assert known['envpool:ID']['is_available']
  assert cli.main(['list', 'envpool', f'--python={newest}', '--json']) == 0
  assert 'envpool:Pong-v5' in json.loads(capsys.readouterr().out)['ids']
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


def test_all_that_is_installed_is_held_by_a_constraint(pythons):
  script = sources.script('try_extras')
  for python in pythons:
    version = '.'.join(map(str, interpreter.probe(python).version[:2]))
    installed = interpreter.installed(python)
    assert installed and not script.not_held(installed, actor_packages.CONSTRAINTS, version)


class TestEnvpool(environment_contract.EnvironmentContract):
  environment_id = 'envpool:MiniGrid-LavaCrossingS9N2-v0'  # observations are dictionaries

  @pytest.fixture(autouse=True)
  def _there(self, newest):
    self.python = newest

  def make_environment(self, num_environments, seed):
    config = _experiment(self.python, self.environment_id, max_episode_steps=20)
    return experiment_environments.make(config, num_environments, seed)

  @pytest.mark.parametrize(
    'environment_id', ['envpool:HalfCheetah-v4', 'envpool:gfootball/academy_empty_goal_close-v1']
  )
  def test_other_spaces(self, environment_id):
    """Continuous actions, and Football; a test below has the screens of Pong."""
    self.environment_id = environment_id
    self.test_arrays_are_as_specified()


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


# Checks all in one process.
_CHECKS = """
import json, sys
from seed_acme import config, types
from seed_acme.envs import registry
for environment_id, settings in json.load(sys.stdin):
  try:
    registry.check(config.EnvironmentConfig(environment_id, settings))
    print('nothing is wrong')
  except types.UserError as error:
    print(error)
"""


def test_wrong_settings_of_envpool(newest):
  wrong = (
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
  )
  done = subprocess.run(
    [newest, '-c', _CHECKS],
    input=json.dumps([given for *given, _ in wrong]),
    env={**os.environ, **interpreter.variables(newest)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  for (*_, words), line in zip(wrong, done.stdout.splitlines(), strict=True):
    assert re.search(words, line)


def test_a_wrong_level_of_envpool_is_found_at_the_door(newest, capsys, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  wrong = [f'--config.actor.python={newest}', '--config.environment.id=envpool:Pong-v55']
  assert cli.main(['train', '--config=catch_vtrace', *wrong, '--run_dir=run']) == 2
  assert "unknown environment 'envpool:Pong-v55' (near: envpool:Pong-v5" in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


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
