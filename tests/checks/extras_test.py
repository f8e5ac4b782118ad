"""The suggested install commands can be run as they are."""

import os
import shlex
import subprocess
import sys

from packaging import requirements
import pytest

from seed_acme.checks import actor_packages
from seed_acme.checks import extras
from seed_acme.programs.command_line import parsing
from seed_acme.programs.tools.actor_environment import command
from tests import sources
from tests.envs.interpreters import pythons


def _exists_here(lines):
  markers = [requirements.Requirement(line).marker for line in lines]
  return any(marker is None or marker.evaluate() for marker in markers)


# The extras that exist for this Python.
_EXTRAS = sorted(
  extra for extra, lines in sources.setup().EXTRAS_REQUIRE.items() if _exists_here(lines)
)
_PATH = f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}'


@pytest.fixture
def for_actors(monkeypatch):
  """Pretends to be an environment of Python 3.12 for actors only."""
  monkeypatch.setattr(extras, 'is_for_learners', lambda: False)


def test_this_is_an_environment_for_learners():
  assert extras.is_for_learners() and extras.checkout() == sources.ROOT


def test_one_of_the_same_python_without_tensorflow_is_none(monkeypatch):
  find_spec = extras.importlib.util.find_spec
  monkeypatch.setattr(
    'importlib.util.find_spec', lambda name: None if name == 'tensorflow' else find_spec(name)
  )
  assert not extras.is_for_learners()
  assert extras.install_command('atari').startswith('seed-acme actor-env ')


@pytest.mark.parametrize('extra', _EXTRAS)
def test_a_learner_in_its_checkout_is_advised_to_install_the_extra(extra, tmp_path, monkeypatch):
  command = f"PIP_CONSTRAINT=constraints.txt pip install -e '.[{extra}]'"
  monkeypatch.chdir(sources.ROOT)
  assert extras.install_command(extra) == command
  monkeypatch.chdir(tmp_path)
  assert extras.install_command(extra) == f'(cd {sources.ROOT} && {command})'


# Only one of them, because each takes pip 10 s.
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pip_accepts_that_from_anywhere(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  advice = extras.install_command('dm-control')
  done = subprocess.run(
    advice.replace('pip install', 'pip install --dry-run'),
    shell=True,
    env={**os.environ, 'PATH': _PATH},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  assert 'does not provide the extra' not in done.stderr


@pytest.mark.parametrize('extra', _EXTRAS)
def test_without_a_checkout_the_packages_themselves_are_named(extra, monkeypatch):
  monkeypatch.setattr(extras, 'checkout', lambda: None)
  monkeypatch.setattr('importlib.metadata.requires', lambda name: list(_metadata()))
  pip, install, *named = shlex.split(extras.install_command(extra))
  assert (pip, install) == ('pip', 'install')
  wanted = [requirements.Requirement(line) for line in sources.setup().EXTRAS_REQUIRE[extra]]
  assert {(r.name, r.specifier) for r in map(requirements.Requirement, named)} == {
    (r.name, r.specifier) for r in wanted if r.marker is None or r.marker.evaluate()
  }


def _metadata():
  """Yields the requirements that a wheel declares."""
  yield from sources.setup().INSTALL_REQUIRES
  for extra, lines in sources.setup().EXTRAS_REQUIRE.items():
    for requirement, _, marker in (line.partition(';') for line in lines):
      yield f'{requirement}; {f"({marker}) and " if marker else ""}extra == "{extra}"'


@pytest.mark.parametrize('extra', _EXTRAS)
def test_what_actors_are_advised_is_not_refused(extra, for_actors, monkeypatch, tmp_path):
  monkeypatch.setattr(sys, 'prefix', str(tmp_path / 'a folder'))
  python = pythons.saying(tmp_path, [3, 12, 1])
  advice = extras.install_command(extra)
  if extra not in actor_packages.EXTRAS:
    assert f'the extra {extra} of learners' in advice
    return
  name, subcommand, *words = shlex.split(advice)
  assert (name, subcommand) == ('seed-acme', 'actor-env')
  arguments = parsing.parse(command.ActorEnvArguments, [*words, f'--python={python}'], 'actor-env')
  assert arguments.folder == str(tmp_path / 'a folder')
  assert command.plan(arguments).packages


def test_make_is_advised_where_there_is_a_makefile(monkeypatch):
  for advice in (extras.repair(), extras.reinstall()):
    assert 'make setup' in advice
  monkeypatch.setattr(extras, 'checkout', lambda: None)
  for advice in (extras.repair(), extras.reinstall()):
    assert 'make setup' not in advice and 'wheel' in advice
