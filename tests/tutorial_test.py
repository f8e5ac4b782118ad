"""docs/tutorial.md: its files and commands work in an empty folder, outside the checkout."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_DOCS = pathlib.Path(__file__).parent.parent / 'docs'
_FILE = re.compile(r'^```python\n(# (\w+\.py)\n.*?)^```$', re.MULTILINE | re.DOTALL)
_BIN = pathlib.Path(sys.executable).parent
_TRAIN = (
  'seed-acme train --config=./thermostat_vtrace.py --launch=single_process '
  '--run_dir=runs/thermostat'
)
_EVALUATE = 'seed-acme evaluate runs/thermostat --trust_run_dir'
_OWN_AGENT = (
  'seed-acme train --config=./softmax_dqn.py --launch=single_process --run_dir=runs/softmax'
)


def _text():
  return (_DOCS / 'tutorial.md').read_text(encoding='utf-8')


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  """Makes a reader's folder: the tutorial's files, and the agent that it says to save."""
  folder = tmp_path_factory.mktemp('tutorial')
  files = {
    match[2]: match[1]
    for page in ('agents.md', 'tutorial.md')
    for match in _FILE.finditer((_DOCS / page).read_text(encoding='utf-8'))
  }
  assert {'thermostat.py', 'softmax_dqn.py', 'dqn.py', 'play.py'} <= set(files)
  for name, text in files.items():
    (folder / name).write_text(text)
  return folder


def _run(folder, command, *more):
  assert f'\n{command}\n' in _text(), f'the tutorial does not show: {command}'
  name, *arguments = shlex.split(command)
  program = [sys.executable] if name == 'python' else [sys.executable, _BIN / name]
  variables = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
  result = subprocess.run(
    [*program, *arguments, *more],
    cwd=folder,
    env=variables,
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stdout + result.stderr
  return result.stdout


@pytest.mark.processes
def test_the_environment_keeps_the_contract(folder):
  assert re.search(
    r'\b\d\d passed', _run(folder, 'python -m pytest thermostat_test.py', '-p', 'no:cacheprovider')
  )


@pytest.mark.processes
@pytest.mark.timeout(900)
def test_the_experiment_learns_and_its_policy_plays(folder):
  _run(folder, _TRAIN)
  found = re.search(r'return (-[\d.]+) \+-', _run(folder, _EVALUATE))
  assert float(found[1]) > -5  # random: about -18; without heating about -17
  rewards = [float(line.split()[-1]) for line in _run(folder, 'python play.py').splitlines()]
  assert len(rewards) == 40 and sum(rewards) > -10


@pytest.mark.processes
@pytest.mark.timeout(900)
def test_the_own_agent_trains(folder):
  out = _run(folder, _OWN_AGENT, '--config.total_steps=3000')
  assert re.search(r'^Finished: 3,\d\d\d steps, [1-9]\d* updates', out, re.MULTILINE), out
