"""Refusals and output of a launch on Vertex AI."""

import os
import signal
import subprocess
import sys

import pytest

from seed_acme.configs import registry
from seed_acme.files import google_credentials
from seed_acme.programs import cli
from seed_acme.programs.system import processes
from seed_acme.storage import saved_config
from tests.programs.vertex import launching

pytestmark = pytest.mark.slow


def _error(capsys, tmp_path, monkeypatch, *arguments):
  """Returns the one-line message for wrong input, before anything is staged."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  assert cli.main([*launching.VERTEX, '--dry_run', *arguments]) == processes.USER_ERROR_EXIT
  lines = capsys.readouterr().err.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: '), lines
  assert not list(tmp_path.iterdir())
  return lines[0]


@pytest.mark.parametrize(
  'arguments, expected',
  [
    ((), 'needs --cloud.project'),
    (launching.CLOUD[:1], 'needs --cloud.bucket=gs://NAME'),
    ((*launching.CLOUD, '--cloud.learner=n1-standard-7'), "unknown machine type 'n1-standard-7'"),
    ((*launching.CLOUD, '--cloud.actors=n1-standard-4+1xH100'), "unknown accelerator 'H100'"),
    ((*launching.CLOUD, '--run_dir=runs/here'), '--run_dir=runs/here is not in a bucket'),
    ((*launching.CLOUD, '--config.initial_checkpoint=runs/x'), 'runs/x with --launch=vertex_ai is'),
    ((*launching.CLOUD, '--config.transport.kind=courier'), 'use --config.transport.kind=grpc'),
    ((*launching.CLOUD, '--config.environment.id=cach'), 'cach'),
    ((*launching.CLOUD, '--config.environment.id=os.path:join'), 'os is on this machine only'),
    ((*launching.CLOUD, '--max_restarts=2'), '--max_restarts and --json are not for'),
    (('--launch=local_mp', *launching.CLOUD), '--dry_run, --out and --cloud.… are for'),
  ],
)
def test_wrong_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, expected):
  assert expected in _error(capsys, tmp_path, monkeypatch, *arguments)


def test_without_credentials_nothing_is_launched(capsys, tmp_path, monkeypatch):
  monkeypatch.setenv('CLOUDSDK_CONFIG', str(tmp_path))
  monkeypatch.delenv('GOOGLE_APPLICATION_CREDENTIALS', raising=False)
  monkeypatch.setattr(google_credentials, '_is_google_machine', lambda: False)
  assert cli.main([*launching.VERTEX, *launching.CLOUD]) == processes.USER_ERROR_EXIT
  error = capsys.readouterr().err
  assert error.startswith('error: credentials: ')
  assert 'gcloud auth application-default login' in error


# The real launch of a new run, and then of one that cannot go on. The last step is left out, with
# the libraries and the contents of images that only this step needs.
_LAUNCHES = """
import sys, types
from seed_acme.programs import cli
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import stage as cloud_stage
vertex_missing.has_docker = lambda: False  # it would have to be logged in
cloud_stage.stage_package = lambda folder: folder.mkdir()
cloud_stage.stage_launchpad = lambda folder: None
submit = lambda job, cloud: (
    f'projects/1/locations/{cloud.region}/customJobs/{len(job.pools)}00', 'https://page')
sys.modules['seed_acme.programs.vertex.submit'] = types.SimpleNamespace(submit=submit)
new, old, *arguments = sys.argv[1:]
assert cli.main([*arguments, new]) == 0
print('The second', flush=True)
sys.exit(cli.main([*arguments, old, '--config.agent.batch_size=8']))
"""


def test_a_launch_says_how_to_go_on_and_a_run_that_cannot_go_on_is_not_even_staged(
  storage, tmp_path
):
  url, old_url = 'gs://bucket/vertex/new', 'gs://bucket/vertex/old'
  path = storage.path(f'{old_url}/config.json')
  path.parent.mkdir(parents=True, exist_ok=True)
  saved_config.save(registry.load('catch_vtrace'), path)
  run_dirs = [f'--run_dir={url}', f'--run_dir={old_url}']
  done = subprocess.run(
    [sys.executable, '-c', _LAUNCHES, *run_dirs, *launching.VERTEX, *launching.CLOUD],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=launching.HANG_S,
    check=False,
    env={**os.environ, **storage.environment},
  )
  assert done.returncode == processes.USER_ERROR_EXIT, done.stderr
  said, _, of_second = done.stdout.partition('The second\n')
  of_job = '200 --region=us-central1 --project=my-project-123'
  for line in (
    f'Logs: gcloud ai custom-jobs stream-logs {of_job}',
    f'Stop: gcloud ai custom-jobs cancel {of_job}',
    f'TensorBoard: tensorboard --logdir={url}/tensorboard',
    f'Resume, after a preemption too: the same command with --run_dir={url}',
  ):
    assert line in said.splitlines(), said
  assert 'agent.batch_size: ' in done.stderr and '-> 8' in done.stderr
  assert not of_second
  assert not list(tmp_path.iterdir())


# A node that is stopped, or not, after Launchpad has set its alarm, and that takes long to end.
_END = """
import atexit, pathlib, signal, sys, threading, time
from seed_acme.storage import run_directory
from seed_acme.programs.nodes import container_node, node

def body(_):
  atexit.register(time.sleep, 2)
  signal.alarm(1)
  return sys.argv[1] == 'over'

life = container_node.InContainer(threading.Event())
run = run_directory.RunDirectory(pathlib.Path('run'))
container_node._run(node.Node(None, node.Links('token', 'localhost:1'), run, life), body)
"""


@pytest.mark.parametrize('how, code', [('over', 0), ('stopped', 143)])
def test_the_exit_code_says_whether_the_run_is_over(tmp_path, how, code):
  done = subprocess.run([sys.executable, '-c', _END, how], cwd=tmp_path, check=False)
  assert done.returncode == code


# A learner that is stopped without having saved its updates, without a bucket and TensorFlow.
_LOSS = """
import pathlib, sys, threading, types
from seed_acme.configs import registry
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import container_node, node
from seed_acme.programs.system import processes
from seed_acme.files import local
from seed_acme.storage import bucket_copy, run_directory

class Mirror:
  def __init__(self, run, *, on_round, **_):
    self.run = run
    rounds.append(on_round)

  def start(self):  # fetches the status of an earlier start, when the clock was ahead
    local.write_json(self.run.status, {'time_s': 9e9, 'updates': 77, 'agent_steps': 777})
    local.write_json(self.run.cpu_seconds, {'learner': 1e6})

  def stop(self):
    pass

rounds = []

def train(node):
  rounds[0]()
  print('record:', local.read_json(node.folder.cpu_seconds)['learner'] > 1e6)
  if 'trains' in sys.argv:
    local.write_json(node.folder.status, {'time_s': 1.0, 'updates': 30, 'agent_steps': 600})
  return False

bucket_copy.Mirror, processes.load_tensorflow = Mirror, lambda: None
sys.modules['seed_acme.programs.nodes.learner_node'] = types.SimpleNamespace(run=train)
life = container_node.InContainer(threading.Event())
run = run_directory.RunDirectory(pathlib.Path('run'))
[learner] = sections.split(registry.load('catch_vtrace')).learners
life.live(node.Node(learner, node.Links('token', 'localhost:1'), run, life))
"""


def test_a_learner_that_was_stopped_and_saved_nothing_says_what_is_lost(tmp_path):
  done = subprocess.run(
    [sys.executable, '-c', _LOSS, 'trains'],
    cwd=tmp_path,
    check=False,
    capture_output=True,
    text=True,
  )
  assert done.returncode == processes.FAILURE_EXIT, done.stderr
  lost = '30 updates and 600 steps are lost because no whole checkpoint is on the disk'
  # the progress, which is not that of the start before
  assert '600 steps, return -, 30 updates' in done.stdout and '777' not in done.stdout
  assert 'record: True' in done.stdout  # before the end, which a kill would prevent
  assert f'Lost: {lost}' in done.stdout and f'error in learner/0: {lost}' in done.stderr


def test_a_learner_that_was_stopped_before_it_trained_has_lost_nothing(tmp_path):
  """The start before it was killed, and has lost its steps."""
  done = subprocess.run(
    [sys.executable, '-c', _LOSS], cwd=tmp_path, check=False, capture_output=True, text=True
  )
  assert done.returncode == 128 + signal.SIGTERM, done.stderr
  assert 'Lost: 77 updates and 777 steps' in done.stdout and 'error' not in done.stderr
