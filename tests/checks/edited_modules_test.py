"""A user edits modules while a process lives, as in a notebook: the files of now are taken."""

import itertools
import os
import sys
import time

import numpy as np
import pytest

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import edited_modules
from seed_acme.configs import registry as configurations
from seed_acme.envs import registry
from seed_acme.storage import saved_config
from tests import scripted_environments
from tests.envs import configs
from tests.envs import gym_environments


@pytest.fixture(name='write')
def _write(tmp_path, monkeypatch):
  """Returns a function that writes a user's module, at a later time than it wrote the last one."""
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(edited_modules, '_read', {})  # other tests have read modules, too
  times, written = itertools.count(1_000_000_000, 10), set()

  def write(name, text):
    path = tmp_path / f'{name}.py'
    path.write_text(text)
    os.utime(path, (next(times),) * 2)
    written.add(name)

  yield write
  for name in written:
    sys.modules.pop(name, None)


def _value(path='of_user:value'):
  return dotted_path.load_object(path, 'field')()


def test_a_module_that_was_edited_is_imported_anew(write):
  write('of_user', 'def value():\n  return number\n\nnumber = 1\n\ndef gone(): ...\n')
  before = dotted_path.load_object('of_user:value', 'field')
  assert dotted_path.load_object('of_user:value', 'field') is before
  write('of_user', 'def value():\n  return number\n\nnumber = 2\n')
  assert _value() == 2
  assert before() == 1  # what is still in use stays as it is
  with pytest.raises(types.UserError, match="has no 'gone'"):
    _value('of_user:gone')


def test_so_is_one_whose_own_imports_were_edited(write):
  write('below_user', 'number = 1\n')
  write('between_user', 'from below_user import number\n')
  write('of_user', 'from between_user import number\n\ndef value():\n  return number\n')
  write('also_of_user', 'import below_user\n\ndef value():\n  return below_user.number\n')
  assert _value() == _value('also_of_user:value') == 1
  write('below_user', 'number = 2\n')
  assert _value('also_of_user:value') == _value() == 2


def test_so_is_one_that_failed_because_of_them(write):
  write('below_user', 'number = 0\n')
  write(
    'of_user', 'import below_user\n\nnumber = 6 // below_user.number\ndef value():\n  return 1\n'
  )
  with pytest.raises(types.UserError, match='ZeroDivisionError'):
    _value()
  write('below_user', 'number = 1\n')
  assert _value() == 1


def test_so_is_one_that_the_notebook_had_imported(write):
  write('of_user', 'def value():\n  return 1\n')
  __import__('of_user')
  assert _value() == 1
  write('of_user', 'def value():\n  return 2\n')
  assert _value() == 2


@pytest.fixture(name='write_now')
def _write_now(write, tmp_path, monkeypatch):
  """Returns a function that writes a module in the life of this process, each at a later second."""
  monkeypatch.setattr(sys, 'dont_write_bytecode', False)
  times = itertools.count(int(time.time()) + 10, 10)

  def write_now(name, text):
    write(name, text)
    os.utime(tmp_path / f'{name}.py', (next(times),) * 2)

  return write_now


@pytest.mark.parametrize(
  'text',
  [
    'import {0}\n\ndef value():\n  return {0}.number()',
    'from {0} import number as value',
    'from {0} import constant\n\ndef value():\n  return constant',
    'def value():\n  from {0} import constant\n  return constant',
  ],
)
def test_so_is_one_that_was_edited_before_the_first_run(write_now, text):
  below = 'constant = {0}\n\ndef number():\n  return {0}\n'
  write_now('below_user', below.format(1))
  write_now('of_user', text.format('below_user'))
  of_user = __import__('of_user')
  assert of_user.value() == 1
  write_now('below_user', below.format(2))
  assert of_user.value() == 1
  assert _value() == 2
  write_now('below_user', below.format(3))
  assert _value() == 3


def test_so_is_one_that_uses_what_the_notebook_had_imported(write_now):
  write_now('below_user', 'number = 1\n')
  __import__('below_user')
  write_now('below_user', 'number = 2\n')
  write_now('of_user', 'import below_user\n\ndef value():\n  return below_user.number\n')
  assert _value() == 2


def test_a_module_may_put_another_object_in_its_place(write):
  text = 'import sys\n\nclass Lazy:\n  value = lambda self: 1\n\nsys.modules[__name__] = Lazy()\n'
  write('of_user', text)
  assert _value() == 1


@pytest.mark.parametrize('writes_bytecode', [True, False])
def test_what_the_notebook_had_imported_stays_if_its_file_does(
  write_now, monkeypatch, writes_bytecode
):
  monkeypatch.setattr(sys, 'dont_write_bytecode', not writes_bytecode)
  write_now('of_user', 'def value():\n  return 1\n')
  of_user = __import__('of_user')
  assert dotted_path.load_object('of_user:value', 'field') is of_user.value


@pytest.mark.parametrize('has_file', [True, False])
def test_so_are_all_modules_of_a_package(write, tmp_path, has_file):
  (tmp_path / 'package').mkdir()
  if has_file:
    write('package/__init__', 'number = 0\n')
  write('package/below', 'def value():\n  return 1\n')
  write(
    'package/of_user',
    'import package.below\nfrom package import below\n\n'
    'def value():\n  return below.value() + package.below.value()\n',
  )
  value = lambda: _value('package.of_user:value')
  try:
    __import__('package.below')
    assert value() == 2
    before = sys.modules['package.of_user'].value
    write('package/below', 'def value():\n  return 2\n')
    assert value() == 4
    assert before() == (2 if has_file else 3)  # the folder has no file to import anew
  finally:
    for name in [name for name in sys.modules if name.partition('.')[0] == 'package']:
      del sys.modules[name]


def test_so_is_what_a_configuration_file_imports(write, tmp_path):
  text = 'import below_user\n\ndef experiment():\n  return below_user.made\n'
  made = 'from seed_acme.configs import catch_vtrace\nimport dataclasses\n\n'
  made += 'made = dataclasses.replace(catch_vtrace.experiment(), seed={})\n'
  write('of_user', text)
  for seed in (1, 2):
    write('below_user', made.format(seed))
    assert configurations.load(str(tmp_path / 'of_user.py')).seed == seed


def test_so_is_a_configuration_file_that_was_read_twice(write, tmp_path):
  text = 'from seed_acme.configs import catch_vtrace\nexperiment = catch_vtrace.experiment\n'
  write('of_user', f'{text}def value():\n  return 1\n')
  for _ in range(2):
    configurations.load(str(tmp_path / 'of_user.py'))
  write('of_user', f'{text}def value():\n  return 2\n')
  assert _value() == 2


def test_so_is_one_that_failed_in_between(write, tmp_path):
  text = 'from seed_acme.configs import catch_vtrace\nexperiment = catch_vtrace.experiment\n'
  path = str(tmp_path / 'of_user.py')
  write('of_user', f'{text}def value():\n  return 1\n')
  configurations.load(path)
  write('of_user', '1 / 0')
  with pytest.raises(types.UserError, match='ZeroDivisionError'):
    configurations.load(path)
  write('of_user', f'{text}def value():\n  return 3\n')
  assert _value() == 3


def test_a_file_takes_the_name_of_one_that_was_edited(write, tmp_path):
  (tmp_path / 'other').mkdir()
  text = 'from __future__ import annotations\n' + _CLASS.format(field='heat')
  write('of_user', text)
  write('other/of_user', text)
  configurations.load(str(tmp_path / 'of_user.py'))
  write('of_user', text + '\n')
  assert configurations.load(str(tmp_path / 'other' / 'of_user.py')).actor.heat == 1


def test_what_a_module_uses_stays(write, tmp_path):
  write('beside_user', '')
  write('of_user', 'import beside_user\nfrom tests import scripted_environments\nvalue = int\n')
  _value()
  beside = sys.modules['beside_user']
  write('of_user', 'import beside_user\nfrom tests import scripted_environments\nvalue = float\n')
  assert isinstance(_value(), float)
  assert sys.modules['beside_user'] is beside
  assert sys.modules[scripted_environments.__name__] is scripted_environments


def test_modules_of_packages_stay(write):
  names = ('seed_acme.checks.near_names', 'numpy', 'json', '__main__')
  before = [edited_modules.import_current(name) for name in names]
  write('of_user', 'def value():\n  return 1\n')
  _value()
  write('of_user', 'def value():\n  return 2\n')
  assert _value() == 2
  assert [sys.modules[name] for name in names] == before


_FACTORY = """
from tests import scripted_environments

def make(seed{setting}):
  return scripted_environments.ScriptedEnvironment(seed, (3,), last_discount={discount})
"""


def _last_discount(environment):
  step = environment.reset()
  while step.step_type[0] != types.LAST:
    step = environment.step(np.zeros(1, np.int32))
  return step.discount[0]


def test_an_environment_and_its_settings_are_those_of_the_file_now(write):
  write('of_user', _FACTORY.format(setting='', discount=0.0))
  assert _last_discount(registry.make(configs.of('of_user:make'), 1, seed=0)) == 0
  write('of_user', _FACTORY.format(setting=', wind=1.0', discount='wind'))
  assert _last_discount(registry.make(configs.of('of_user:make', wind=0.5), 1, seed=0)) == 0.5


_REGISTERED = """
import {package}

class Mine({package}.Env):
  observation_space = {package}.spaces.Discrete({number})
  action_space = {package}.spaces.Discrete(2)
  {init}

{package}.register('Mine-v0', entry_point='of_user:Mine')
"""


@pytest.mark.filterwarnings('ignore:.*Overriding environment Mine-v0')  # which is meant
@pytest.mark.parametrize('package', ['gym', 'gymnasium'])
def test_so_is_an_environment_that_is_registered(write, package):
  gym = gym_environments.import_package(package)
  for init, settings in (('', {}), ('def __init__(self, wind): pass', {'wind': 1})):
    number = 2 + len(settings)
    write('of_user', _REGISTERED.format(package=package, number=number, init=init))
    made = registry.make(configs.of(f'{package}:of_user:Mine-v0', **settings), 1, seed=0)
    assert made.spec.observation.num_values == number
  del gym.envs.registry['Mine-v0']


_CLASS = """
import dataclasses
from seed_acme import config
from seed_acme.configs import catch_vtrace

@dataclasses.dataclass(frozen=True)
class Actors(config.ActorConfig):
  {field}: int = 1

def experiment():
  return dataclasses.replace(catch_vtrace.experiment(), actor=Actors())
"""


@pytest.mark.parametrize('is_loaded_before', [False, True])
def test_a_class_of_a_saved_configuration_is_that_of_the_file_now(
  write, tmp_path, is_loaded_before
):
  write('of_user', _CLASS.format(field='heat'))
  record = {'type': 'of_user:Actors'}
  fields = saved_config.to_json(configurations.load('catch_vtrace').actor)
  if is_loaded_before:
    configurations.load(str(tmp_path / 'of_user.py'))
  else:
    saved_config.from_json({**fields, **record, 'heat': 1})
  write('of_user', _CLASS.format(field='temperature'))
  assert saved_config.from_json({**fields, **record, 'temperature': 2}).temperature == 2


def test_an_object_of_c_code_in_place_of_a_module_is_none_of_the_users(monkeypatch):
  class Library:
    """As cffi's libraries are: it claims to be a module, and has no `__dict__`."""

    __slots__ = ()
    __class__ = type(sys)

  monkeypatch.setitem(sys.modules, 'compiled.lib', Library())
  edited_modules.remember('compiled.lib')
