"""The configurations of the package, and the user's own files."""

import contextlib
import dataclasses
import importlib
import inspect
import re
import sys

import pytest

from seed_acme import config_validation
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as environments
from seed_acme.storage import saved_config

_OF_THE_FIRST_RELEASE = {
  'catch_vtrace',
  'catch_lstm_vtrace',
  'memory_chain_vtrace',
  'gym_vtrace',
  'bench_catch_mlp',
  'bench_catch_lstm',
  'bench_catch_lstm_4x32',
}
_OWN = """
from seed_acme.configs import catch_vtrace
import dataclasses

def experiment():
  return dataclasses.replace(catch_vtrace.experiment(), name='mine', seed=5)
"""

_OF_LISTS = """
from seed_acme.configs import catch_vtrace
from seed_acme import config
import dataclasses

def experiment():
  settings = config.EnvironmentConfig('catch', {'shape': [5, 7]})
  return dataclasses.replace(catch_vtrace.experiment(), environment=settings)
"""


def _error(name):
  with pytest.raises(types.UserError) as error:
    registry.load(str(name))
  assert len(str(error.value).splitlines()) <= 4
  return str(error.value)


def test_names_are_the_files_of_the_folder():
  names = registry.names()
  assert names == sorted(names)
  assert set(names) >= _OF_THE_FIRST_RELEASE
  assert 'registry' not in names


@contextlib.contextmanager
def _without_missing_packages():
  """Ignores missing packages, without which the environment's other errors cannot be found."""
  try:
    yield
  except types.UserError as error:
    if not re.match(r"environment '(dmlab|dmlab2d|envpool|football):\S+' needs ", str(error)):
      raise


@pytest.mark.parametrize('name', registry.names())
def test_a_configuration_is_valid_and_can_be_saved(name, tmp_path):
  experiment = registry.load(name)
  assert experiment.name == name
  config_validation.validate(experiment)
  with _without_missing_packages():
    environments.check(experiment.environment)
  saved_config.save(experiment, tmp_path / 'config.json')
  assert saved_config.load(tmp_path / 'config.json') == experiment


@pytest.mark.parametrize('name', registry.names())
def test_a_configuration_is_short_and_documented(name):
  module = importlib.import_module(f'seed_acme.configs.{name}')
  lines, _ = inspect.getsourcelines(module.experiment)
  assert len(lines) <= 45
  assert module.__doc__ and module.experiment.__doc__


def test_the_network_of_memory_chain_has_a_memory_and_sees_its_last_action():
  network = registry.load('memory_chain_vtrace').network
  assert network.core == 'lstm' and network.previous_action_input


def test_an_unknown_name_is_answered_with_near_ones():
  message = _error('catch_vtrce')
  assert "'catch_vtrce'" in message
  assert 'did you mean catch_vtrace' in message
  assert 'known: ' in _error('zzz') and 'did you mean' not in _error('zzz')
  assert 'unknown config' in _error('registry')


def test_a_users_own_file(tmp_path):
  path = tmp_path / 'mine.py'
  path.write_text(_OWN)
  experiment = registry.load(str(path))
  assert (experiment.name, experiment.seed) == ('mine', 5)
  assert experiment == dataclasses.replace(registry.load('catch_vtrace'), name='mine', seed=5)


def test_a_users_file_may_define_dataclasses_of_its_own(tmp_path):
  path = tmp_path / 'mine.py'
  path.write_text(
    'from __future__ import annotations\nimport dataclasses\n'
    '@dataclasses.dataclass(frozen=True)\nclass Sizes:\n  width: int = 7\n'
    + _OWN.replace('seed=5', 'seed=Sizes().width')
  )
  assert registry.load(str(path)).seed == 7


_OF_A_CLASS = """
from __future__ import annotations
from seed_acme import config
from seed_acme.configs import catch_vtrace
import dataclasses

@dataclasses.dataclass(frozen=True)
class Actors(config.ActorConfig):
  {field}: float = 0.5

def experiment():
  return dataclasses.replace(catch_vtrace.experiment(), actor=Actors())
"""


_OF_AN_ENVIRONMENT = """
from seed_acme import config
from seed_acme.configs import catch_vtrace
import dataclasses

def make(seed): ...

def experiment():
  environment = config.EnvironmentConfig('{}')
  return dataclasses.replace(catch_vtrace.experiment(), environment=environment)
"""


@pytest.fixture(name='forgotten')
def _forgotten():
  """Returns the name of a module, which is forgotten after the test."""
  yield 'my_actors'
  sys.modules.pop('my_actors', None)


def test_a_file_that_was_edited_is_found_as_it_is_now(tmp_path, forgotten):
  path = tmp_path / f'{forgotten}.py'
  for field in ('heat', 'temperature'):
    path.write_text(_OF_A_CLASS.format(field=field))
    experiment = registry.load(str(path))
    assert saved_config.from_json(saved_config.to_json(experiment)) == experiment
  assert getattr(experiment.actor, 'temperature', None) == 0.5


def test_a_file_that_failed_leaves_what_was_there(tmp_path, forgotten, monkeypatch):
  path = tmp_path / f'{forgotten}.py'
  path.write_text('x = 1 / 0')
  _error(path)
  breakable = "import os\nassert 'BROKEN' not in os.environ\n"
  path.write_text(_OF_A_CLASS.format(field='heat') + breakable)
  experiment = registry.load(str(path))
  monkeypatch.setenv('BROKEN', '')
  assert 'AssertionError' in _error(path)
  assert saved_config.from_json(saved_config.to_json(experiment)) == experiment


def test_classes_of_a_file_that_has_the_name_of_another_module_are_refused(tmp_path, forgotten):
  first, second = tmp_path / f'{forgotten}.py', tmp_path / 'other' / f'{forgotten}.py'
  second.parent.mkdir()
  for path in (first, second):
    path.write_text(_OF_A_CLASS.format(field='heat'))
  experiment = registry.load(str(first))
  message = _error(second)
  assert f'{second}: {forgotten}:Actors would' in message and f'{first}: rename' in message
  assert saved_config.from_json(saved_config.to_json(experiment)) == experiment
  second.write_text(_OWN)  # without code of its own the name does not matter
  assert registry.load(str(second)).name == 'mine'
  assert saved_config.from_json(saved_config.to_json(experiment)) == experiment


@pytest.mark.parametrize('code', ['my_actors.make', 'my_actors:make', 'gym:my_actors:Mine-v0'])
def test_so_are_environments_of_such_a_file(tmp_path, forgotten, code):
  first, second = tmp_path / f'{forgotten}.py', tmp_path / 'other' / f'{forgotten}.py'
  second.parent.mkdir()
  for path in (first, second):
    path.write_text(_OF_AN_ENVIRONMENT.format(code))
  assert registry.load(str(first)).environment.id == code
  message = _error(second)
  assert f'{second}: {code} would' in message and f'{first}: rename' in message


def test_a_file_may_be_called_like_a_module_that_others_need(tmp_path):
  path, queue = tmp_path / 'queue.py', importlib.import_module('queue')
  path.write_text(f'from queue import Queue\n{_OWN}')
  assert registry.load(str(path)).name == 'mine'
  assert sys.modules['queue'] is queue


@pytest.mark.parametrize(
  'text, wanted',
  [
    ('def experiment(:\n', 'SyntaxError'),
    ('x = 1\n', 'it has no function experiment(), which must return'),
    ('def experiment():\n  return 3\n', 'returned int'),
    ('def experiment():\n  return 1 / 0\n', 'ZeroDivisionError'),
    (_OF_LISTS, "environment.settings['shape'] ([5, 7]) is of type list"),
    ('import no_such_module\n', "No module named 'no_such_module'"),
    ('def experiment():\n  raise ValueError("\\n".join("a" * 9))\n', 'ValueError'),
  ],
)
def test_a_file_that_does_not_work_is_named_with_the_reason(tmp_path, text, wanted):
  path = tmp_path / 'mine.py'
  path.write_text(text)
  message = _error(path)
  assert str(path) in message
  assert wanted in message


def test_a_file_that_does_not_exist_is_named(tmp_path):
  assert str(tmp_path / 'absent.py') in _error(tmp_path / 'absent.py')


def test_a_path_that_is_no_python_file_is_refused(tmp_path):
  assert f'{tmp_path} is a folder' in _error(tmp_path)
  (tmp_path / 'mine.txt').write_text(_OWN)
  assert 'mine.txt must end in .py or .json' in _error(tmp_path / 'mine.txt')
