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


@pytest.fixture(name='earlier')
def _earlier(tmp_path):
  """`earlier(name)`: a copy of the run, its status, and the steps until which it is to go on."""

  def copied(name):
    path = shutil.copytree(_RUNS / name, tmp_path / 'run')
    status = local.read_json(path / 'status.json')
    return path, status, status['agent_steps'] + 400

  return copied


def _expect_gone_on(run, before, steps):
  after = local.read_json(run.status)
  assert after['status'] == 'finished' and steps <= after['agent_steps'] < 2 * steps
  assert after['resumptions'] == 1 and after['updates'] > before['updates']
  # There would be a notice about a memory that cannot be restored.
  assert not run.notices.exists() or 'replay memory' not in run.notices.read_text()


@pytest.mark.slow
@pytest.mark.parametrize('name', ['on_policy', 'r2d2'])
def test_it_goes_on_in_one_process(name, earlier):
  path, before, steps = earlier(name)
  config = dataclasses.replace(saved_config.load(path / 'config.json'), total_steps=steps)
  run = lifecycle.prepare(config, str(path))
  assert single_process.run(config, run) == training_loop.FINISHED
  _expect_gone_on(run, before, steps)
  assert any(run.checkpoints.glob('*/replay/DONE')) == (name == 'r2d2')


@pytest.mark.slow
@pytest.mark.processes
def test_it_goes_on_in_processes(runs, earlier):
  path, before, steps = earlier('sac')
  options = (f'--config.total_steps={steps}', '--launch=local_mp')
  run = runs.start('train', '--run_dir=run', *options, folder=path.parent)
  run.expect_finished(steps)
  _expect_gone_on(run.run_dir, before, steps)
  assert any(run.run_dir.checkpoints.glob('*/replay/DONE'))
