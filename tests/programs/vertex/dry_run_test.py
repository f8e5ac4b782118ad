"""Vertex AI without an account: a learner with accelerators, wrong input, and the last step.

What stands for the account here: a `docker` on the PATH, and Google's clients.
"""

import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

from google.api_core import exceptions as api_exceptions
from google.auth import exceptions as auth_exceptions
from googleapiclient import errors as http_errors
import httplib2
import launchpad as lp
import pytest
import requests

from seed_acme import types
from seed_acme.programs import cli
from seed_acme.programs import distributed
from seed_acme.programs import processes
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import command as vertex_command
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import job as vertex_job
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import submit as vertex_submit

_ROOT = pathlib.Path(__file__).parents[3]
_BIN = pathlib.Path(sys.executable).parent
_VERTEX = ('train', '--launch=vertex_ai', '--config=catch_vtrace')
_CLOUD = ('--cloud.project=my-project-123', '--cloud.bucket=gs://bucket')
_MORE = ('my-simulator==1.0', 'other[extra]==2.0', 'git+https://example.org/x.git', 'plain>=3')


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(signal, 'signal', lambda *_: None)


@pytest.fixture(scope='module', params=['n1-standard-8+1xT4', 'a2-highgpu-1g'])
def with_accelerator(request, tmp_path_factory):
  """(machine, folder, output) of a dry run whose learner has an accelerator."""
  folder = tmp_path_factory.mktemp('dry')
  (folder / 'more.txt').write_text('\n'.join(_MORE) + '\n')
  done = subprocess.run(
    [
      _BIN / 'seed-acme',
      *_VERTEX,
      *_CLOUD,
      '--dry_run',
      '--out=out',
      f'--cloud.learner={request.param}',
      '--cloud.requirements=more.txt',
    ],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=300,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return request.param, folder / 'out', done.stdout


def _app(folder, group):
  return folder / group / cloud_image.APP


def test_the_learner_gets_the_accelerator_and_an_image_with_cuda(with_accelerator):
  machine, folder, stdout = with_accelerator
  learner, actors = json.loads((folder / 'job.json').read_text())['workerPoolSpecs']
  type_, accelerator = {
    'n1-standard-8+1xT4': ('n1-standard-8', 'T4'),
    'a2-highgpu-1g': ('a2-highgpu-1g', 'A100'),
  }[machine]
  assert learner['machineSpec'] == {
    'machineType': type_,
    'acceleratorType': f'NVIDIA_TESLA_{accelerator}',
    'acceleratorCount': 1,
  }
  assert actors['machineSpec'] == {'machineType': 'n1-standard-4'}
  assert f'nvidia_{accelerator.lower()}_gpus >= 1' in stdout
  for group, base, tensorflow in (
    ('learner', cloud_image.CUDA_IMAGE, 'tensorflow'),
    ('actor', cloud_image.PYTHON_IMAGE, 'tensorflow-cpu'),
  ):
    lines = (folder / group / 'Dockerfile').read_text().splitlines()
    assert [line for line in lines if line.startswith('FROM ')] == [f'FROM {base}']
    assert (f'COPY --from={cloud_image.INTERPRETER_IMAGE} /usr/local /usr/local' in lines) == (
      group == 'learner'
    )
    pins = (_app(folder, group) / 'requirements.txt').read_text().splitlines()
    assert [
      pin
      for pin in pins
      if pin.startswith('tensorflow')
      and not pin.startswith(('tensorflow-io', 'tensorflow-estimator'))
    ] == [f'{tensorflow}==2.8.4']
  assert cloud_image.CUDA_IMAGE.startswith('nvidia/cuda:')


def test_hadolint_finds_nothing_in_what_is_really_staged(with_accelerator):
  files = sorted(with_accelerator[1].glob('*/Dockerfile'))
  assert [file.parent.name for file in files] == ['actor', 'learner']
  for file in files:
    done = subprocess.run(
      [_BIN / 'hadolint', '--no-color', '--config', '/dev/null', file],
      capture_output=True,
      text=True,
      check=False,
    )
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize('group', ['learner', 'actor'])
def test_what_pip_builds_with_is_pinned_too(with_accelerator, group, tmp_path):
  """setuptools above all: the newest does not build every package of that age."""
  folder = with_accelerator[1]
  lines = (folder / group / 'Dockerfile').read_text().splitlines()
  [choose] = [line for line in lines if line.startswith('RUN grep')]
  install = lines.index('RUN python -m pip install --no-cache-dir -r requirements.txt')
  file = choose.rpartition(' ')[2]
  assert lines.index(choose) < lines.index(f'ENV PIP_CONSTRAINT={file}') < install
  script = choose.removeprefix('RUN ').replace(file, str(tmp_path / 'pins.txt'))
  subprocess.run(['sh', '-e', '-c', script], cwd=_app(folder, group), check=True)
  pins = (tmp_path / 'pins.txt').read_text().splitlines()
  given = (_app(folder, group) / 'requirements.txt').read_text().splitlines()
  assert given[-len(_MORE) :] == list(_MORE)
  assert pins == given[: -len(_MORE)] + [
    'my-simulator==1.0'
  ]  # the rest pip takes for no constraint
  assert any(re.fullmatch(r'setuptools==\d+(\.\d+)*', pin) for pin in pins)


def _error(capsys, folder, monkeypatch, *arguments):
  """The one line that wrong input is answered with; nothing is left in the folder."""
  monkeypatch.chdir(folder)
  before = sorted(folder.rglob('*'))
  assert cli.main([*_VERTEX, *_CLOUD, *arguments]) == processes.USER_ERROR_EXIT
  lines = capsys.readouterr().err.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: '), lines
  assert sorted(folder.rglob('*')) == before
  return lines[0]


@pytest.mark.parametrize(
  'arguments, expected',
  [
    (('--dry_run', '--run_dir=gs://'), "--run_dir='gs:' is not of the right form: write gs://"),
    (('--dry_run', '--run_dir=gs://Bad_Bucket!!'), "--run_dir='gs://Bad_Bucket!!' is not of the"),
    (
      ('--dry_run', '--cloud.replay=n1-standard-4'),
      '--cloud.replay=n1-standard-4: the learner holds the replay of this run',
    ),
    (('--out=here',), '--out=here is for --dry_run'),
    (('--dry_run', '--cloud.code=code'), 'dangling.py cannot go into an image: No such file'),
    (('--dry_run', '--cloud.code=loop'), 'cannot go into an image: Too many levels of symbolic'),
    (
      ('--dry_run', '--cloud.requirements=binary.txt'),
      '--cloud.requirements=binary.txt cannot be read: it is no text',
    ),
  ],
)
def test_wrong_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, expected):
  for name, target in (('code/dangling.py', 'nowhere'), ('loop/again', '../loop')):
    path = tmp_path / name
    path.parent.mkdir()
    path.symlink_to(target)
  (tmp_path / 'binary.txt').write_bytes(b'\xff\xfe\x00')
  assert expected in _error(capsys, tmp_path, monkeypatch, *arguments)


def _program(*groups):
  program = lp.Program('test')
  for group in groups:
    program.add_node(lp.PyNode(print), group)
  return program


@pytest.mark.parametrize('arguments', [('--dry_run',), ('--dry_run', '--out=new'), ()])
def test_five_kinds_of_node_are_refused_before_anything_is_staged(
  capsys, tmp_path, monkeypatch, arguments
):
  program = _program('learner', 'a', 'b', 'c', 'd')
  monkeypatch.setattr(distributed, 'make_program', lambda *_, **__: program)
  monkeypatch.setattr(vertex_command, '_stage', lambda *_: pytest.fail('it stages'))
  error = _error(capsys, tmp_path, monkeypatch, *arguments)
  assert 'has 5 kinds of node (learner, a, b, c, d); Vertex AI takes at most 4' in error


def test_a_missing_xmanager_is_installed_by_a_command_that_works(capsys, tmp_path, monkeypatch):
  """The package is on no index: only from the checkout."""
  find_spec = vertex_command.importlib.util.find_spec
  monkeypatch.setattr(
    vertex_command.importlib.util,
    'find_spec',
    lambda name, *rest: None if name == 'xmanager' else find_spec(name, *rest),
  )
  error = _error(capsys, tmp_path, monkeypatch, '--dry_run')
  command = "PIP_CONSTRAINT=constraints.txt pip install -e '.[vertex]'"
  assert 'make setup' in error and command in error
  assert 'vertex]' in (_ROOT / 'scripts' / 'setup.sh').read_text()


@pytest.fixture
def docker(tmp_path, monkeypatch):
  """A `docker` that answers as version 28 does and writes down how it was called."""
  folder = tmp_path / 'bin'
  folder.mkdir()
  (folder / 'docker').write_text(
    '#!/bin/sh\n'
    f'echo "$@" >> {folder}/calls\n'
    'case $1 in push) echo "1: digest: sha256:0123 size: 2206"; exit ${PUSH_EXIT:-0};; esac\n'
  )
  (folder / 'docker').chmod(0o755)
  monkeypatch.setenv('PATH', f'{folder}:/usr/bin:/bin')
  return folder / 'calls'


@pytest.fixture
def without_docker(monkeypatch):
  monkeypatch.setattr(vertex_missing, 'has_docker', lambda: False)


def test_a_docker_without_login_is_said_before_images_are_built(
  capsys, tmp_path, monkeypatch, docker
):
  monkeypatch.setenv('GOOGLE_AUTH_TOKEN_FOR_TESTING', 'x')
  monkeypatch.setenv('DOCKER_CONFIG', str(tmp_path / 'docker'))
  (tmp_path / 'work').mkdir()
  error = _error(capsys, tmp_path / 'work', monkeypatch)
  assert 'gcloud auth configure-docker us-central1-docker.pkg.dev' in error
  assert docker.read_text().splitlines() == ['info']


def test_what_cloud_build_takes_is_listed_where_it_builds(without_docker):
  cloud = cloud_lib.CloudConfig(project='my-project-123', bucket='gs://bucket')
  found = {need.name: need for need in vertex_missing.needs(cloud, [])}
  assert 'Docker login' not in found
  enable, permit = found['Cloud Build'].commands
  assert enable.startswith('gcloud services enable cloudbuild.googleapis.com --project=my-project')
  assert permit.endswith('--role=roles/cloudbuild.builds.builder')
  assert '-compute@developer.gserviceaccount.com' in permit


class _CustomJob:
  """Of Vertex AI. made: the arguments of all there were."""

  made: list = []
  resource_name = 'projects/1/locations/r/customJobs/42'

  def __init__(self, **arguments):
    self.arguments = arguments

  def submit(self, **arguments):
    self.made.append({**self.arguments, **arguments})

  def _dashboard_uri(self):
    return 'https://page'


@pytest.fixture
def job(tmp_path, monkeypatch):
  """Of two pools, to be handed to a Vertex AI that takes everything."""
  monkeypatch.setattr(_CustomJob, 'made', [])
  monkeypatch.setattr(vertex_submit.aiplatform, 'init', lambda **_: None)
  monkeypatch.setattr(vertex_submit.aiplatform, 'CustomJob', _CustomJob)
  machine = cloud_lib.parse_machine('n1-standard-4', '')
  pools = []
  for group in ('learner', 'actor'):
    context = tmp_path / group
    context.mkdir()
    (context / 'job.pkl').write_text('the token')
    pools.append(vertex_job.Pool(group, 1, machine, f'host/p/r/x-{group}:1', context))
  return vertex_job.Job('name', ['specs'], tuple(pools), tmp_path / 'job.json')


_CONFIG = cloud_lib.CloudConfig(project='p', bucket='gs://bucket/folder', region='r')
_HANDED_IN = [
  {
    'display_name': 'name',
    'worker_pool_specs': ['specs'],
    'project': 'p',
    'location': 'r',
    'staging_bucket': 'gs://bucket',
    'service_account': None,
  }
]


def test_docker_builds_and_pushes_and_the_job_is_handed_in(job, docker):
  assert vertex_submit.submit(job, _CONFIG) == (_CustomJob.resource_name, 'https://page')
  expected = ['info']
  for pool in job.pools:
    expected += [f'build --tag {pool.image} {pool.context}', f'push {pool.image}']
  assert docker.read_text().splitlines() == expected
  assert _CustomJob.made == _HANDED_IN


def test_a_push_that_fails_is_one_line_and_no_job(job, docker, monkeypatch):
  monkeypatch.setenv('PUSH_EXIT', '1')
  with pytest.raises(types.UserError) as caught:
    vertex_submit.submit(job, _CONFIG)
  assert str(caught.value).startswith('docker push host/p/r/x-learner:1: ended with 1; what is')
  assert '\n' not in str(caught.value) and not _CustomJob.made


class _Bucket:
  """Of Cloud Storage: its own client, bucket and object."""

  def __init__(self):
    self.uploaded, self.kept, self.on_delete = [], {}, None
    self._name = None

  def bucket(self, name):
    assert name == 'bucket'
    return self

  def blob(self, name):
    self._name = name
    return self

  def upload_from_filename(self, path):
    self.uploaded.append(self._name)
    self.kept[self._name] = pathlib.Path(path).read_bytes()

  def delete(self):
    if self.on_delete is not None:
      raise self.on_delete
    del self.kept[self._name]


class _Builds:
  """Of Cloud Build: `projects().builds().create(...).execute()`."""

  def __init__(self, status):
    self._answer = {
      'metadata': {'build': {'logUrl': 'https://log', 'id': '1'}},
      'logUrl': 'https://log',
      'status': status,
      'results': {'images': [{'name': 'x', 'digest': 'sha256:0'}]},
    }
    self.error = None
    self.bodies = []

  def projects(self):
    return self

  builds = projects

  def create(self, projectId, body):
    assert projectId == 'p'
    self.bodies.append(body)
    return self

  def get(self, **_):
    return self

  def execute(self):
    if self.error is not None:
      raise self.error
    return self._answer


@pytest.fixture
def cloud_build(monkeypatch, tmp_path, without_docker):
  """(bucket, builds) in place of Google's; temporary files go to `scratch`."""
  bucket, builds = _Bucket(), _Builds('SUCCESS')
  xm = vertex_submit.cloud_build
  scratch = tmp_path / 'scratch'
  scratch.mkdir()
  monkeypatch.setattr(tempfile, 'tempdir', str(scratch))
  monkeypatch.setattr(xm.auth, 'get_creds', lambda: None)
  monkeypatch.setattr(xm.storage, 'Client', lambda **_: bucket)
  monkeypatch.setattr(vertex_submit.storage_client, 'Client', lambda **_: bucket)
  monkeypatch.setattr(xm.discovery, 'build', lambda *_, **__: builds)
  monkeypatch.setattr(xm.time, 'sleep', lambda _: None)
  return bucket, builds


def _is_clean(tmp_path):
  return not list((tmp_path / 'scratch').iterdir())


def test_cloud_build_leaves_no_token_behind(job, cloud_build, tmp_path):
  bucket, builds = cloud_build
  vertex_submit.submit(job, _CONFIG)
  assert _CustomJob.made == _HANDED_IN
  assert [name.rpartition('/')[2] for name in bucket.uploaded] == [
    'x-learner-1.tar.gz',
    'x-actor-1.tar.gz',
  ]
  assert [body['source']['storageSource']['object'] for body in builds.bodies] == bucket.uploaded
  assert [body['images'] for body in builds.bodies] == [
    ['host/p/r/x-learner'],
    ['host/p/r/x-actor'],
  ]
  assert not bucket.kept and _is_clean(tmp_path)


def _http_error():
  content = json.dumps({'error': {'message': 'Cloud Build API has not been used in project p'}})
  return http_errors.HttpError(
    httplib2.Response({'status': '403', 'content-type': 'application/json'}), content.encode()
  )


@pytest.mark.parametrize(
  'error, reason',
  [
    (_http_error(), 'Cloud Build API has not been used in project p; --dry_run'),
    (api_exceptions.Forbidden('no access'), 'no access'),
    (api_exceptions.RetryError('gave up', None), 'gave up'),
    (auth_exceptions.RefreshError('expired'), 'expired'),
    (requests.exceptions.ConnectionError('no route\nto host'), 'no route to host'),
    (httplib2.ServerNotFoundError('no such server'), 'no such server'),
  ],
)
def test_a_cloud_build_that_refuses_is_one_line(job, cloud_build, tmp_path, error, reason):
  bucket, builds = cloud_build
  builds.error = error
  with pytest.raises(types.UserError) as caught:
    vertex_submit.submit(job, _CONFIG)
  message = str(caught.value)
  assert message.startswith('Cloud Build cannot be used: ') and reason in message
  assert '\n' not in message and '--dry_run lists what it takes' in message
  assert bucket.uploaded and not bucket.kept and _is_clean(tmp_path) and not _CustomJob.made


def test_a_build_that_fails_says_where_to_look(job, cloud_build, tmp_path, monkeypatch):
  bucket, builds = cloud_build
  builds._answer['status'] = 'FAILURE'
  with pytest.raises(types.UserError, match=r'x-learner:1 .*the page of the build, above'):
    vertex_submit.submit(job, _CONFIG)
  assert not bucket.kept and _is_clean(tmp_path)


def test_a_context_that_cannot_be_deleted_is_named(job, cloud_build, tmp_path, capsys):
  bucket, _ = cloud_build
  bucket.on_delete = api_exceptions.Forbidden('no delete')
  vertex_submit.submit(job, _CONFIG)
  out = capsys.readouterr().out
  for name in bucket.uploaded:
    assert f'gcloud storage rm gs://bucket/{name}' in out
  assert _is_clean(tmp_path)


@pytest.mark.parametrize(
  'error',
  [
    api_exceptions.PermissionDenied('denied'),
    api_exceptions.RetryError('denied', None),
    auth_exceptions.DefaultCredentialsError('denied'),
    requests.exceptions.ConnectionError('denied'),
  ],
)
def test_a_vertex_ai_that_refuses_is_one_line(job, docker, monkeypatch, error):
  def refuse(*_, **__):
    raise error

  monkeypatch.setattr(_CustomJob, 'submit', refuse)
  with pytest.raises(types.UserError, match=r'^Vertex AI cannot be used: .*denied.*--dry_run'):
    vertex_submit.submit(job, _CONFIG)


def test_the_printed_command_resumes_the_run(capsys, tmp_path, monkeypatch, without_docker):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv('GOOGLE_AUTH_TOKEN_FOR_TESTING', 'x')
  monkeypatch.setattr(vertex_command, '_check_resume', lambda *_: None)
  monkeypatch.setattr(vertex_submit, 'submit', lambda *_: ('projects/1/customJobs/42', 'page'))
  arguments = [
    *_VERTEX,
    *_CLOUD,
    '--config.name=two words'.replace(' ', '_'),
    '--config.num_actors=1',
  ]
  printed = []
  for _ in range(2):
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out.splitlines()
    [at] = [i for i, line in enumerate(out) if line.startswith('Resume')]
    words = shlex.split(out[at + 1])
    assert words[0].endswith('seed-acme')
    arguments = words[1:]
    printed.append((re.search(r'^Run: (.*)', '\n'.join(out), re.M)[1], arguments))
  (url, first), (url_again, second) = printed
  assert url == url_again and first == second and f'--run_dir={url}' in first
