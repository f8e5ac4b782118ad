"""Refusals before a run is made: by the checks themselves, and by the commands that use them."""

import dataclasses
import importlib
import sys

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.configs import registry as configs
from seed_acme.programs import building
from seed_acme.programs import cli
from seed_acme.programs.system import versions
from seed_acme.programs.trial import door

_ENVIRONMENTS = """
import atexit
import os
import time
import dm_env
from dm_env import specs
import numpy as np

class Environment(dm_env.Environment):
  def __init__(self, observation, action):
    self._observation, self._action = observation, action
  def reset(self):
    return dm_env.restart(self._observation.generate_value())
  def step(self, action):
    return dm_env.termination(0.0, self._observation.generate_value())
  def observation_spec(self):
    return self._observation
  def action_spec(self):
    return self._action

image = specs.BoundedArray((35, 84, 1), np.uint8, 0, 255)
force = specs.BoundedArray((2,), np.float32, -1, 1)

def small(seed):
  return Environment(image, specs.DiscreteArray(2))
def strong(seed):
  print('an environment that talks')
  return Environment(image, force)
def unbounded(seed):
  return Environment(image, specs.Array((2,), np.float32))
def empty(seed):
  return Environment({}, specs.DiscreteArray(2))
def saying(seed):
  environment = Environment(image, specs.DiscreteArray(2))
  environment.observation_spec = lambda: {'said': specs.StringArray(()), 'seen': image}
  return environment
def nothing_to_push(seed):
  return Environment(image, specs.BoundedArray((0,), np.float32, -2, 5))
def seedless():
  return small(1)
def closing_badly(seed):
  environment = small(seed)
  environment.close = lambda: environment.simulator.stop()
  return environment
def registering(seed):
  atexit.register(open, 'ended', 'w')
  return small(seed)
def never(seed):
  time.sleep(1000)
def broken(seed):
  raise OSError('no data file')
def crashing(seed):
  os.abort()
def dark(seed):
  environment = small(seed)
  def render():
    raise RuntimeError('the screen needs a lamp')
  environment.render = render
  return environment
def network(spec, config):
  raise RuntimeError('no such layer')
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
  (tmp_path / 'doors.py').write_text(_ENVIRONMENTS)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  importlib.invalidate_caches()
  yield tmp_path
  sys.modules.pop('doors', None)


def _config(name='catch_vtrace', environment='', film=False, **network):
  config = configs.load(name)
  if environment:
    config = dataclasses.replace(config, environment=config_lib.EnvironmentConfig(environment))
  return dataclasses.replace(
    config, record_every=100 if film else 0, network=dataclasses.replace(config.network, **network)
  )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
  'arguments, exit_code, words',
  [
    (['--config.agent.agent=on_polic'], 2, ["('on_polic')", 'did you mean on_policy']),
    (
      ['--config.environment.id=doors:saying'],
      2,
      ['environment doors:saying: observation/said: expected a dm_env.specs.Array of numbers'],
    ),
    (['--config.environment.id=doors:broken'], 1, ['OSError: no data file (doors.py:']),
    (['--config.environment.id=doors:crashing'], 1, ['killed by SIGABRT']),
    (
      ['--config.environment.id=doors:never', '--config.actor.reset_timeout_s=1'],
      1,
      ['doors:never hangs: its making has not returned for 1 s (actor.reset_timeout_s)'],
    ),
  ],
)
def test_it_is_refused_before_anything_is_written(folder, capsys, arguments, exit_code, words):
  assert cli.main(['train', *arguments]) == exit_code
  said = capsys.readouterr()
  lines = [line for line in said.err.splitlines() if not line.startswith('Trying environment')]
  assert said.out == '' and lines[0].startswith('error: ') and len(lines) <= 4
  for word in words:
    assert word in said.err
  assert not (folder / 'runs').exists()


@pytest.mark.parametrize(
  'changes, exit_code, words',
  [
    (
      {'environment': 'doors:empty'},
      2,
      ['environment doors:empty: observation: expected one number at least, got {}'],
    ),
    (
      {'environment': 'doors:nothing_to_push'},
      2,
      ['environment doors:nothing_to_push: action: expected one number at least, got shape (0,)'],
    ),
    ({'torso': 'mlpp'}, 2, ["('mlpp') is not known; did you mean mlp"]),
    (
      {'name': 'catch_r2d2', 'environment': 'doors:strong'},
      2,
      ['shape (2,)', 'one discrete action'],
    ),
    ({'environment': 'doors:small', 'torso': 'nature_cnn'}, 2, ['36 x 36 or more', '(35, 84, 1)']),
    ({'environment': 'doors:seedless'}, 2, ['does not take a seed', 'seedless(seed,']),
    ({'environment': 'builtins:dict'}, 2, ['does not take a seed', 'no signature found']),
    ({'environment': 'doors:small', 'film': True}, 2, ["'doors:small' cannot show its screen"]),
    ({'environment': 'doors:dark', 'film': True}, 1, ['the screen needs a lamp (doors.py:']),
    ({'name': 'cartpole_ppo', 'environment': 'doors:unbounded'}, 2, ['give it bounds']),
    pytest.param(
      {'module': 'doors:network'},
      1,
      ['RuntimeError: no such layer (doors.py:'],
      marks=pytest.mark.slow,  # the only one that loads TensorFlow
    ),
  ],
)
def test_what_does_not_fit_is_named(folder, changes, exit_code, words):
  """Checks here what the trial checks in a process of its own, each start of which takes longer."""
  with pytest.raises((types.UserError, door.CannotStart)) as refused:
    door._check_all([_config(**changes)], False, activity_lib.Activity(), [])
  code, answer = door._refusal(refused.value)
  assert code == exit_code
  for word in words:
    assert word in answer['message']


def test_a_sweep_refuses_all_of_it_at_once(folder, capsys):
  assert (
    cli.main(['sweep', '--config=catch_vtrace', '--seeds=1', '--grid=network.torso=mlp,nature_cnn'])
    == 2
  )
  assert "'nature_cnn' needs one image" in capsys.readouterr().err
  assert not (folder / 'runs').exists()


def test_an_environment_need_not_close_before_its_first_reset(folder):
  [spec] = door.check([_config(environment='doors:closing_badly', torso='mlp')])
  assert spec.action.num_values == 2


def test_what_an_environment_has_registered_for_the_end_is_called(folder):
  door.environment_spec(_config(environment='doors:registering'))
  assert (folder / 'ended').exists()


def test_each_configuration_gets_the_specification_of_its_own_environment():
  names = ['catch_vtrace', 'pendulum_ppo', 'catch_vtrace']
  specs = door.check([configs.load(name) for name in names])
  assert specs[0] == specs[2] != specs[1]


def test_python_meets_the_same_door(folder):
  import seed_acme

  with pytest.raises(types.TrainingFailed, match='no data file'):
    seed_acme.train(_config(environment='doors:broken'))
  assert not (folder / 'runs').exists()


def test_packages_that_do_not_work_together_lead_to_the_doctor(folder, capsys, monkeypatch):
  """The record of numpy has another version, and TensorFlow cannot be loaded with it."""
  record = folder / 'numpy-2.0.2.dist-info'
  record.mkdir()
  (record / 'METADATA').write_text('Name: numpy\nVersion: 2.0.2\n')
  monkeypatch.setenv('PYTHONPATH', str(folder))
  with monkeypatch.context() as patch:  # another version that works is accepted
    patch.setattr(building, 'learner_side', None, raising=False)  # as if it had been loaded
    assert [found.name for found in versions.declared() if found.fix] == ['numpy']
    door._check_versions()
  (folder / 'tensorflow.py').write_text('raise TypeError("Unable to convert function")\n')
  assert cli.main(['train']) == 1
  said = capsys.readouterr().err
  assert 'numpy: 2.0.2, needs' in said and 'seed-acme doctor' in said
  assert not (folder / 'runs').exists()
