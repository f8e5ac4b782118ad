"""The configurations of the package, and the user's own files."""

import contextlib
import dataclasses
import importlib
import inspect
import re

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


@pytest.mark.parametrize(
  'text, wanted',
  [
    ('def experiment(:\n', 'SyntaxError'),
    ('x = 1\n', "no attribute 'experiment'"),
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
