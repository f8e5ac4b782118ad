"""The interpreters that can run environments, and the messages about others."""

import os
import subprocess
import sys

import pytest

import seed_acme
from seed_acme import types
from seed_acme.envs.interpreters import interpreter
from tests.envs.interpreters import pythons


def test_the_learners_own_interpreter_needs_nothing():
  for python in ('', sys.executable):
    assert interpreter.is_this_one(python)
    assert interpreter.variables(python) == {}
    interpreter.require(python)
  assert interpreter.command('', 'a.module') == [sys.executable, '-m', 'a.module']


def test_another_one_is_started_with_this_package(tmp_path, monkeypatch):
  monkeypatch.setenv('PYTHONPATH', '/somewhere')
  python = pythons.this_one(tmp_path)
  assert not interpreter.is_this_one(python)
  variables = interpreter.variables(python)
  folder, rest = variables['PYTHONPATH'].split(os.pathsep)
  assert rest == '/somewhere'
  assert os.listdir(folder) == ['seed_acme']  # no other files, which would hide installed packages
  done = subprocess.run(
    [python, '-c', 'import seed_acme; print(seed_acme.__file__)'],
    env={**os.environ, 'PYTHONPATH': folder},
    capture_output=True,
    text=True,
    check=True,
    cwd=tmp_path,
  )
  assert os.path.realpath(done.stdout.strip()) == os.path.realpath(seed_acme.__file__)


def test_the_link_is_mended_and_may_be_made_twice(tmp_path, monkeypatch):
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
  interpreter._folder_of_package.cache_clear()
  folder = interpreter._folder_of_package()
  assert tmp_path in folder.parents
  (folder / 'seed_acme').unlink()
  (folder / 'seed_acme').symlink_to('/nowhere')  # as in a checkout that has moved
  interpreter._folder_of_package.cache_clear()
  assert interpreter._folder_of_package() == folder
  assert (folder / 'seed_acme' / '__init__.py').exists()
  interpreter._folder_of_package.cache_clear()


def test_without_a_home_that_can_be_written_to(tmp_path, monkeypatch):
  (tmp_path / 'file').write_text('')
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
  interpreter._folder_of_package.cache_clear()
  assert (interpreter._folder_of_package() / 'seed_acme' / '__init__.py').exists()
  interpreter._folder_of_package.cache_clear()


def test_without_such_a_home_nothing_stays_behind(tmp_path):
  scratch = tmp_path / 'scratch'
  scratch.mkdir()
  (tmp_path / 'file').write_text('')
  code = (
    'import os, sys; from seed_acme.envs.interpreters import interpreter\n'
    "folder = interpreter.variables('/other/python')['PYTHONPATH'].split(os.pathsep)[0]\n"
    'print(os.path.dirname(folder), os.listdir(folder))'
  )
  done = subprocess.run(
    [sys.executable, '-c', code],
    env={**os.environ, 'XDG_CACHE_HOME': str(tmp_path / 'file'), 'TMPDIR': str(scratch)},
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout.strip() == f"{scratch} ['seed_acme']"
  assert not list(scratch.iterdir())


@pytest.mark.parametrize(
  ('make', 'message'),
  [
    (lambda folder: str(folder / 'nothing'), r'nothing\) was not found: give'),
    (lambda folder: 'no-such-python', r'\(no-such-python\) was not found on the PATH'),
    (lambda folder: str(folder), r'cannot be started: Permission denied'),
    (
      lambda folder: pythons.script(folder, 'echo hello'),
      r'is no Python that works \(exit code 0: hello\)',
    ),
    (
      lambda folder: pythons.script(folder, 'echo shim >&2; exit 127'),
      r'is no Python that works \(exit code 127: shim\)',
    ),
    (lambda folder: pythons.saying(folder, [3, 9, 1]), r'is Python 3\.9\.1: .* 3\.10 to 3\.13'),
    (lambda folder: pythons.saying(folder, [3, 14, 0]), r'is Python 3\.14\.0: .* 3\.10 to 3\.13'),
    (
      lambda folder: pythons.saying(folder, [3, 12, 1], ['grpc', 'tree']),
      r'Python 3\.12\.1\) lacks grpc, tree: .*actor-env',
    ),
  ],
)
def test_what_cannot_serve_is_refused_with_the_way_to_one_that_can(tmp_path, make, message):
  with pytest.raises(types.UserError, match=message) as raised:
    interpreter.require(make(tmp_path))
  assert 'actor-env' in str(raised.value)


def test_a_name_is_looked_up_on_the_path(tmp_path, monkeypatch):
  pythons.saying(tmp_path, [3, 12, 1])
  os.rename(tmp_path / 'python', tmp_path / 'python_of_the_test')
  monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
  assert interpreter.probe('python_of_the_test').version == (3, 12, 1)
  command = interpreter.command('python_of_the_test', 'm')
  assert command[0] == str(tmp_path / 'python_of_the_test')


def test_one_that_greets_is_understood(tmp_path):
  python = pythons.greeting(tmp_path)
  interpreter.require(python)
  assert interpreter.probe(python).version == sys.version_info[:3]
  assert interpreter.installed(python) == interpreter.installed(sys.executable)


@pytest.mark.parametrize('beside', ['working folder', 'checkout', 'virtual environment'])
def test_a_relative_path_is_looked_for_where_it_may_lie(tmp_path, monkeypatch, beside):
  """The test runs in another folder than `make actor-python`."""
  home, else_ = tmp_path / 'home', tmp_path / 'else'
  for folder in (home / '.venv-actor' / 'bin', else_):
    folder.mkdir(parents=True)
  python = pythons.this_one(home / '.venv-actor' / 'bin')
  if beside == 'checkout':
    monkeypatch.setattr(interpreter.extras, 'checkout', lambda: home)
  if beside == 'virtual environment':
    monkeypatch.setattr(sys, 'prefix', str(home / '.venv'))
  monkeypatch.chdir(home if beside == 'working folder' else else_)
  interpreter.probe.cache_clear()
  interpreter.require('.venv-actor/bin/python')
  assert interpreter.command('.venv-actor/bin/python', 'm')[0] == python
  with pytest.raises(types.UserError, match=rf'was not found from {os.getcwd()}.*: give') as raised:
    interpreter.require('no-such-folder/bin/python')
  assert str(home) in str(raised.value)  # the message names the folders it has searched
  interpreter.probe.cache_clear()


def test_installed_packages_are_named_with_their_versions():
  import numpy as np

  found = interpreter.installed(sys.executable)
  assert f'numpy=={np.__version__}' in found
  assert not [name for name in found if name.startswith(('pip==', 'setuptools=='))]


def test_what_lies_in_the_working_folder_is_not_installed(tmp_path, monkeypatch):
  record = tmp_path / 'left_over.egg-info'
  record.mkdir()
  (record / 'PKG-INFO').write_text('Metadata-Version: 2.1\nName: left-over\nVersion: 1.0\n')
  monkeypatch.chdir(tmp_path)
  assert 'left-over==1.0' not in interpreter.installed(sys.executable)


@pytest.mark.parametrize(
  ('path', 'is_foreign'),
  [
    ('.venv-actor/bin/python', False),
    ('.venv-actor/bin/python3.12', False),
    ('runs/theirs/bin/python', True),
    ('.venv-actor/runs/bin/python', True),
    ('theirs/bin/python', True),
    ('lacking/bin/python', False),
  ],
)
@pytest.mark.parametrize('is_absolute', [False, True])
def test_a_program_is_the_users_if_it_is_in_an_environment_beside_this_one(
  path, is_foreign, is_absolute, tmp_path, monkeypatch
):
  monkeypatch.setattr(interpreter.extras, 'checkout', lambda: tmp_path / 'checkout')
  file = tmp_path / 'checkout' / path
  if 'lacking' not in path:
    file.parent.mkdir(parents=True)
    file.touch()
  monkeypatch.chdir(tmp_path)
  name = str(file) if is_absolute else path
  assert interpreter.is_foreign(name) == is_foreign
  # One of the same name in the working folder is found first.
  here = tmp_path / path
  here.parent.mkdir(parents=True)
  here.touch()
  assert interpreter.is_foreign(str(here) if is_absolute else path)
