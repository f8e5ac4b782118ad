"""Other ways to run the same program: transports, launch types, and from Python."""

import os
import pathlib
import signal
import subprocess
import sys
from unittest import mock

import launchpad as lp
import pytest

from seed_acme import types
from seed_acme.programs.nodes import host
from tests.programs import odd_machine

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


def test_runs_at_the_same_time_do_not_disturb_each_other(runs, monkeypatch):
  """They run in the same folder: one over courier, the other with a replay process.

  The other is started on an odd machine, looked into and hung up.
  """
  folder = runs.folder()
  courier = runs.train(
    _BUDGET,
    '--config.transport.kind=courier',
    '--config.actor.environment_groups=2',
    run_dir='runs/a',
    folder=folder,
  )
  odd_machine.enter(monkeypatch)
  run_dir = 'runs/größe eins'
  replay = runs.train(
    runs.endless,
    '--config.replay.separate_process=True',
    '--config.environment.id=drill_slow:Slow',
    run_dir=run_dir,
    folder=folder,
  )
  temporary = pathlib.Path(replay.wait_for_node('replay').environ()['TMPDIR'])
  assert temporary.is_dir()
  replay.wait_for_updates()
  # An actor beside its learner does not use the network, except where told.
  worker = replay.wait_for_node('actor')
  assert not [c for c in worker.connections('tcp') if c.status == 'ESTABLISHED']
  assert (replay.run_dir.path / 'inference.sock').exists()
  inspect = runs.start('inspect', f'--run_dir={run_dir}', '--json', folder=folder)
  assert inspect.wait() == 0 and '"unrolls"' in inspect.stdout, inspect.stderr
  replay.process.send_signal(signal.SIGHUP)
  assert 'replay' not in _expect_finished(courier)['cpu_s']
  assert replay.wait() == 129, replay.stderr
  assert replay.summary()['status'] == 'stopped'
  assert 'replay' in replay.summary()['cpu_s'] and replay.nodes() == []
  assert not temporary.exists()
  assert not (replay.run_dir.path / 'inference.sock').exists()
  assert (folder / 'runs' / 'latest').resolve() in (folder / 'runs' / 'a', folder / run_dir)


def _python(folder, script):
  path = folder / 'script.py'
  path.write_text(script)
  return subprocess.run(
    [sys.executable, str(path)],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=550,
    env=os.environ,
  )


_CONFIG = """
import dataclasses
from seed_acme.files import local
from seed_acme.storage import run_directory, saved_config
from seed_acme.configs import catch_vtrace

config = catch_vtrace.experiment()
config = dataclasses.replace(
    config, num_actors=1, environments_per_actor=8,
    replay=dataclasses.replace(config.replay, queue_size=32))
"""


def test_a_program_that_the_user_launches_ends_by_the_clock(runs):
  folder = runs.folder()
  result = _python(
    folder,
    _CONFIG
    + """
import launchpad as lp
from absl import app
from seed_acme.programs.graph import program_graph


def main(_):
  run = run_directory.create('run')
  timed = dataclasses.replace(config, total_steps=10**9, max_wall_s=0.5)
  saved_config.save(timed, run.config)
  program = program_graph.make_program(timed, run)
  lp.launch(program, launch_type='local_mp', terminal='output_to_files').wait()
  status = local.read_json(run.status)
  print('ended', status['status'], status['wall_s'] >= 0.5)


if __name__ == '__main__':
  app.run(main)
""",
  )
  assert result.returncode == 0, result.stderr
  assert 'ended finished True' in result.stdout


def test_its_nodes_cannot_be_threads(monkeypatch):
  threads = mock.Mock(launch_type=lp.LaunchType.LOCAL_MULTI_THREADING)
  monkeypatch.setattr(lp.context, 'get_context', lambda: threads)
  monkeypatch.setenv('TF2_BEHAVIOR', '1')
  with pytest.raises(types.UserError, match="'local_mt'.*nodes are processes"):
    host.enter()
