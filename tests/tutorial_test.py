"""docs/tutorial.md: its files and commands work in an empty folder, outside the checkout.

readme_examples_test holds the contract of its environment, and parses all of its commands.
"""

import dataclasses
import importlib
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from seed_acme.files import local
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.storage import run_directory

pytestmark = pytest.mark.slow

_DOCS = pathlib.Path(__file__).parent.parent / 'docs'
_FILE = re.compile(r'^```python\n(# (\w+\.py)\n.*?)^```$', re.MULTILINE | re.DOTALL)
_BIN = pathlib.Path(sys.executable).parent
_TRAIN = (
  'seed-acme train --config=./thermostat_vtrace.py --launch=single_process '
  '--run_dir=runs/thermostat'
)
_EVALUATE = 'seed-acme evaluate runs/thermostat --trust_run_dir'


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
@pytest.mark.timeout(900)
def test_the_experiment_learns_and_its_policy_plays(folder):
  _run(folder, _TRAIN, '--config.total_steps=40000')
  found = re.search(r'return (-[\d.]+) \+-', _run(folder, _EVALUATE))
  assert float(found[1]) > -5  # random: about -18; without heating about -17
  rewards = [float(line.split()[-1]) for line in _run(folder, 'python play.py').splitlines()]
  assert len(rewards) == 40 and sum(rewards) > -10


def test_the_own_agent_trains(folder, monkeypatch, tmp_path):
  monkeypatch.syspath_prepend(folder)
  monkeypatch.chdir(folder)
  importlib.invalidate_caches()
  config = dataclasses.replace(importlib.import_module('softmax_dqn').experiment(), total_steps=500)
  run = run_directory.create(tmp_path)
  assert single_process.run(config, run) == training_loop.FINISHED
  status = local.read_json(run.status)
  assert status['agent_steps'] >= 500 and status['updates'] > 0
  for path in folder.glob('*.py'):
    sys.modules.pop(path.stem, None)
