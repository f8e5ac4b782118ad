"""Refusals and output of a launch on Vertex AI."""

import json
import os
import re
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


def test_nodes_of_one_machine_type_are_pools_of_their_own_and_the_learner_is_first(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  same = [f'--cloud.{kind}=n1-standard-4' for kind in ('learner', 'replay', 'actors')]
  assert (
    cli.main(
      [
        *launching.VERTEX,
        *launching.CLOUD,
        *same,
        '--dry_run',
        '--out=out',
        '--config.num_actors=1',
        '--config.replay.separate_process=True',
      ]
    )
    == 0
  )
  assert re.findall(r'^Pool (\d): 1 x n1-standard-4: (\w+)', capsys.readouterr().out, re.M) == [
    ('0', 'learner'),
    ('1', 'replay'),
    ('2', 'actors'),
  ]
  pools = json.loads((tmp_path / 'out' / 'job.json').read_text())['workerPoolSpecs']
  assert [re.search(r'-(\w+):', pool['containerSpec']['imageUri'])[1] for pool in pools] == [
    'learner',
    'replay',
    'actor',
  ]


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
    ((*launching.CLOUD, '--config.transport.kind=courier'), 'use --config.transport.kind=grpc'),
    ((*launching.CLOUD, '--config.environment.id=cach'), 'cach'),
    ((*launching.CLOUD, '--config.environment.id=os.path:join'), 'os is on this machine only'),
    ((*launching.CLOUD, '--max_restarts=2'), '--max_restarts and --json are not for'),
    (('--launch=local_mp', *launching.CLOUD), '--dry_run, --out and --cloud.… are for'),
  ],
)
def test_wrong_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, expected):
  assert expected in _error(capsys, tmp_path, monkeypatch, *arguments)


def test_a_folder_with_files_is_not_written_into(capsys, tmp_path, monkeypatch):
  (tmp_path / 'mine').write_text('')
  monkeypatch.chdir(tmp_path)
  assert cli.main([*launching.VERTEX, *launching.CLOUD, '--dry_run', f'--out={tmp_path}']) == 2
  assert 'is there already' in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ['mine']


def test_without_credentials_nothing_is_launched(capsys, tmp_path, monkeypatch):
  monkeypatch.setenv('CLOUDSDK_CONFIG', str(tmp_path))
  monkeypatch.delenv('GOOGLE_APPLICATION_CREDENTIALS', raising=False)
  monkeypatch.setattr(google_credentials, '_is_google_machine', lambda: False)
  assert cli.main([*launching.VERTEX, *launching.CLOUD]) == processes.USER_ERROR_EXIT
  error = capsys.readouterr().err
  assert error.startswith('error: credentials: ')
  assert 'gcloud auth application-default login' in error


# The real launch except for its last step.
_LAUNCH = """
import sys
from seed_acme.programs import cli
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import submit as vertex_submit
vertex_missing.has_docker = lambda: False  # it would have to be logged in
vertex_submit.submit = lambda job, cloud: (
    f'projects/1/locations/{cloud.region}/customJobs/{len(job.pools)}00', 'https://page')
sys.exit(cli.main(sys.argv[1:]))
"""


def _launch(storage, folder, url, *arguments):
  return subprocess.run(
    [
      sys.executable,
      '-c',
      _LAUNCH,
      *launching.VERTEX,
      *launching.CLOUD,
      f'--run_dir={url}',
      *arguments,
    ],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=launching.HANG_S,
    check=False,
    env={**os.environ, **storage.environment},
  )


def test_a_launch_says_how_to_follow_stop_and_resume(storage, tmp_path):
  url = 'gs://bucket/vertex/new'
  done = _launch(storage, tmp_path, url)
  assert done.returncode == 0, done.stderr
  of_job = '200 --region=us-central1 --project=my-project-123'
  for line in (
    f'Logs: gcloud ai custom-jobs stream-logs {of_job}',
    f'Stop: gcloud ai custom-jobs cancel {of_job}',
    f'TensorBoard: tensorboard --logdir={url}/tensorboard',
    f'Resume, after a preemption too: the same command with --run_dir={url}',
  ):
    assert line in done.stdout.splitlines(), done.stdout
  assert not list(tmp_path.iterdir())


def test_a_run_that_cannot_go_on_is_refused_before_anything_is_staged(storage, tmp_path):
  url = 'gs://bucket/vertex/old'
  path = storage.path(f'{url}/config.json')
  path.parent.mkdir(parents=True, exist_ok=True)
  saved_config.save(registry.load('catch_vtrace'), path)
  done = _launch(storage, tmp_path, url, '--config.agent.batch_size=8')
  assert done.returncode == processes.USER_ERROR_EXIT
  assert 'agent.batch_size: ' in done.stderr and '-> 8' in done.stderr
  assert not done.stdout


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


# A learner that is stopped without having saved its updates, and without a bucket.
_LOSS = """
import pathlib, threading
from seed_acme.configs import registry
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import container_node, learner_node, node
from seed_acme.files import local
from seed_acme.storage import bucket_copy, run_directory

class Mirror:
  def __init__(self, run, **_):
    pass

  start = stop = lambda self: None

def train(node):
  local.write_json(node.folder.status, {'time_s': 1.0, 'updates': 30, 'agent_steps': 600})
  return False

bucket_copy.Mirror, learner_node.run = Mirror, train
life = container_node.InContainer(threading.Event())
run = run_directory.RunDirectory(pathlib.Path('run'))
[learner] = sections.split(registry.load('catch_vtrace')).learners
life.live(node.Node(learner, node.Links('token', 'localhost:1'), run, life))
"""


def test_a_learner_that_was_stopped_and_saved_nothing_says_what_is_lost(tmp_path):
  done = subprocess.run(
    [sys.executable, '-c', _LOSS], cwd=tmp_path, check=False, capture_output=True, text=True
  )
  assert done.returncode == processes.FAILURE_EXIT, done.stderr
  lost = '30 updates and 600 steps are lost because no whole checkpoint is on the disk'
  assert f'Lost: {lost}' in done.stdout and f'error in learner/0: {lost}' in done.stderr
