"""scripts/adam_epsilon.py: its report on a run, and when it fails."""

import dataclasses
import shutil

import pytest

from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function
from tests import sources

pytestmark = pytest.mark.slow


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('adam_epsilon')


@pytest.fixture(name='trained', scope='module', params=['catch_vtrace', 'catch_r2d2'])
def _trained(request, tmp_path_factory):
  """Returns the folder of a run of 2,500 steps."""
  config = dataclasses.replace(registry.load(request.param), total_steps=2_500)
  run = run_directory.create(tmp_path_factory.mktemp('runs') / request.param)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  with graph_function.serial_execution():
    while not program.loop.is_finished():
      program.step()
  program.loop.finish(training_loop.FINISHED)
  program.close()
  return run.path


def test_the_epsilon_of_a_configuration_is_small_against_its_gradients(script, trained, capsys):
  assert script.main([str(trained)]) == 0
  report = capsys.readouterr().out
  assert 'least share' in report and '/w' in report


def test_an_epsilon_as_large_as_the_gradients_fails_and_names_the_variables(
  script, trained, tmp_path, capsys
):
  """1e-3 is the paper's value for R2D2, whose rewards and losses have another scale."""
  run = run_directory.RunDirectory(tmp_path / 'run')
  shutil.copytree(trained, run.path)
  config = saved_config.load(run.config)
  optimizer = dataclasses.replace(config.agent.optimizer, epsilon=1e-3)
  agent = dataclasses.replace(config.agent, optimizer=optimizer)
  saved_config.save(dataclasses.replace(config, agent=agent), run.config)
  assert script.main([str(run.path)]) == 1
  report = capsys.readouterr().out
  assert '(< 0.9: lower agent.optimizer.epsilon' in report
  assert any('! ' in line and '/w' in line for line in report.splitlines())


def test_a_run_without_adam_is_refused(script, tmp_path, capsys):
  run = run_directory.create(tmp_path)
  saved_config.save(registry.load('atari_vtrace'), run.config)
  with pytest.raises(SystemExit) as refused:
    script.main([str(tmp_path)])
  assert refused.value.code == 2
  assert 'has no agent.optimizer that is Adam' in capsys.readouterr().err
