"""Other ways to run the same program: transports, launch types, and from Python."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from seed_acme.storage import recordings

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_STEPS = 3_000
_BUDGET = f'--config.total_steps={_STEPS}'


def _expect_finished(run):
  assert run.wait() == 0, run.stderr
  assert run.nodes() == []
  assert run.stderr == ''
  summary = run.summary()
  assert summary['status'] == 'finished'
  assert _STEPS <= summary['agent_steps'] < 2 * _STEPS
  assert summary['updates'] > 10
  assert run.run_dir.plot.exists()
  return summary


def test_runs_at_the_same_time_do_not_disturb_each_other(runs):
  """One uses courier, the other has a replay process; they run at once in the same folder."""
  folder = runs.folder()
  courier = runs.train(_BUDGET, '--config.transport.kind=courier', run_dir='runs/a', folder=folder)
  replay = runs.train(
    _BUDGET, '--config.replay.separate_process=True', run_dir='runs/b', folder=folder
  )
  temporary = pathlib.Path(replay.wait_for_node('replay').environ()['TMPDIR'])
  assert temporary.is_dir()
  assert 'replay' not in _expect_finished(courier)['cpu_s']
  assert 'replay' in _expect_finished(replay)['cpu_s']
  assert not temporary.exists()
  assert (folder / 'runs' / 'latest').resolve() in (folder / 'runs' / 'a', folder / 'runs' / 'b')


def test_a_single_process_finishes(runs):
  films = ('--config.num_evaluation_environments=2', '--config.record_every=1000')
  run = runs.train(
    _BUDGET, '--launch=single_process', '--config.actor.environment_groups=2', *films
  )
  summary = _expect_finished(run)
  assert set(summary['cpu_s']) == {'launcher'}
  assert -1 <= summary['evaluation_return'] <= 1
  assert not (run.folder / 'runs').exists()
  # The first episode is over before the first update is traced.
  assert recordings.steps(run.run_dir.videos)[0] == 0
  assert f'Videos: {run.run_dir.path.name}/videos\n' in run.stdout


def test_two_environment_groups_and_a_wall_clock_limit_in_processes(runs):
  run = runs.train(runs.endless, '--config.actor.environment_groups=2', '--config.max_wall_s=3')
  assert run.wait() == 0, run.stderr
  assert run.summary()['status'] == 'finished'
  assert run.summary()['wall_s'] >= 3


def _python(folder, script):
  path = folder / 'script.py'
  path.write_text(script)
  return subprocess.run(
    [sys.executable, str(path)],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=150,
    env=os.environ,
  )


_CONFIG = """
import dataclasses
from seed_acme.files import local
from seed_acme.storage import run_directory, saved_config
from seed_acme.configs import catch_vtrace

config = catch_vtrace.experiment()
config = dataclasses.replace(
    config, num_actors=1, environments_per_actor=8, total_steps=3000,
    replay=dataclasses.replace(config.replay, queue_size=32))
"""


def test_training_from_python(runs):
  folder = runs.folder()
  result = _python(
    folder,
    _CONFIG
    + """
import seed_acme

summary = seed_acme.train(config, 'run', progress=False)
print(summary['status'], summary['run_dir'])
try:
  seed_acme.train(dataclasses.replace(config, seed=7), 'run')
except seed_acme.UserError as error:
  print('refused', 'seed: 1 -> 7' in str(error))
broken = dataclasses.replace(
    config, environment=dataclasses.replace(config.environment, id='drill_environments:Raising'))
try:
  seed_acme.train(broken, 'broken', launch='single_process', progress=False)
except seed_acme.TrainingFailed as error:
  print(error)
""",
  )
  assert result.returncode == 0, result.stderr
  log = folder / 'broken' / 'logs' / 'launcher'
  assert result.stdout.splitlines() == [
    f'finished {folder / "run"}',
    'refused True',
    'error in single_process: RuntimeError: the ball fell off the board',
    f'log: {log}',
  ]


@pytest.mark.parametrize(
  'launch_type, says', [('local_mp', 'ended finished'), ('local_mt', 'nodes are processes')]
)
def test_a_program_that_the_user_launches(runs, launch_type, says):
  folder = runs.folder()
  result = _python(
    folder,
    _CONFIG
    + f"""
import launchpad as lp
from absl import app
from seed_acme.programs.graph import program_graph


def main(_):
  run = run_directory.create('run')
  saved_config.save(config, run.config)
  program = program_graph.make_program(config, run)
  manager = lp.launch(program, launch_type='{launch_type}', terminal='output_to_files')
  manager.wait()
  print('ended', local.read_json(run.status)['status'])


if __name__ == '__main__':
  app.run(main)
""",
  )
  assert (result.returncode == 0) == (launch_type == 'local_mp'), result.stderr
  assert says in result.stdout + result.stderr


@pytest.mark.parametrize('kind', ['auto', 'grpc'])
def test_actors_beside_the_learner_use_the_network_only_where_told(runs, kind):
  run = runs.train(runs.endless, f'--config.transport.kind={kind}')
  worker = run.wait_for_node('actor')
  run.wait_for_updates()
  uses_network = any(c.status == 'ESTABLISHED' for c in worker.connections('tcp'))
  assert uses_network == (kind == 'grpc')
  assert (run.run_dir.path / 'inference.sock').exists() == (kind == 'auto')
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert not (run.run_dir.path / 'inference.sock').exists()
