"""Runs of the previous stack (tests/earlier_runs) are resumed, with their replay memories."""

import json
import pathlib
import shutil

import pytest

_RUNS = pathlib.Path(__file__).parents[1] / 'earlier_runs'


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize('name', ['on_policy', 'r2d2', 'sac'])
def test_it_goes_on_where_it_was(name, runs):
  folder = runs.folder()
  shutil.copytree(_RUNS / name, folder / 'run')
  before = json.loads((folder / 'run' / 'status.json').read_text())
  steps = before['agent_steps'] + 1000
  run = runs.start('train', '--run_dir=run', f'--config.total_steps={steps}', folder=folder)
  run.expect_finished(steps)
  after = run.status()
  assert after['resumptions'] == 1 and after['updates'] > before['updates']
  # There would be a notice about a memory that cannot be restored.
  assert 'Notice' not in run.stdout + run.stderr
  assert any((run.run_dir.checkpoints).glob('*/replay/DONE')) == (name != 'on_policy')
