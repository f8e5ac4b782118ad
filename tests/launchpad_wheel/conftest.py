import os
import pathlib
import subprocess
import sys

import pytest

_SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'launchpad_wheel.py'
_TIMEOUT_S = 250


def run_script(*arguments, python=sys.executable, **variables):
  """The script that makes the wheel, as a user calls it."""
  return subprocess.run(
    [python, str(_SCRIPT), *map(str, arguments)],
    env={**os.environ, **variables},
    capture_output=True,
    text=True,
    timeout=_TIMEOUT_S,
    check=False,
  )


@pytest.fixture(scope='session')
def wheel(tmp_path_factory):
  """The wheel, made from DeepMind's."""
  made = run_script(tmp_path_factory.mktemp('wheel'))
  assert made.returncode == 0, made.stderr
  return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope='session')
def installed(wheel, tmp_path_factory):
  """A folder into which pip has installed it."""
  folder = tmp_path_factory.mktemp('installed')
  command = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps', '--target', folder]
  variables = {name: value for name, value in os.environ.items() if name != 'PIP_CONSTRAINT'}
  subprocess.run([*command, wheel], env=variables, timeout=_TIMEOUT_S, check=True)
  return folder


@pytest.fixture
def run_module(installed, tmp_path):
  """Runs `python -m` where the wheel is what Launchpad and courier are imported from."""

  def run(*arguments):
    return subprocess.run(
      [sys.executable, '-m', *arguments],
      env={**os.environ, 'PYTHONPATH': str(installed), 'TMPDIR': str(tmp_path)},
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      timeout=_TIMEOUT_S,
      check=False,
    )

  return run
