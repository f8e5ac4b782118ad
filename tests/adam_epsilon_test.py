"""scripts/adam_epsilon.py: its report on a run, and when it fails."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest

from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function

pytestmark = pytest.mark.slow

_SCRIPT = pathlib.Path(__file__).parent.parent / 'scripts' / 'adam_epsilon.py'


def _trained(folder, name, steps, **optimizer):
  """A run of so many steps."""
  config = registry.load(name)
  config = dataclasses.replace(
    config,
    total_steps=steps,
    agent=dataclasses.replace(
      config.agent, optimizer=dataclasses.replace(config.agent.optimizer, **optimizer)
    ),
  )
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  with graph_function.serial_execution():
    while not program.loop.is_finished():
      program.step()
  program.loop.finish(training_loop.FINISHED)
  program.close()
  return str(folder)


def _judged(*names):
  return subprocess.run(
    [sys.executable, str(_SCRIPT), *names], capture_output=True, text=True, check=False
  )


@pytest.mark.parametrize('name', ['catch_vtrace', 'catch_r2d2'])
def test_the_epsilon_of_a_configuration_is_small_against_its_gradients(tmp_path, name):
  judged = _judged(_trained(tmp_path, name, 6_000))
  assert judged.returncode == 0, judged.stdout + judged.stderr
  assert 'least share' in judged.stdout and '/w' in judged.stdout


def test_an_epsilon_as_large_as_the_gradients_fails_and_names_the_variables(tmp_path):
  """1e-3 is the paper's value for R2D2, whose rewards and losses have another scale."""
  judged = _judged(_trained(tmp_path, 'catch_r2d2', 6_000, epsilon=1e-3))
  assert judged.returncode == 1, judged.stdout + judged.stderr
  assert '(< 0.9: lower agent.optimizer.epsilon' in judged.stdout
  assert any('! ' in line and '/w' in line for line in judged.stdout.splitlines())


def test_a_run_without_adam_is_refused(tmp_path):
  run = run_directory.create(tmp_path)
  saved_config.save(registry.load('atari_vtrace'), run.config)
  judged = _judged(str(tmp_path))
  assert judged.returncode == 2
  assert 'has no agent.optimizer that is Adam' in judged.stderr
