"""`seed-acme actor-env`: refusals, and that an environment is made, and completed."""

import sys

from packaging import requirements
from packaging import utils
import pytest

from seed_acme import types
from seed_acme.checks import actor_packages
from seed_acme.programs.tools.actor_environment import command
from seed_acme.programs.tools.actor_environment import finding
from tests.envs.interpreters import pythons


def test_an_unknown_extra_names_near_ones(tmp_path):
  arguments = command.ActorEnvArguments(str(tmp_path / 'new'), extras=('envpol',))
  with pytest.raises(types.UserError, match='did you mean envpool'):
    command.make(arguments)
  assert not (tmp_path / 'new').exists()


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
  (tmp_path / 'file').touch()
  with pytest.raises(types.UserError, match='file is a file: choose another folder'):
    command.plan(command.ActorEnvArguments(str(tmp_path / 'file')))


def test_a_folder_with_other_things_is_left_alone(tmp_path):
  (tmp_path / 'thesis.txt').write_text('precious')
  with pytest.raises(types.UserError, match='is no virtual environment'):
    command.make(command.ActorEnvArguments(str(tmp_path)))
  assert (tmp_path / 'thesis.txt').read_text() == 'precious'


def _environment(folder, *version, missing=('reverb',)):
  """Makes a stand-in for an environment; without a version, its interpreter is gone."""
  (folder / 'bin').mkdir(parents=True)
  (folder / 'pyvenv.cfg').write_text('precious')
  if version:
    pythons.saying(folder / 'bin', version, missing)
  return folder


@pytest.mark.parametrize(
  ('version', 'holds'), [((3, 11, 1), 'Python 3.11,'), ((), 'a Python that does not answer')]
)
def test_an_environment_of_another_python_is_left_alone(tmp_path, monkeypatch, version, holds):
  monkeypatch.setattr(command, '_run', lambda *_: pytest.fail('it was overwritten'))
  folder = _environment(tmp_path / 'learner', *version)
  wanted = pythons.saying(tmp_path, [3, 12, 1])
  with pytest.raises(types.UserError, match=f'holds an environment of {holds}.*or delete this'):
    command.make(command.ActorEnvArguments(str(folder), python=wanted))
  assert (folder / 'pyvenv.cfg').read_text() == 'precious'


@pytest.mark.parametrize('python', ['', '3.11'])
def test_the_environment_of_a_learner_is_left_alone(tmp_path, monkeypatch, python):
  monkeypatch.setattr(command, '_run', lambda *_: pytest.fail('it was changed'))
  monkeypatch.setattr(finding, 'find', lambda *_: wanted)
  wanted = pythons.saying(tmp_path, [3, 11, 1])
  folder = _environment(tmp_path / 'learner', 3, 11, 1, missing=())
  with pytest.raises(types.UserError, match=r"learner is a learner's .*another folder, such as"):
    command.make(command.ActorEnvArguments(str(folder), python))
  assert (folder / 'pyvenv.cfg').read_text() == 'precious'


def test_the_environment_that_these_tests_run_in_is_one_of_a_learner(tmp_path):
  folder = _environment(tmp_path / 'made')
  pythons.this_one(folder / 'bin')
  with pytest.raises(types.UserError, match="is a learner's environment"):
    _plan(folder)


@pytest.mark.slow
def test_a_failure_of_pip_is_told_with_its_last_words(tmp_path, capsys):
  arguments = command.ActorEnvArguments(
    str(tmp_path / 'new'), python=sys.executable, packages=('no-such-package-of-seed-acme',)
  )
  with pytest.raises(types.Failure, match='pip could not install .*no-such-package-of-seed-acme'):
    command.make(arguments)
  assert 'no-such-package-of-seed-acme' in capsys.readouterr().err


def test_each_extra_is_a_list_of_requirements():
  alone = actor_packages.WITHOUT_REQUIREMENTS
  assert set(alone) <= set(actor_packages.EXTRAS)
  lists = [*actor_packages.EXTRAS.values(), *alone.values()]
  for lines in [actor_packages.REQUIRES, actor_packages.CONSTRAINTS, *lists]:
    for line in lines:
      requirements.Requirement(line)


def test_what_is_given_with_a_version_is_not_held_to_another():
  kept = command.constraints_beside(['NumPy==1.23.5', 'dm-env', './wheels/own.whl'])
  assert not [line for line in kept if line.startswith('numpy')]
  assert 'dm-env==1.6' in kept and kept != actor_packages.CONSTRAINTS
  assert command.constraints_beside([]) == actor_packages.CONSTRAINTS


def test_the_constraints_agree_with_the_requirements():
  lists = [
    actor_packages.REQUIRES,
    *actor_packages.EXTRAS.values(),
    *actor_packages.WITHOUT_REQUIREMENTS.values(),
  ]
  for version in finding.PREFERRED:
    pins = _applying(actor_packages.CONSTRAINTS, version)
    names = [utils.canonicalize_name(pin.name) for pin in pins]
    assert len(set(names)) == len(names), f'two versions of a package for Python {version}'
    fixed = {name: next(iter(pin.specifier)).version for name, pin in zip(names, pins)}
    for wanted in _applying([line for lines in lists for line in lines], version):
      assert wanted.specifier.contains(fixed[utils.canonicalize_name(wanted.name)]), wanted


def _applying(lines, version):
  """Returns the requirements whose marker holds for a Python."""
  return [
    line
    for line in map(requirements.Requirement, lines)
    if line.marker is None or line.marker.evaluate({'python_version': version})
  ]


def _plan(folder, *extras, python=''):
  return command.plan(command.ActorEnvArguments(str(folder), python, extras))


def test_a_suite_that_does_not_exist_for_a_python_is_refused_before_anything_is_made(tmp_path):
  old = pythons.saying(tmp_path, [3, 10, 1])
  with pytest.raises(
    types.UserError, match=r'envpool is for Python 3\.11, 3\.12, 3\.13, not for 3\.10'
  ):
    _plan(tmp_path / 'new', 'gymnasium', 'envpool', python=old)
  assert not (tmp_path / 'new').exists()


def test_an_environment_of_a_python_that_lacks_the_suite_stays(tmp_path):
  folder = _environment(tmp_path / 'made', 3, 10, 1)
  assert _plan(folder, 'gymnasium').base == ''
  with pytest.raises(types.UserError, match=r'made has that\): choose another folder'):
    _plan(folder, 'envpool')


def test_the_python_that_is_found_has_the_suites(tmp_path, monkeypatch):
  monkeypatch.setenv('PATH', str(tmp_path))
  monkeypatch.setenv('HOME', str(tmp_path))
  monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
  old = pythons.script(tmp_path, 'echo \'{"version": [3, 10, 1], "missing": []}\'', 'python3.10')
  assert _plan(tmp_path / 'new', 'gymnasium').base == old
  with pytest.raises(types.UserError, match=r'Python 3\.12 or 3\.13 or 3\.11 was not found'):
    _plan(tmp_path / 'new', 'envpool')


@pytest.mark.parametrize(('version', 'is_alone'), [([3, 12, 1], False), ([3, 13, 0], True)])
def test_dm_control_comes_without_its_mazes_where_these_have_no_wheel(tmp_path, version, is_alone):
  planned = _plan(tmp_path / 'new', 'dm-control', python=pythons.saying(tmp_path, version))
  [mine] = [line for line in [*planned.packages, *planned.alone] if line.startswith('dm_control')]
  assert (mine in planned.alone) == is_alone and len(planned.alone) == is_alone
