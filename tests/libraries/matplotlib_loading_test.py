"""Each case runs in a process of its own, because matplotlib is loaded only once."""

import os
import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.libraries import matplotlib_loading
from seed_acme.programs.system import processes

# As with a user id without a name, if HOME is not set.
_NO_HOME = """
import os, pathlib
def home(): raise RuntimeError('Could not determine home directory.')
pathlib.Path.home = home
"""
_DRAW = """
from seed_acme.programs.pictures import drawing
from seed_acme.libraries import matplotlib_loading
drawing.write(drawing.new_figure(1, 1), 'figure.png')
"""


def _run(code, folder, **variables):
  unset = ('MPLBACKEND', 'MPLCONFIGDIR')
  kept = {name: value for name, value in os.environ.items() if name not in unset}
  return subprocess.check_output(
    [sys.executable, '-c', code],
    cwd=folder,
    env={**kept, 'PYTHONPATH': os.pathsep.join(sys.path), **variables},
    text=True,
  ).split()


@pytest.mark.slow
def test_a_process_of_ours_draws_whatever_a_profile_says(tmp_path):
  """With an unknown name matplotlib refuses its own import."""
  code = 'from seed_acme.programs import cli; cli.main(["list", "--json"])' + _DRAW
  _run(code, tmp_path, MPLBACKEND='Qt4Agg')
  assert (tmp_path / 'figure.png').exists()


def test_a_process_that_a_run_starts_has_our_backend():
  assert processes.environment('learner', 1)['MPLBACKEND'] == 'agg'


@pytest.mark.slow
@pytest.mark.parametrize('chosen', ['MPLBACKEND', 'use', 'command'])
def test_the_backend_of_a_notebook_stays(tmp_path, chosen):
  code, variables = _DRAW, {}
  if chosen == 'MPLBACKEND':
    variables['MPLBACKEND'] = 'svg'
  else:
    code = 'import matplotlib; matplotlib.use("svg")\n' + code
  if chosen == 'command':
    code += 'matplotlib_loading.use_own_backend()\n'
  code += 'import matplotlib.pyplot; print(matplotlib.get_backend(), os.environ.get("MPLBACKEND"))'
  backend, variable = _run('import os\n' + code, tmp_path, **variables)
  assert backend == 'svg' and variable == variables.get('MPLBACKEND', 'None')


@pytest.mark.slow
def test_pictures_are_drawn_without_a_home_and_leave_nothing_behind(tmp_path):
  (tmp_path / 'temporary').mkdir()
  code = _NO_HOME + _DRAW + 'print(os.environ["MPLCONFIGDIR"])'
  [folder] = _run(code, tmp_path, TMPDIR=str(tmp_path / 'temporary'))
  assert folder.startswith(str(tmp_path / 'temporary')) and not os.path.exists(folder)
  assert (tmp_path / 'figure.png').exists()


@pytest.mark.slow
def test_with_a_home_matplotlib_keeps_its_folder(tmp_path):
  assert _run('import os\n' + _DRAW + 'print("MPLCONFIGDIR" in os.environ)', tmp_path) == ['False']


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch):
  monkeypatch.setitem(sys.modules, 'matplotlib', None)  # as if it was not installed
  with pytest.raises(types.UserError, match='needs matplotlib, which .* lacks: pip install'):
    matplotlib_loading.load()
