"""examples/first_hour.ipynb runs from top to bottom, and each section shows its topic."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1800)]

_NOTEBOOK = pathlib.Path(__file__).parent.parent.parent / 'examples' / 'first_hour.ipynb'
# The kernel `python3` is this interpreter.
_EXECUTE = 'from nbclient.cli import main; main()'
_NUMBER = r'(-?\d+(?:\.\d+)?)'


@dataclasses.dataclass(frozen=True)
class _Section:
  """The output of the cells below a heading.

  printed: their stdout. images: the type of each image, in order.
  """

  printed: str
  images: tuple[str, ...]

  def numbers(self, pattern: str) -> list[float]:
    return [float(value) for value in re.findall(pattern, self.printed, re.MULTILINE)]


@dataclasses.dataclass(frozen=True)
class _Executed:
  """An executed copy of the notebook. folder: made by the notebook for its files."""

  sections: dict[str, _Section]
  folder: pathlib.Path


def _cells() -> list[dict[str, Any]]:
  return json.loads(_NOTEBOOK.read_text(encoding='utf-8'))['cells']


def test_no_output_is_committed():
  for cell in _cells():
    if cell['cell_type'] == 'code':
      assert cell['outputs'] == [] and cell['execution_count'] is None, ''.join(cell['source'])


def test_its_links_lead_to_files():
  prose = '\n'.join(''.join(cell['source']) for cell in _cells() if cell['cell_type'] == 'markdown')
  links = re.findall(r'\]\(([^)#]+)', prose)
  assert links
  for link in links:
    assert (_NOTEBOOK.parent / link).is_file(), link


@pytest.fixture(name='executed', scope='module')
def _executed(tmp_path_factory):
  folder = tmp_path_factory.mktemp('first_hour')
  copy = pathlib.Path(shutil.copy(_NOTEBOOK, folder))
  # As on a desktop whose virtual environment is not active: the tests' settings for TensorFlow and
  # paths are not passed on, and the notebook itself has to find `seed-acme`.
  scripts = str(pathlib.Path(sys.executable).parent)
  variables = {
    name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'MPLBACKEND')
  }
  paths = [path for path in variables['PATH'].split(os.pathsep) if path != scripts]
  result = subprocess.run(
    [sys.executable, '-c', _EXECUTE, copy.name, '--inplace', '--timeout=900'],
    cwd=folder,
    env=variables | {'PATH': os.pathsep.join(paths), 'TMPDIR': str(folder)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr[-4000:]
  left = {path.name for path in folder.iterdir()} - {copy.name}
  assert len(left) == 1, f'files beside the notebook: {left}'
  return _Executed(_sections(copy), folder / left.pop())


def _sections(path: pathlib.Path) -> dict[str, _Section]:
  cells: dict[str, list[dict[str, Any]]] = {}
  title = ''
  for cell in json.loads(path.read_text(encoding='utf-8'))['cells']:
    headings = re.findall(r'^## (.+)$', ''.join(cell['source']), re.MULTILINE)
    if cell['cell_type'] == 'markdown' and headings:
      title = headings[-1]
    cells.setdefault(title, []).extend(cell.get('outputs', []))
  return {title: _section(outputs) for title, outputs in cells.items()}


def _section(outputs: list[dict[str, Any]]) -> _Section:
  printed = [''.join(output['text']) for output in outputs if output.get('name') == 'stdout']
  images = [
    kind
    for output in outputs
    for kind in output.get('data', {})
    if kind in ('image/png', 'image/gif')
  ]
  return _Section(''.join(printed), tuple(images))


def _rows(path: pathlib.Path) -> list[dict[str, str]]:
  with open(path, newline='', encoding='utf-8') as file:
    return list(csv.DictReader(file))


def test_it_trains(executed):
  assert re.search(r'^2\d,\d{3} steps, [\d,]+ a second$', executed.sections['Train'].printed, re.M)
  # Of a run that has only ever been in one process.
  run = executed.folder / 'runs/catch'
  summary = json.loads((run / 'summary.json').read_text())
  assert summary['status'] == 'finished' and set(summary['cpu_s']) == {'launcher'}
  assert -1 <= summary['evaluation_return'] <= 1
  assert (run / 'plot.png').exists()


def test_it_shows_a_curve_and_films_and_how_to_watch_more(executed):
  section = executed.sections['Watch']
  assert section.images == ('image/png', 'image/gif', 'image/gif')
  steps = [int(text.replace(',', '')) for text in re.findall(r'after ([\d,]+) st', section.printed)]
  assert len(steps) == 2 and steps[0] == 0 and steps[1] >= 15_000
  (logs,) = re.findall(r'^tensorboard --logdir=(\S+)$', section.printed, re.M)
  assert list(pathlib.Path(logs).rglob('events.out.tfevents.*'))
  (run,) = re.findall(r'^seed-acme evaluate (\S+) --watch$', section.printed, re.M)
  assert (pathlib.Path(run) / 'config.json').is_file()


def test_it_evaluates_newest_and_best_with_their_errors(executed):
  section = executed.sections['Evaluate']
  found = re.findall(rf'^(\w+): return {_NUMBER} \+- {_NUMBER} after ', section.printed, re.M)
  assert [name for name, _, _ in found] == ['newest', 'best']
  for _, mean, error in found:
    assert float(mean) > -0.3  # random: about -0.6, with an error of 0.06
    assert 0 <= float(error) < 0.1


def test_the_run_goes_on_and_gets_better(executed):
  section = executed.sections['Resume']
  assert 'Resuming: runs/catch' in section.printed and section.images == ('image/png',)
  (after,) = section.numbers(rf'^return {_NUMBER} \+-')
  (before,) = executed.sections['Evaluate'].numbers(rf'^newest: return {_NUMBER} \+-')
  assert after > 0.8 and after > before
  rows = _rows(executed.folder / 'runs/catch/metrics.csv')
  steps = [int(row['agent_steps']) for row in rows]
  assert steps == sorted(steps) and steps[0] < 20_000 and steps[-1] >= 60_000


def test_the_environment_is_learnt_filmed_and_played(executed):
  section = executed.sections['An environment of your own']
  assert section.images == ('image/gif',)
  assert section.numbers(rf'^return {_NUMBER} of 0.88$') == [0.88]
  assert re.search(r'^\[1, 1, 1, 1, 1, 1, 1\]$', section.printed, re.M), section.printed


def test_the_network_learns(executed):
  section = executed.sections['A network of your own']
  assert section.images == ('image/png',), 'both curves in one figure'
  saved = json.loads((executed.folder / 'runs/board/config.json').read_text())
  assert 'board:BoardTorso' in json.dumps(saved)
  last = _rows(executed.folder / 'runs/board/metrics.csv')[-1]
  assert float(last['episode/return_last_100']) > 0.5  # random: about -0.6


def test_the_search_tells_its_trials_apart(executed):
  section = executed.sections['Search']
  assert '3 of 3 runs finished' in section.printed and section.images == ('image/png',)
  table = _rows(executed.folder / 'runs/search/table.csv')
  rates = [row['agent.optimizer.learning_rate'] for row in table]
  assert len(set(rates)) == 3
  for rate in rates:
    assert re.search(rf'^\| +{re.escape(rate)} \|', section.printed, re.M), section.printed
  returns = [float(row['return_mean']) for row in table]
  assert returns == sorted(returns, reverse=True)
  assert returns[0] > 0.5 and returns[0] - returns[-1] > 0.1


def test_the_packed_run_is_evaluated_and_unpacked(executed):
  section = executed.sections['Pack']
  assert re.search(r'^Packed: catch.zip', section.printed, re.M)
  (mean,) = section.numbers(rf'^return {_NUMBER} \+-')
  assert mean > 0.8
  assert re.search(r'^\| score \| \S+ ± \S+: .* 100 greedy episodes', section.printed, re.M)
  assert '| licence | CC-BY-4.0 |' in section.printed
  packed = _rows(executed.folder / 'runs/unpacked/metrics.csv')
  assert packed == _rows(executed.folder / 'runs/catch/metrics.csv')
