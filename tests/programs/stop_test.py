"""Runs that are stopped from the keyboard or killed: what they leave behind."""

import collections
import os
import signal
import time

import pytest

from seed_acme.storage import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]


# It ignores signals, changes the working folder at every step, and records where it is made.
_MEDDLING = (
  '--config.environment.id=drill_environments:Meddling',
  '--config.environment.settings',
  'makings',
  'makings.txt',
)


def _makings(folder):
  """Returns how many environments each kind of process has made, and resets the counts."""
  made = collections.Counter()
  file = folder / 'makings.txt'
  for line in file.read_text().splitlines():
    node, number = line.split()
    made[node] += int(number)
  file.unlink()
  return made


def _expect_stopped(run, code):
  """Checks the state of a run that was asked to stop."""
  assert run.wait() == code, run.stderr
  assert run.nodes() == []
  assert run.summary()['status'] == 'stopped'
  assert run.status()['status'] == 'stopped'
  assert run.failure() is None
  saved = checkpoint.load(checkpoint.newest(run.run_dir.checkpoints))
  assert saved.meta['counts']['updates'] == run.summary()['updates'] == run.status()['updates']
  assert 'Traceback' not in run.stderr + run.stdout
  return saved.meta['counts']


@pytest.fixture(scope='module')
def folder(runs):
  return runs.folder()


def test_ctrl_c_leaves_all_for_the_next_start_and_a_learner_that_cannot_save_is_no_orderly_end(
  runs, folder
):
  """With a replay process of its own, which must live until the learner has saved its contents."""
  run = runs.train(
    '--config=catch_r2d2',
    # Replay memories of recurrent networks are those of replay_resume_test.
    '--config.network.core=none',
    '--config.agent.overlap=0',
    '--config.replay.unrolls_per_item=1',
    runs.endless,
    '--config.agent.replay_min_size=30',
    '--config.checkpoint.period_s=1000',
    '--config.replay.separate_process=True',
    *_MEDDLING,
    folder=folder,
  )
  run.wait_for_updates(10)
  assert _makings(folder) == {'door': 1, 'actor': 8}
  # As a terminal does, for the whole foreground process group.
  os.killpg(run.process.pid, signal.SIGINT)
  counts = _expect_stopped(run, 130)
  assert 'Stopping with a checkpoint' in run.stderr
  assert counts['updates'] >= 10
  assert checkpoint.replay_folder(checkpoint.newest(run.run_dir.checkpoints)) is not None
  lines = run.stdout.splitlines()
  first = [
    line.partition(',')[0]
    for line in lines[2 : lines.index(next(line for line in lines if ' return ' in line))]
    if not line.startswith('Hint: ')
  ]
  assert first[0] == 'Starting' and 'Loading TensorFlow' in first, run.stdout  # signs of life
  assert (
    'Resume: ' in run.stdout and 'seed-acme train --run_dir=run --trust_run_dir\n' in run.stdout
  )

  again = ('train', '--run_dir=run', '--trust_run_dir', '--config.checkpoint.period_s=1000')
  resumed = runs.start(*again, folder=folder)
  resumed.wait_for_updates(10, since=counts['updates'])
  assert _makings(folder) == {'door': 1, 'actor': 8}
  assert resumed.status()['resumptions'] == 1
  [learner] = resumed.nodes('learner')
  learner.suspend()
  updates = resumed.status()['updates']
  resumed.process.send_signal(signal.SIGTERM)
  assert resumed.wait() == 1
  assert resumed.nodes() == []
  summary = resumed.summary()
  assert summary['status'] == 'stopped' and summary['saved_updates'] == counts['updates']
  assert summary['lost_updates'] >= updates - counts['updates']
  assert summary['lost_agent_steps'] > 0
  lost = f'{summary["lost_updates"]:,} updates and {summary["lost_agent_steps"]:,} steps are lost'
  assert lost in resumed.stdout.splitlines()[-3], resumed.stdout


def test_a_hangup_of_all_processes_in_one_process(runs, folder):
  run = runs.train(
    runs.endless,
    '--config.checkpoint.period_s=1000',
    '--launch=single_process',
    '--config.num_evaluation_environments=3',
    '--config.actor.environment_groups=2',
    *_MEDDLING,
    run_dir='hangup',
    folder=folder,
  )
  run.wait_for_updates(10)
  assert _makings(folder) == {'door': 1, 'launcher': 8 + 3}
  for process in (*run.nodes(), run.process):
    process.send_signal(signal.SIGHUP)
  assert _expect_stopped(run, 128 + signal.SIGHUP)['updates'] >= 10


def test_after_a_kill_of_the_front_end_no_process_is_left(runs, folder, until):
  run = runs.train(runs.endless, run_dir='front_end', folder=folder)
  run.wait_for_node('actor')  # the last to start
  assert {'launcher', 'learner', 'actor_supervisor', 'actor'} <= {
    process.environ()['SEED_ACME_NODE'] for process in run.nodes()
  }
  run.process.kill()
  until(lambda: not run.nodes(), 'the end of all processes', 30)


@pytest.mark.parametrize('moment', ['launcher', 'learner'])
def test_ctrl_c_while_the_processes_start(runs, folder, moment):
  run = runs.train(runs.endless, run_dir=f'start_{moment}', folder=folder)
  run.wait_for_node(moment)  # its imports take seconds
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert run.nodes() == []
  assert run.summary()['status'] == 'stopped'
  assert run.failure() is None
  # The launcher may end too soon for the message.
  assert run.stderr in ('', 'Stopping with a checkpoint; a second signal kills at once.\n')


def test_a_launcher_that_hangs_is_killed_after_a_second_ctrl_c(runs, folder, until):
  run = runs.train(runs.endless, run_dir='hangs', folder=folder)
  launcher = run.wait_for_node('launcher')
  run.wait_for_node('learner')
  launcher.suspend()
  run.process.send_signal(signal.SIGINT)
  until(lambda: 'Stopping' in run.stderr, 'the message')
  time.sleep(1)  # a second signal within half a second counts as the same
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert run.nodes() == []
