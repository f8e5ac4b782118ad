"""The last step of a launch on Vertex AI, the only one that needs an account: images, then job."""
from __future__ import annotations

import subprocess

from google.api_core import exceptions as api_exceptions
from google.auth import exceptions as auth_exceptions
from google.cloud import aiplatform
from xmanager.cloud import build_image
from xmanager.cloud import docker_lib

from seed_acme import types
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import job as vertex_job


def submit(job: vertex_job.Job, cloud: cloud_lib.CloudConfig) -> tuple[str, str]:
  """Builds and pushes the images, and hands in the job; returns its name and its page.

  Docker builds where it runs here, else Cloud Build, which pushes by itself.
  """
  bucket = cloud_lib.bucket_name(cloud)
  has_docker = docker_lib.is_docker_installed()
  try:
    for pool in job.pools:
      _make_image(pool, cloud, bucket, has_docker)
    aiplatform.init(project=cloud.project, location=cloud.region)
    custom_job = aiplatform.CustomJob(
        display_name=job.display_name, worker_pool_specs=job.specs, project=cloud.project,
        location=cloud.region, staging_bucket=f'gs://{bucket}')
    custom_job.submit(service_account=cloud.service_account or None)
  except (api_exceptions.GoogleAPICallError, auth_exceptions.GoogleAuthError) as error:
    reason = ' '.join(str(getattr(error, 'message', '') or error).split())[:300]
    raise types.UserError(f'Google Cloud refuses: {reason}; --dry_run lists what it takes, with '
                          'the commands that give it') from error
  return custom_job.resource_name, custom_job._dashboard_uri() or ''


def _make_image(pool: vertex_job.Pool, cloud: cloud_lib.CloudConfig, bucket: str,
                has_docker: bool) -> None:
  try:
    build_image.build_by_dockerfile(
        str(pool.context), str(pool.context / 'Dockerfile'), pool.image, cloud.project, bucket)
    if has_docker:
      build_image.push(pool.image)
  except (RuntimeError, subprocess.CalledProcessError) as error:
    raise types.UserError(f'the image {pool.image} was not built or not pushed ({error}): what is '
                          f'printed above says why; its context is {pool.context}') from error
