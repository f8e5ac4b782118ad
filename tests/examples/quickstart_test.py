"""examples/quickstart.ipynb runs from its first cell to its last, in a folder of its own."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_NOTEBOOK = pathlib.Path(__file__).parent.parent.parent / 'examples' / 'quickstart.ipynb'
# The kernel `python3` is this interpreter.
_EXECUTE = 'from nbclient.cli import main; main()'


def _code_cells(path):
  cells = json.loads(path.read_text(encoding='utf-8'))['cells']
  return [cell for cell in cells if cell['cell_type'] == 'code']


def test_no_output_is_committed():
  for cell in _code_cells(_NOTEBOOK):
    assert cell['outputs'] == [] and cell['execution_count'] is None, ''.join(cell['source'])


@pytest.fixture(name='executed', scope='module')
def _executed(tmp_path_factory):
  folder = tmp_path_factory.mktemp('quickstart')
  copy = pathlib.Path(shutil.copy(_NOTEBOOK, folder))
  # As on a desktop: what the tests set for TensorFlow and for the paths is not passed on.
  variables = {
    name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'MPLBACKEND')
  }
  result = subprocess.run(
    [sys.executable, '-c', _EXECUTE, copy.name, '--inplace', '--timeout=900'],
    cwd=folder,
    env=variables,
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr[-4000:]
  return copy


def _outputs(path, kind):
  """What all cells show as this type of content."""
  return [
    output['data'][kind]
    for cell in _code_cells(path)
    for output in cell['outputs']
    if kind in output.get('data', {})
  ]


def _printed(path):
  return ''.join(
    ''.join(output['text'])
    for cell in _code_cells(path)
    for output in cell['outputs']
    if output['output_type'] == 'stream'
  )


@pytest.mark.processes
@pytest.mark.timeout(1800)
def test_it_trains_shows_curves_and_films(executed):
  assert len(_outputs(executed, 'image/png')) == 2, 'a curve for each of two runs'
  assert len(_outputs(executed, 'image/gif')) == 2, 'an episode of each'
  printed = _printed(executed)
  catch = float(re.search(r'^return (\S+) ± \d\.\d\d, at most 1$', printed, re.M)[1])
  assert catch > 0.8  # random: about -0.6
  corridor = float(re.search(r'^return (\S+) of 0\.88$', printed, re.M)[1])
  assert corridor == pytest.approx(0.88)
  assert re.search(r'^\[1, 1, 1, 1, 1, 1, 1\]$', printed, re.M), printed


@pytest.mark.processes
def test_it_resumes_searches_and_packs(executed):
  printed = _printed(executed)
  newest = int(re.search(r'^went on to (\d+) agent steps$', printed, re.M)[1])
  assert newest >= 90_000
  for name in ('best: update \\d+', 'gated', 'packed'):
    found = re.search(rf'^{name}(?:,|:) return (\S+)', printed, re.M)
    assert found and float(found[1]) > 0.8, (name, printed)
  assert '4 of 4 runs finished' in printed
  assert 'learning_rate' in (executed.parent / 'search' / 'table.md').read_text(encoding='utf-8')
  assert (executed.parent / 'catch.zip').is_file()
