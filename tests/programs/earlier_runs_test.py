"""Runs of the previous stack (tests/earlier_runs) are resumed, with their replay memories."""

import dataclasses
import pathlib
import shutil

import pytest

from seed_acme.files import local
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.front_end import lifecycle
from seed_acme.storage import saved_config

_RUNS = pathlib.Path(__file__).parents[1] / 'earlier_runs'


@pytest.mark.slow
@pytest.mark.parametrize('name', ['on_policy', 'r2d2', 'sac'])
def test_it_goes_on(name, tmp_path):
  path = shutil.copytree(_RUNS / name, tmp_path / 'run')
  before = local.read_json(path / 'status.json')
  steps = before['agent_steps'] + 400
  config = dataclasses.replace(saved_config.load(path / 'config.json'), total_steps=steps)
  config, run = lifecycle.prepare(config, str(path))
  assert single_process.run(config, run) == training_loop.FINISHED
  after = local.read_json(run.status)
  assert after['status'] == 'finished' and steps <= after['agent_steps'] < 2 * steps
  assert after['resumptions'] == 1 and after['updates'] > before['updates']
  # There would be a notice about a memory that cannot be restored.
  assert not run.notices.exists() or 'replay memory' not in run.notices.read_text()
  assert any(run.checkpoints.glob('*/replay/DONE')) == (name != 'on_policy')
