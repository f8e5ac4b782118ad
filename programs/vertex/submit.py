"""The last step of a launch on Vertex AI, the only one that needs an account: images, then job."""

from __future__ import annotations

import pathlib
import shlex
import subprocess

from google.api_core import exceptions as api_exceptions
from google.auth import exceptions as auth_exceptions
from google.cloud import aiplatform
from google.cloud.storage import client as storage_client
from xmanager import xm_local  # noqa: F401 - before its own parts, which import each other
from xmanager.cloud import auth
from xmanager.cloud import cloud_build

from seed_acme import types
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import job as vertex_job
from seed_acme.programs.vertex import missing as vertex_missing

_CLOUD_BUILD_S = 3600  # an image with CUDA and TensorFlow takes minutes
# Errors of Google's libraries, the older two of which xmanager brings; those of requests and of
# sockets are OSError.
_ERRORS = (
  api_exceptions.GoogleAPIError,
  auth_exceptions.GoogleAuthError,
  auth.errors.HttpError,
  cloud_build.discovery.httplib2.HttpLib2Error,
  OSError,
)
_MAX_REASON = 300  # characters


def submit(job: vertex_job.Job, cloud: cloud_lib.CloudConfig) -> tuple[str, str]:
  """Builds and pushes the images, and submits the job; returns its name and its page.

  Docker builds if it runs here; otherwise Cloud Build does, and pushes, too.
  """
  has_docker = vertex_missing.has_docker()
  print(
    f'Images: by {"Docker" if has_docker else "Cloud Build, since no Docker engine answers"} here',
    flush=True,
  )
  for pool in job.pools:
    if has_docker:
      _docker('build', '--tag', pool.image, str(pool.context))
      _docker('push', pool.image)
    else:
      _build_in_cloud(pool, cloud)
  bucket = cloud_lib.bucket_name(cloud)
  try:
    aiplatform.init(project=cloud.project, location=cloud.region)
    custom_job = aiplatform.CustomJob(
      display_name=job.display_name,
      worker_pool_specs=job.specs,
      project=cloud.project,
      location=cloud.region,
      staging_bucket=f'gs://{bucket}',
    )
    custom_job.submit(service_account=cloud.service_account or None)
  except _ERRORS as error:
    raise _refused('Vertex AI', error) from error
  return custom_job.resource_name, custom_job._dashboard_uri() or ''


def _docker(*arguments: str) -> None:
  try:
    subprocess.run(['docker', *arguments], check=True)
  except (subprocess.CalledProcessError, OSError) as error:
    how = str(error)
    if isinstance(error, subprocess.CalledProcessError):
      how = f'ended with {error.returncode}'
    raise types.UserError(
      f'{shlex.join(["docker", *arguments])}: {how}; what is printed above says why; '
      '--dry_run lists what it takes, and keeps the folders that images are '
      'built from'
    ) from error


def _build_in_cloud(pool: vertex_job.Pool, cloud: cloud_lib.CloudConfig) -> None:
  try:
    builder = _CloudBuild(
      cloud.project,
      cloud_lib.bucket_name(cloud),
      cloud_build_timeout_seconds=_CLOUD_BUILD_S,
      use_cloud_build_cache=False,
      use_kaniko=False,
      kaniko_cache_ttl='',
    )
    name = pool.image.rpartition('/')[2].partition(':')[0]
    builder.build_docker_image(pool.image, str(pool.context), name)
  except _ERRORS as error:
    raise _refused('Cloud Build', error) from error
  except RuntimeError as error:  # a build that began has failed
    raise types.UserError(
      f'Cloud Build did not make {pool.image} ({error}): the page of the build, above, says why'
    ) from error


def _refused(who: str, error: Exception) -> types.UserError:
  reason = getattr(error, 'message', '') or getattr(error, 'reason', '') or error
  return types.UserError(
    f'{who} cannot be used: {" ".join(str(reason).split())[:_MAX_REASON]}; --dry_run lists what '
    'it takes, with the commands that give it'
  )


class _CloudBuild(cloud_build.Client):
  """xmanager's client, which here deletes the context with the run's token and the user's code."""

  def __init__(self, *args: object, **kwargs: object):
    super().__init__(*args, **kwargs)
    self._uploaded = ''

  def upload_tar_to_storage(self, archive_path: str, destination_name: str) -> None:
    self._uploaded = destination_name
    try:
      super().upload_tar_to_storage(archive_path, destination_name)
    finally:
      pathlib.Path(archive_path).unlink()

  def build_docker_image(self, image: str, directory: str, upload_name: str) -> str:
    try:
      return super().build_docker_image(image, directory, upload_name)
    finally:
      if self._uploaded:
        self._delete_upload()

  def _delete_upload(self) -> None:
    try:
      client = storage_client.Client(project=self.project, credentials=self.credentials)
      client.bucket(self.bucket).blob(self._uploaded).delete()
    except api_exceptions.NotFound:
      pass  # the upload itself failed
    except _ERRORS as error:
      url = f'gs://{self.bucket}/{self._uploaded}'
      print(
        f'Warning: what the image was built from stays in the bucket ({error}); it holds the '
        f'token of the run: {shlex.join(["gcloud", "storage", "rm", url])}',
        flush=True,
      )
