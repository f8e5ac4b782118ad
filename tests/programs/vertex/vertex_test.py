"""`--launch=vertex_ai` without an account: dry run, wrong input, and the replicas themselves."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from typing import NamedTuple

import launchpad as lp
import pytest

from seed_acme import saved_config
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs import processes
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import missing as vertex_missing

_URL = 'gs://bucket/vertex/run'
_STEPS = 600_000  # so many that the learner can be lost twice before its end
_VERTEX = ('train', '--launch=vertex_ai', '--config=catch_vtrace')
_CLOUD = ('--cloud.project=my-project-123', '--cloud.bucket=gs://bucket')
_HANG_S = 600.0
# Which modules each process of a replica had loaded, and from where, written at its end.
_SITE = """
import atexit, json, os, sys

def write():
  files = sorted({getattr(module, '__file__', None) or '' for name, module in sys.modules.items()
                  if name.partition('.')[0] == 'seed_acme'} - {''})
  names = [name for name in ('tensorflow', 'reverb', 'xmanager') if name in sys.modules]
  with open(os.path.join(os.environ['LOADED'], str(os.getpid())), 'w') as file:
    json.dump({'kind': os.environ['SEED_ACME_NODE'], 'files': files, 'heavy': names}, file)

atexit.register(write)
"""


class DryRun(NamedTuple):
  folder: pathlib.Path
  stdout: str

  def spec(self):
    return json.loads((self.folder / 'job.json').read_text())


@pytest.fixture(scope='module')
def dry_run(tmp_path_factory):
  """Of a small run on Catch with evaluation."""
  folder = tmp_path_factory.mktemp('dry') / 'out'
  done = subprocess.run(
    [
      pathlib.Path(sys.executable).with_name('seed-acme'),
      *_VERTEX,
      *_CLOUD,
      '--dry_run',
      f'--out={folder}',
      f'--run_dir={_URL}',
      '--config.num_actors=2',
      '--config.environments_per_actor=32',
      '--config.num_evaluation_environments=2',
      f'--config.total_steps={_STEPS}',
      '--config.checkpoint.period_s=1',
      '--cloud.learner=n1-standard-8',
    ],
    cwd=folder.parent,
    capture_output=True,
    text=True,
    timeout=_HANG_S,
    check=False,
    env={**os.environ, 'HOME': str(folder.parent)},
  )
  assert done.returncode == 0, done.stderr
  assert not done.stderr, done.stderr
  assert sorted(path.name for path in folder.parent.iterdir()) == ['out'], 'it left files'
  return DryRun(folder, done.stdout)


def test_the_job_has_the_learners_pool_first(dry_run):
  pools = dry_run.spec()['workerPoolSpecs']
  assert [pool['machineSpec'] for pool in pools] == [
    {'machineType': 'n1-standard-8'},
    {'machineType': 'n1-standard-4'},
  ]
  assert [pool['replicaCount'] for pool in pools] == ['1', '3']
  images = [pool['containerSpec']['imageUri'] for pool in pools]
  for image, group in zip(images, ('learner', 'actor')):
    assert re.fullmatch(
      r'us-central1-docker\.pkg\.dev/my-project-123/seed-acme/'
      rf'catch-vtrace-{group}:\d{{8}}-\d{{6}}',
      image,
    )


def test_nodes_of_one_machine_type_are_pools_of_their_own_and_the_learner_is_first(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  same = [f'--cloud.{kind}=n1-standard-4' for kind in ('learner', 'replay', 'actors')]
  assert (
    cli.main(
      [
        *_VERTEX,
        *_CLOUD,
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


def test_it_says_what_would_run_and_what_is_missing(dry_run):
  for text in (
    'Vertex AI, project my-project-123, region us-central1',
    f'Run: {_URL}',
    'Pool 0: 1 x n1-standard-8: learner',
    'Pool 1: 3 x n1-standard-4: actors, 32 environments each, 64 in all',
    'credentials [',
    'APIs [not checked]',
    'gcloud services enable aiplatform.googleapis.com',
    'image repository [not checked]',
    'gcloud artifacts repositories create seed-acme',
    'bucket [not checked]',
    'gcloud storage buckets create gs://bucket',
    'quota [not checked]: cpus >= 20',
    'gcloud alpha services quota list',
  ):
    assert text in dry_run.stdout, dry_run.stdout


def test_a_context_holds_the_clean_package_its_pins_and_the_nodes(dry_run):
  for group in ('learner', 'actor'):
    app = dry_run.folder / group / cloud_image.APP
    assert {path.name for path in app.iterdir()} == {
      'seed_acme',
      'job.pkl',
      'process_entry.py',
      'requirements.txt',
    }
    assert 'dm-launchpad==0.5.1' in (app / 'requirements.txt').read_text().splitlines()
    lines = (dry_run.folder / group / 'Dockerfile').read_text().splitlines()
    assert f'FROM {cloud_image.PYTHON_IMAGE}' in lines
    assert 'RUN python -m pip install --no-cache-dir -r requirements.txt' in lines
    entry = (dry_run.folder / group / 'entrypoint.sh').read_text()
    assert entry.splitlines()[-1] == 'exec python -m process_entry --data_file=job.pkl "$@"'


def _error(capsys, tmp_path, monkeypatch, *arguments):
  """The one line that wrong input is answered with, before anything is staged."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  assert cli.main([*_VERTEX, '--dry_run', *arguments]) == processes.USER_ERROR_EXIT
  lines = capsys.readouterr().err.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: '), lines
  assert not list(tmp_path.iterdir())
  return lines[0]


@pytest.mark.parametrize(
  'arguments, expected',
  [
    ((), 'needs --cloud.project'),
    (_CLOUD[:1], 'needs --cloud.bucket=gs://NAME'),
    ((*_CLOUD, '--cloud.learner=n1-standard-7'), "unknown machine type 'n1-standard-7'"),
    ((*_CLOUD, '--cloud.actors=n1-standard-4+1xH100'), "unknown accelerator 'H100'"),
    ((*_CLOUD, '--run_dir=runs/here'), '--run_dir=runs/here is not in a bucket'),
    ((*_CLOUD, '--config.transport.kind=courier'), 'use --config.transport.kind=grpc'),
    ((*_CLOUD, '--config.environment.id=cach'), 'cach'),
    ((*_CLOUD, '--config.environment.id=os.path:join'), 'os is on this machine only'),
    ((*_CLOUD, '--max_restarts=2'), '--max_restarts and --json are not for'),
    (('--launch=local_mp', *_CLOUD), '--dry_run, --out and --cloud.… are for'),
  ],
)
def test_wrong_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, expected):
  assert expected in _error(capsys, tmp_path, monkeypatch, *arguments)


def test_a_folder_with_files_is_not_written_into(capsys, tmp_path, monkeypatch):
  (tmp_path / 'mine').write_text('')
  monkeypatch.chdir(tmp_path)
  assert cli.main([*_VERTEX, *_CLOUD, '--dry_run', f'--out={tmp_path}']) == 2
  assert 'is there already' in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ['mine']


def test_without_credentials_nothing_is_launched(capsys, tmp_path, monkeypatch):
  monkeypatch.setenv('CLOUDSDK_CONFIG', str(tmp_path))
  monkeypatch.delenv('GOOGLE_APPLICATION_CREDENTIALS', raising=False)
  monkeypatch.setattr(vertex_missing, '_is_google_machine', lambda: False)
  assert cli.main([*_VERTEX, *_CLOUD]) == processes.USER_ERROR_EXIT
  error = capsys.readouterr().err
  assert error.startswith('error: credentials: ')
  assert 'gcloud auth application-default login' in error


def _program(*groups):
  program = lp.Program('test')
  for group, number in groups:
    for _ in range(number):
      program.add_node(lp.PyNode(print), group)
  return program


@pytest.mark.parametrize(
  'groups, expected',
  [
    (
      [('learner', 1), ('a', 1), ('b', 1), ('c', 1), ('d', 1)],
      'has 5 kinds of node (learner, a, b, c, d); Vertex AI takes at most 4',
    ),
    ([('actor', 2)], "needs a group 'learner' of one node"),
    ([('learner', 2)], "needs a group 'learner' of one node"),
  ],
)
def test_programs_that_vertex_ai_cannot_run(groups, expected):
  from seed_acme.programs.vertex import job as vertex_job  # which loads xmanager

  with pytest.raises(types.UserError) as caught:
    vertex_job.check_program(_program(*groups))
  assert expected in str(caught.value)


def test_a_node_has_one_port():
  from seed_acme.programs.vertex import job as vertex_job

  program = _program(('learner', 1))
  [node] = program.get_all_nodes()
  for name in ('one', 'two'):
    node.allocate_address(lp.Address(name))
  with pytest.raises(types.UserError, match="group 'learner' has several addresses"):
    vertex_job.check_program(program)


# The real launch but for its last step.
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
    [sys.executable, '-c', _LAUNCH, *_VERTEX, *_CLOUD, f'--run_dir={url}', *arguments],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=_HANG_S,
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


class Replicas:
  """Every container of the job as a process of this machine, started by its own entry script.

  Its folder is the context's; of the checkout nothing is on its path.
  """

  def __init__(self, dry_run, storage, folder):
    self._dry_run = dry_run
    self._folder = folder
    self._loaded = folder / 'loaded'
    self._loaded.mkdir()
    (folder / 'site').mkdir()
    (folder / 'site' / 'sitecustomize.py').write_text(_SITE)
    self._storage = storage
    pools = dry_run.spec()['workerPoolSpecs']
    self._groups = [
      re.search(r'-([a-z]+):', pool['containerSpec']['imageUri'])[1] for pool in pools
    ]
    self._cluster = {
      f'workerpool{i}': [f'localhost:{_free_port()}' for _ in range(int(pool['replicaCount']))]
      for i, pool in enumerate(pools)
    }
    self.processes = {}

  def start_all(self):
    for index, (pool, addresses) in enumerate(self._cluster.items()):
      for replica in range(len(addresses)):
        self.start(pool, self._groups[index], replica)

  def start(self, pool, group, replica):
    context = self._dry_run.folder / group
    app = context / cloud_image.APP
    task = {'type': pool, 'index': replica}
    variables = {
      'PATH': f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}',
      'HOME': str(self._folder),
      'TMPDIR': str(self._folder),
      'LOADED': str(self._loaded),
      'PYTHONPATH': f'{app}:{self._folder / "site"}',
      'CLOUD_ML_JOB_ID': '42',
      'CLUSTER_SPEC': json.dumps({'cluster': self._cluster, 'task': task}),
      **self._storage.environment,
      **dict(re.findall(r'^ENV (\w+)="(.*)"$', (context / 'Dockerfile').read_text(), re.M)),
    }
    with open(self._folder / f'{group}.{replica}.log', 'a') as log:
      self.processes[group, replica] = subprocess.Popen(
        ['bash', str(context / 'entrypoint.sh')],
        cwd=app,
        env=variables,
        stdout=log,
        stderr=log,
        start_new_session=True,
      )

  def wait(self):
    """Exit codes by group and number."""
    give_up = time.monotonic() + _HANG_S
    try:
      return {
        key: process.wait(max(1.0, give_up - time.monotonic()))
        for key, process in self.processes.items()
      }
    except subprocess.TimeoutExpired as error:
      raise AssertionError(f'{error}\n{self.logs()}') from error

  def terminate(self, group, replica):
    """SIGTERM, as a preemption does it; the exit code."""
    self.processes[group, replica].terminate()
    return self.processes[group, replica].wait(_HANG_S)

  def log(self, group, replica):
    return (self._folder / f'{group}.{replica}.log').read_text()

  def logs(self):
    return '\n'.join(f'{path.name}\n{path.read_text()}' for path in self._folder.glob('*.log'))

  def loaded(self):
    return [json.loads(path.read_text()) for path in self._loaded.iterdir()]

  def kill(self):
    for process in self.processes.values():
      if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
      process.wait()


def _free_port():
  with socket.socket() as probe:
    probe.bind(('localhost', 0))
    return probe.getsockname()[1]


@pytest.fixture
def replicas(dry_run, storage, tmp_path):
  started = Replicas(dry_run, storage, tmp_path)
  yield started
  started.kill()


# A node that is stopped, or not, after Launchpad has set its alarm, and whose end takes long.
_END = """
import atexit, pathlib, signal, sys, time
from seed_acme import run_directory
from seed_acme.programs.vertex import node

def body(run):
  atexit.register(time.sleep, 2)
  signal.alarm(1)
  return sys.argv[1] == 'over'

node._run(run_directory.RunDirectory(pathlib.Path('run')), body)
"""


@pytest.mark.parametrize('how, code', [('over', 0), ('stopped', 143)])
def test_the_exit_code_says_whether_the_run_is_over(tmp_path, how, code):
  done = subprocess.run([sys.executable, '-c', _END, how], cwd=tmp_path, check=False)
  assert done.returncode == code


@pytest.mark.processes
def test_a_replica_that_waits_for_the_learner_ends_at_once_when_it_is_stopped(replicas, until):
  replicas.start('workerpool1', 'actor', 0)
  until(lambda: 'waiting for the inference server' in replicas.log('actor', 0), 'its message')
  assert replicas.terminate('actor', 0) == 143, replicas.logs()
  assert 'Traceback' not in replicas.log('actor', 0)
  assert 'Killing' not in replicas.log('actor', 0), 'Launchpad lost its patience'


@pytest.mark.scale
@pytest.mark.timeout(1500)
def test_the_replicas_train_to_the_end_and_survive_losses_and_stops(
  dry_run, replicas, storage, until
):
  def read(name):
    path = storage.path(f'{_URL}/{name}')
    return json.loads(path.read_text()) if path.exists() else {}

  def saved():
    """Updates of the newest whole checkpoint in the bucket."""
    found = [
      re.fullmatch(r'checkpoints/(\d+)(\.again)?/meta\.json', name) for name in storage.names(_URL)
    ]
    return max([int(match[1]) for match in found if match], default=0)

  def wait_for_checkpoint(since):
    learner = replicas.processes['learner', 0]
    until(lambda: saved() > since or learner.poll() is not None, 'a checkpoint', _HANG_S)
    assert learner.poll() is None, replicas.logs()

  replicas.start_all()
  wait_for_checkpoint(0)
  assert replicas.terminate('actor', 0) == 143, replicas.logs()
  replicas.start('workerpool1', 'actor', 0)  # Vertex AI starts a container anew, in its place
  # Logs are copied every ten seconds; those since then are lost by a kill.
  until(lambda: 'logs/learner/0' in storage.names(_URL), 'the log of the learner', _HANG_S)
  replicas.processes['learner', 0].kill()
  replicas.processes['learner', 0].wait()
  updates = saved()
  replicas.start('workerpool0', 'learner', 0)
  wait_for_checkpoint(updates)
  assert replicas.terminate('learner', 0) == 143, replicas.logs()
  stopped = read('status.json')
  assert read('summary.json')['status'] == stopped['status'] == 'stopped'
  assert saved() == stopped['updates'] > updates
  assert 0 < stopped['agent_steps'] < _STEPS, 'it was over too soon for this test'
  assert 'lock.json' not in storage.names(_URL)
  replicas.start('workerpool0', 'learner', 0)
  assert set(replicas.wait().values()) == {0}, replicas.logs()
  final = read('status.json')
  assert final['status'] == 'finished' and final['agent_steps'] >= _STEPS
  assert final['resumptions'] == 2
  assert final['episode_return_last_100'] > 0.5, 'it did not learn'
  assert final['evaluation_return'] is not None
  assert read('summary.json')['status'] == 'finished'
  assert read('summary.json')['agent_steps'] == final['agent_steps']
  names = storage.names(_URL)
  assert {'config.json', 'metrics.csv', 'plot.png'} <= set(names)
  assert not {'lock.json', 'failure.json'} & set(names)
  assert any(name.startswith('tensorboard/events') for name in names)
  assert {name for name in names if name.startswith('logs/')} == {
    'logs/attempt_1/learner/0',
    'logs/attempt_2/learner/0',
    'logs/learner/0',
  }
  assert ' of 600k steps ' in storage.path(f'{_URL}/logs/learner/0').read_text()
  _check_loaded(dry_run, replicas.loaded())
  _start_once_more(replicas, storage, final)


def _start_once_more(replicas, storage, final):
  """The learner was lost after its last checkpoint: what it did not come to is made good."""
  for name in ('summary.json', 'plot.png'):
    storage.path(f'{_URL}/{name}').unlink()
  replicas.start_all()
  assert set(replicas.wait().values()) == {0}, replicas.logs()
  summary = json.loads(storage.path(f'{_URL}/summary.json').read_text())
  assert summary['status'] == 'finished' and summary['agent_steps'] == final['agent_steps']
  assert {'plot.png', 'logs/attempt_3/learner/0'} <= set(storage.names(_URL))
  assert 'lock.json' not in storage.names(_URL)


def _check_loaded(dry_run, loaded):
  """All code came from the contexts, and actors stayed light."""
  by_kind = {'learner': [], 'actor_supervisor': [], 'actor': []}
  for record in loaded:
    by_kind[record['kind']].append(record)
    group = 'learner' if record['kind'] == 'learner' else 'actor'
    app = str(dry_run.folder / group / cloud_image.APP)
    assert record['files'] and all(name.startswith(app) for name in record['files'])
    assert record['heavy'] == (['tensorflow', 'reverb'] if group == 'learner' else [])
  assert all(by_kind.values())
