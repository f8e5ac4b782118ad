import os
import pathlib
import subprocess
import sys

import pytest

_SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'launchpad_wheel.py'
_TIMEOUT_S = 250


def run_script(*arguments, python=sys.executable, **variables):
  """Runs the script that builds the wheel, as a user does."""
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
  """Builds the wheel from DeepMind's and returns its path."""
  made = run_script(tmp_path_factory.mktemp('wheel'))
  assert made.returncode == 0, made.stderr
  return pathlib.Path(made.stdout.strip())
