"""The requirements to run a job on Vertex AI for real, and the commands that meet them.

Nothing here asks the network: a requirement that only an account can check is reported as not
checked.
"""

from __future__ import annotations

from collections.abc import Sequence
import json
import os
import pathlib
import shlex
import shutil
import subprocess
from typing import NamedTuple

from seed_acme.files import google_credentials
from seed_acme.programs.vertex import cloud as cloud_lib

READY, MISSING, UNCHECKED = 'ready', 'missing', 'not checked'
_DOCKER_S = 10.0
_CREDENTIALS, _LOGIN = 'credentials', 'Docker login'
_QUOTA = 'aiplatform.googleapis.com/custom_model_training'


class Need(NamedTuple):
  """One requirement. state: READY, MISSING or UNCHECKED. commands: those that meet it."""

  name: str
  state: str
  why: str
  commands: tuple[str, ...]


def needs(
  cloud: cloud_lib.CloudConfig, pools: Sequence[tuple[cloud_lib.Machine, int]]
) -> list[Need]:
  """Returns all requirements. pools: machine and number of replicas of each."""
  builds_here = has_docker()
  return [
    _credentials(),
    _docker(builds_here),
    _apis(cloud),
    _repository(cloud),
    _docker_login(cloud) if builds_here else _cloud_build(cloud),
    _bucket(cloud),
    _quota(cloud, pools),
  ]


def blocking(found: list[Need]) -> Need | None:
  """Returns a requirement that is known to be missing and that has no substitute, or None."""
  return next(
    (need for need in found if need.state == MISSING and need.name in (_CREDENTIALS, _LOGIN)), None
  )


def _credentials() -> Need:
  found = google_credentials.find()
  return Need(_CREDENTIALS, READY if found.are_there else MISSING, found.where, found.commands)


def has_docker() -> bool:
  """Whether a Docker engine runs on this machine."""
  if shutil.which('docker') is None:
    return False
  try:
    return (
      subprocess.run(
        ['docker', 'info'], capture_output=True, timeout=_DOCKER_S, check=False
      ).returncode
      == 0
    )
  except (OSError, subprocess.TimeoutExpired):
    return False


def _docker(builds_here: bool) -> Need:
  if builds_here:
    return Need('Docker', READY, 'images are built here', ())
  return Need('Docker', MISSING, 'no engine answers here; Cloud Build takes its place', ())


def _cloud_build(cloud: cloud_lib.CloudConfig) -> Need:
  """Returns the requirements of Cloud Build.

  Its builds run as Compute Engine's own service account, unless the project sets another.
  """
  project = shlex.quote(cloud.project)
  number = f'$(gcloud projects describe {project} --format="value(projectNumber)")'
  account = f'serviceAccount:{number}-compute@developer.gserviceaccount.com'
  enable = f'gcloud services enable cloudbuild.googleapis.com --project={project}'
  permit = (
    f'gcloud projects add-iam-policy-binding {project} --member="{account}" '
    '--role=roles/cloudbuild.builds.builder'
  )
  return Need(
    'Cloud Build',
    UNCHECKED,
    'its API, and that its builds may read the bucket and write to the repository',
    (enable, permit),
  )


def _apis(cloud: cloud_lib.CloudConfig) -> Need:
  names = ['aiplatform', 'artifactregistry', 'storage']
  listed = ' '.join(f'{name}.googleapis.com' for name in names)
  return Need(
    'APIs',
    UNCHECKED,
    ', '.join(names),
    (f'gcloud services enable {listed} --project={shlex.quote(cloud.project)}',),
  )


def _repository(cloud: cloud_lib.CloudConfig) -> Need:
  command = shlex.join(
    [
      *('gcloud', 'artifacts', 'repositories', 'create', cloud.repository),
      *('--repository-format=docker', f'--location={cloud.region}', f'--project={cloud.project}'),
    ]
  )
  return Need('image repository', UNCHECKED, f'{cloud.repository} in {cloud.region}', (command,))


def _docker_login(cloud: cloud_lib.CloudConfig) -> Need:
  host = cloud_lib.registry(cloud)
  command = (shlex.join(['gcloud', 'auth', 'configure-docker', host]),)
  folder = os.environ.get('DOCKER_CONFIG') or str(pathlib.Path.home() / '.docker')
  try:
    settings = json.loads((pathlib.Path(folder) / 'config.json').read_text(encoding='utf-8'))
  except (OSError, ValueError):
    settings = {}
  is_known = host in settings.get('credHelpers', {}) or host in settings.get('auths', {})
  return Need(_LOGIN, READY if is_known else MISSING, host, command)


def _bucket(cloud: cloud_lib.CloudConfig) -> Need:
  url = f'gs://{cloud_lib.bucket_name(cloud)}'
  buckets = ('gcloud', 'storage', 'buckets')
  place = (f'--location={cloud.region}', f'--project={cloud.project}')
  commands = [shlex.join([*buckets, 'create', url, *place])]
  if cloud.service_account:
    member = f'--member=serviceAccount:{cloud.service_account}'
    role = '--role=roles/storage.objectAdmin'
    commands.append(shlex.join([*buckets, 'add-iam-policy-binding', url, member, role]))
  return Need('bucket', UNCHECKED, f'{url}, and that the nodes may write to it', tuple(commands))


def _quota(cloud: cloud_lib.CloudConfig, pools: Sequence[tuple[cloud_lib.Machine, int]]) -> Need:
  wanted: dict[str, int] = {}
  for machine, replicas in pools:
    if machine.cpu:
      wanted['cpus'] = wanted.get('cpus', 0) + machine.cpu * replicas
    if machine.accelerator:
      name = f'nvidia_{machine.accelerator.lower()}_gpus'
      wanted[name] = wanted.get(name, 0) + machine.num_accelerators * replicas
  command = (
    'gcloud alpha services quota list --service=aiplatform.googleapis.com '
    f'{shlex.quote(f"--consumer=projects/{cloud.project}")} --filter=metric={_QUOTA}_'
  )
  listed = ', '.join(f'{name} >= {number}' for name, number in wanted.items())
  return Need(
    'quota',
    UNCHECKED,
    f'{listed} for custom training in {cloud.region}',
    tuple(command + name for name in wanted),
  )
