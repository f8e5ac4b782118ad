"""The last step of a launch: images built by Docker or Cloud Build, and a submitted job.

The account is replaced by a `docker` on the PATH, and by stand-ins for Google's clients.
"""

import json
import pathlib
import tempfile

from google.api_core import exceptions as api_exceptions
from google.auth import exceptions as auth_exceptions
from googleapiclient import errors as http_errors
import httplib2
import pytest
import requests

from seed_acme import types
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import missing as vertex_missing

pytestmark = pytest.mark.slow


@pytest.fixture(name='vertex_submit', scope='module')
def _vertex_submit():
  """The module, which loads Vertex AI's library: a quarter of what collecting all tests takes."""
  from seed_acme.programs.vertex import submit

  return submit


def test_what_cloud_build_takes_is_listed_where_it_builds(without_docker):
  cloud = cloud_lib.CloudConfig(project='my-project-123', bucket='gs://bucket')
  found = {need.name: need for need in vertex_missing.needs(cloud, [])}
  assert 'Docker login' not in found
  enable, permit = found['Cloud Build'].commands
  assert enable.startswith('gcloud services enable cloudbuild.googleapis.com --project=my-project')
  assert permit.endswith('--role=roles/cloudbuild.builds.builder')
  assert '-compute@developer.gserviceaccount.com' in permit


class _CustomJob:
  """A stand-in for Vertex AI's job. made: the arguments of all jobs."""

  made: list = []
  resource_name = 'projects/1/locations/r/customJobs/42'

  def __init__(self, **arguments):
    self.arguments = arguments

  def submit(self, **arguments):
    self.made.append({**self.arguments, **arguments})

  def _dashboard_uri(self):
    return 'https://page'


@pytest.fixture
def job(tmp_path, monkeypatch, vertex_submit):
  """Returns a job of two pools, and a Vertex AI that accepts everything."""
  monkeypatch.setattr(_CustomJob, 'made', [])
  monkeypatch.setattr(vertex_submit.aiplatform, 'init', lambda **_: None)
  monkeypatch.setattr(vertex_submit.aiplatform, 'CustomJob', _CustomJob)
  machine = cloud_lib.parse_machine('n1-standard-4', '')
  pools = []
  for group in ('learner', 'actor'):
    context = tmp_path / group
    context.mkdir()
    (context / 'job.pkl').write_text('the token')
    pools.append(vertex_submit.vertex_job.Pool(group, 1, machine, f'host/p/r/x-{group}:1', context))
  return vertex_submit.vertex_job.Job('name', ['specs'], tuple(pools), tmp_path / 'job.json')


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


def test_docker_builds_and_pushes_and_the_job_is_handed_in(job, vertex_submit, docker):
  assert vertex_submit.submit(job, _CONFIG) == (_CustomJob.resource_name, 'https://page')
  expected = ['info']
  for pool in job.pools:
    expected += [f'build --tag {pool.image} {pool.context}', f'push {pool.image}']
  assert docker.read_text().splitlines() == expected
  assert _CustomJob.made == _HANDED_IN


def test_a_push_that_fails_is_one_line_and_no_job(job, vertex_submit, docker, monkeypatch):
  monkeypatch.setenv('PUSH_EXIT', '1')
  with pytest.raises(types.UserError) as caught:
    vertex_submit.submit(job, _CONFIG)
  assert str(caught.value).startswith('docker push host/p/r/x-learner:1: ended with 1; what is')
  assert '\n' not in str(caught.value) and not _CustomJob.made


class _Bucket:
  """A stand-in for Cloud Storage: client, bucket and object in one."""

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
  """A stand-in for Cloud Build: `projects().builds().create(...).execute()`."""

  def __init__(self, status):
    self.answer = {
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
    return self.answer


@pytest.fixture
def cloud_build(monkeypatch, tmp_path, without_docker, vertex_submit):
  """Returns (bucket, builds) in place of Google's; temporary files go to `scratch`."""
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


def test_cloud_build_leaves_no_token_behind(job, vertex_submit, cloud_build, tmp_path):
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
def test_a_cloud_build_that_refuses_is_one_line(
  job, vertex_submit, cloud_build, tmp_path, error, reason
):
  bucket, builds = cloud_build
  builds.error = error
  with pytest.raises(types.UserError) as caught:
    vertex_submit.submit(job, _CONFIG)
  message = str(caught.value)
  assert message.startswith('Cloud Build cannot be used: ') and reason in message
  assert '\n' not in message and '--dry_run lists what it takes' in message
  assert bucket.uploaded and not bucket.kept and _is_clean(tmp_path) and not _CustomJob.made


def test_a_build_that_fails_says_where_to_look(
  job, vertex_submit, cloud_build, tmp_path, monkeypatch
):
  bucket, builds = cloud_build
  builds.answer['status'] = 'FAILURE'
  with pytest.raises(types.UserError, match=r'x-learner:1 .*the page of the build, above'):
    vertex_submit.submit(job, _CONFIG)
  assert not bucket.kept and _is_clean(tmp_path)


def test_a_context_that_cannot_be_deleted_is_named(
  job, vertex_submit, cloud_build, tmp_path, capsys
):
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
def test_a_vertex_ai_that_refuses_is_one_line(job, vertex_submit, docker, monkeypatch, error):
  def refuse(*_, **__):
    raise error

  monkeypatch.setattr(_CustomJob, 'submit', refuse)
  with pytest.raises(types.UserError, match=r'^Vertex AI cannot be used: .*denied.*--dry_run'):
    vertex_submit.submit(job, _CONFIG)
