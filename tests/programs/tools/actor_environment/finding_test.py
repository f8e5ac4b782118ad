"""Interpreters are run to find out what they are."""

import pytest

from seed_acme import types
from seed_acme.envs.interpreters import interpreter
from seed_acme.programs.tools.actor_environment import finding
from tests.envs.interpreters import pythons


@pytest.fixture
def machine(tmp_path, monkeypatch):
  """Sets up a machine with an empty `PATH` and home."""
  for name in ('PYENV_ROOT', 'CONDA_PREFIX', 'MAMBA_ROOT_PREFIX'):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setenv('HOME', str(tmp_path / 'home'))
  path = tmp_path / 'path'
  path.mkdir()
  # Only the shell of the scripts remains.
  monkeypatch.setenv('PATH', str(path))
  return tmp_path


def _saying(folder, version, name):
  folder.mkdir(parents=True, exist_ok=True)
  return pythons.saying(folder, version, name=name).replace('//', '/')


def test_a_shim_that_does_not_start_is_passed_over(machine):
  pythons.script(machine / 'path', 'echo "pyenv: no such version" >&2; exit 127', 'python3.12')
  with pytest.raises(types.UserError, match=r'Python 3\.12 was not found .*apt install'):
    finding.find('3.12')
  real = _saying(machine / 'home/.pyenv/versions/3.12.1/bin', [3, 12, 1], 'python3.12')
  assert finding.find('3.12') == finding.find('python3.12') == real


def test_a_program_of_another_version_is_not_taken(machine):
  _saying(machine / 'path', [3, 11, 0], 'python3.12')
  with pytest.raises(types.UserError, match='was not found'):
    finding.find('3.12')


def test_a_plain_python_of_the_version_serves(machine):
  found = _saying(machine / 'path', [3, 12, 4], 'python3')
  assert finding.find('3.12') == finding.find('') == found


def test_the_version_with_most_packages_is_preferred(machine):
  found = {
    version: _saying(machine / 'path', [3, int(version[2:]), 0], f'python{version}')
    for version in ('3.10', '3.11', '3.13')
  }
  assert finding.find('') == found['3.13']
  best = _saying(machine / 'home/miniconda3/envs/rl/bin', [3, 12, 5], 'python3.12')
  assert finding.find('') == best
  assert finding.find('3.11') == found['3.11']


def test_a_path_is_taken_as_it_is(machine):
  path = _saying(machine / 'else', [3, 12, 0], 'mine')
  assert finding.find(path) == path
  with pytest.raises(types.UserError, match=r'is Python 3\.8\.0'):
    finding.find(_saying(machine / 'else', [3, 8, 0], 'old'))


def test_one_without_venv_cannot_make_an_environment(machine):
  pythons.saying(machine / 'path', [3, 12, 0], ['venv'], 'python3.12')
  with pytest.raises(types.UserError, match='was not found'):
    finding.find('3.12')


def test_none_at_all_names_the_ways_to_one(machine):
  with pytest.raises(types.UserError, match=r'3\.12 or 3\.13 or .* was not found.*--python'):
    finding.find('')


@pytest.mark.parametrize('wanted', ['3.9', 'python3.14', '2'])
def test_a_version_that_environments_do_not_run_under_is_refused(machine, wanted):
  with pytest.raises(types.UserError, match=r'run under Python 3\.10, 3\.11, 3\.12, 3\.13'):
    finding.find(wanted)


def test_a_relative_path_that_was_found_elsewhere_is_given_whole(machine, monkeypatch):
  """Beside the virtual environment, for instance, and not in the working folder."""
  real = _saying(machine / 'beside' / 'bin', [3, 12, 1], 'python')
  monkeypatch.setattr(interpreter.extras, 'checkout', lambda: machine / 'beside')
  assert finding.find('bin/python') == real
