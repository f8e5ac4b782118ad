"""Installed suites are tried, each in a process of its own."""

import json
import sys

import pytest

from seed_acme.checks import actor_packages
from seed_acme.envs import registry
from seed_acme.envs import suite as suite_lib
from seed_acme.programs.tools.doctor import actor_python
from seed_acme.programs.tools.doctor import command
from seed_acme.programs.tools.doctor import examination
from seed_acme.programs.tools.doctor import patience
from seed_acme.programs.tools.doctor import suites
from tests.envs.interpreters import pythons

_FACTORIES = """
import os, time

def incompatible(seed):
  class Model: pass
  return Model().flex_vertedge

def crashing(seed):
  os.abort()

def hanging(seed):
  time.sleep(600)
"""


@pytest.fixture
def attempt(tmp_path, monkeypatch):
  """Returns the check of an environment made by a factory."""
  (tmp_path / 'factories_of_the_doctor.py').write_text(_FACTORIES)
  monkeypatch.setenv('PYTHONPATH', str(tmp_path))

  def attempt(name, timeout_s=60.0):
    example = (f'factories_of_the_doctor:{name}', 'mend it')
    known = suite_lib.KnownEnvironments('own', '', (), True, '', (example,))
    [check] = suites.try_all([known], sys.executable, timeout_s)
    return check

  return attempt


def test_one_that_works_is_well():
  known = [known for known in registry.known_environments() if known.id in ('catch', 'toy')]
  [check] = suites.try_all(known, sys.executable)
  assert check == examination.Check('catch', 'ok', 'made and stepped')


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'detail'),
  [
    ('incompatible', "AttributeError: 'Model' object has no attribute 'flex_vertedge'"),
    ('crashing', 'killed by signal 6'),
  ],
)
def test_one_that_cannot_be_made_is_wrong_and_its_installation_is_named(attempt, name, detail):
  check = attempt(name)
  assert check.state == 'wrong' and detail in check.detail and check.fix == 'mend it'


@pytest.mark.slow
@pytest.mark.parametrize(('load', 'is_busy'), [(1000.0, True), (0.0, False)])
def test_nothing_is_to_be_mended_where_the_machine_was_only_busy(
  attempt, monkeypatch, load, is_busy
):
  monkeypatch.setattr('os.getloadavg', lambda: (load, 0.0, 0.0))
  checks = [
    attempt('hanging', timeout_s=0.5),
    *examination.check_import('thing', 'import time; time.sleep(600)', timeout_s=0.5),
  ]
  for check, mending in zip(checks, ('mend it', 'make setup')):
    assert check.state == 'wrong' and check.detail == 'no answer within 0.5 s'
    assert 'run `seed-acme doctor` again' in check.fix
    assert ('busy (load 1000.0 on ' in check.fix) == is_busy
    assert (mending in check.fix) != is_busy


def test_an_interpreter_that_says_nothing_may_be_on_a_busy_machine(tmp_path, monkeypatch):
  monkeypatch.setattr('os.getloadavg', lambda: (1000.0, 0.0, 0.0))
  monkeypatch.setattr('seed_acme.envs.interpreters.interpreter._PROBE_TIMEOUT_S', 0.2)
  [check] = actor_python.examine(pythons.script(tmp_path, 'exec sleep 600'))
  assert 'does not answer within 0.2 s: try again' in check.detail
  assert check.fix == patience.fix('') and 'busy' in check.fix


def test_the_record_has_all_checks(monkeypatch):
  checks = [examination.Check('a', 'ok', 'fine')]
  monkeypatch.setattr(examination, 'run', lambda: checks)
  monkeypatch.setattr(suites, 'examine', lambda: [examination.Check('b', 'wrong', 'bad', 'mend')])
  answer = command.doctor(command.DoctorArguments())
  record = json.loads(json.dumps(answer.record))
  assert (
    answer.exit_code == 1
    and record['wrong'] is True
    and [c['name'] for c in record['checks']] == ['a', 'b']
  )


def test_each_suite_has_an_example_of_its_own():
  by_extra = {}
  for suite in registry.SUITES:
    assert suite.examples or not (suite.extra or suite.packages), suite.id
    for example in suite.examples:
      assert registry.find(example.id) is suite
      by_extra[example.extra] = example.id
  # The extra for videos has no suite.
  assert set(actor_packages.EXTRAS) - {'video'} <= set(by_extra)


def test_examples_whose_packages_are_missing_are_not_tried(monkeypatch):
  monkeypatch.setattr(suite_lib, 'is_installed', lambda name: name not in ('mujoco', 'Box2D'))
  known = {known.id: known for known in registry.known_environments()}
  assert [name for name, _ in known['gymnasium:ID'].examples] == ['gymnasium:CartPole-v1']
  monkeypatch.setattr(suite_lib, 'is_installed', lambda name: name != 'gymnasium')
  known = {known.id: known for known in registry.known_environments()}
  assert known['gymnasium:ID'].examples == ()


def test_the_advice_of_an_example_brings_all_that_it_needs():
  known = {known.id: known for known in registry.known_environments()}
  advice = dict(known['gymnasium:ID'].examples)
  assert '[mujoco]' in advice['gymnasium:HalfCheetah-v5']
  assert '[gymnasium]' in advice['gymnasium:CartPole-v1']
