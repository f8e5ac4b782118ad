"""The script that tries every extra in a new environment."""

import pytest
import yaml

from seed_acme.checks import actor_packages
from seed_acme.programs.tools.actor_environment import finding
from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('try_extras')


def test_what_no_constraint_holds_is_found(script):
  constraints = [
    'dm_control==1.0.11',
    "numpy==2.5.5; python_version >= '3.12'",
    "numpy==1.26.4; python_version < '3.12'",
  ]
  installed = ['dm-control==1.0.11', 'numpy==2.5.5', 'six==1.17.0']
  assert script.not_held(installed, constraints, '3.13') == ['six==1.17.0']
  assert script.not_held(installed, constraints, '3.11') == ['numpy==2.5.5', 'six==1.17.0']


def test_each_suite_of_an_extra_is_tried(script):
  for extra in {*actor_packages.EXTRAS, 'gym', 'dmlab2d'} - {'video'}:
    assert script.of_extra(extra), extra
  assert script.of_extra('mujoco') == ['gymnasium:HalfCheetah-v5', 'gym:HalfCheetah-v4']
  assert script.of_extra('video') == []


@pytest.mark.slow
@pytest.mark.processes
def test_an_extra_that_actors_cannot_have_is_refused(script, capsys):
  assert script.main(['actors', '--pythons', '3.12', '--extras', 'gym', 'wandb']) == 0
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 2
  for line, extra in zip(lines, ('gym', 'wandb')):
    assert line.startswith(f'ok     actors, Python 3.12, {extra}: refused: error: --extras {extra}')


@pytest.mark.slow
@pytest.mark.processes
def test_a_python_that_learners_cannot_have_is_refused(script, capsys):
  assert script.main(['learners', '--pythons', '3.12', '--extras', 'dmlab2d']) == 0
  line = capsys.readouterr().out
  assert line.startswith('ok     learners, Python 3.12, dmlab2d: refused: ') and '3.12' in line


@pytest.mark.slow
@pytest.mark.processes
def test_what_cannot_be_installed_is_wrong(script, capsys, monkeypatch):
  monkeypatch.setenv('PIP_INDEX_URL', 'http://127.0.0.1:9/simple')
  monkeypatch.setenv('PIP_EXTRA_INDEX_URL', '')
  monkeypatch.setenv('PIP_FIND_LINKS', '')
  monkeypatch.setenv('PIP_RETRIES', '0')
  monkeypatch.setenv('PIP_NO_CACHE_DIR', '1')
  assert script.main(['actors', '--pythons', '3.12', '--extras', 'gymnasium']) == 1
  assert 'WRONG  actors, Python 3.12, gymnasium: ' in capsys.readouterr().out


def test_continuous_integration_tries_every_extra_on_each_python(script):
  path = sources.ROOT / '.github' / 'workflows' / 'extras.yml'
  workflow = yaml.safe_load(path.read_text(encoding='utf-8'))
  starts = workflow[True]  # YAML reads `on` as true
  assert starts['schedule'] and 'workflow_dispatch' in starts
  [job] = workflow['jobs'].values()
  matrix = job['strategy']['matrix']
  assert matrix['python'] == sorted(finding.PREFERRED)
  command = job['steps'][-1]['run']
  for kind in matrix['kind']:
    for python in matrix['python']:
      words = command.replace('${{ matrix.kind }}', kind).replace('${{ matrix.python }}', python)
      _, file, *arguments = words.split()
      assert (sources.ROOT / file).is_file()
      parsed = script.parse(arguments)
      assert (parsed.kind, parsed.pythons) == (kind, [python])
      assert {'atari', 'dm-control', 'envpool', 'gym', 'gymnasium', 'mujoco'} <= set(parsed.extras)
