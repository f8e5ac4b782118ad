"""The settings `--cloud.…`: project, bucket, region and the machines of each kind of node.

The tables list what xmanager 0.8.5 can request from Vertex AI; a test compares them with it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import near_names
from seed_acme.programs.cluster import cluster_file

# vCPUs and GiB. https://cloud.google.com/vertex-ai/docs/training/configure-compute
MACHINES = {
  'n1-standard-4': (4, 15),
  'n1-standard-8': (8, 30),
  'n1-standard-16': (16, 60),
  'n1-standard-32': (32, 120),
  'n1-standard-64': (64, 240),
  'n1-standard-96': (96, 360),
  'n1-highmem-2': (2, 13),
  'n1-highmem-4': (4, 26),
  'n1-highmem-8': (8, 52),
  'n1-highmem-16': (16, 104),
  'n1-highmem-32': (32, 208),
  'n1-highmem-64': (64, 416),
  'n1-highmem-96': (96, 624),
  'n1-highcpu-16': (16, 14),
  'n1-highcpu-32': (32, 28),
  'n1-highcpu-64': (64, 57),
  'n1-highcpu-96': (96, 86),
}
# Machines that include accelerators: kind, number, and the vCPUs by which xmanager tells machines
# with the same accelerators apart (0 = it needs only the accelerators).
WITH_ACCELERATORS = {
  'a2-highgpu-1g': ('A100', 1, 0),
  'a2-highgpu-2g': ('A100', 2, 0),
  'a2-highgpu-4g': ('A100', 4, 0),
  'a2-highgpu-8g': ('A100', 8, 0),
  'a2-megagpu-16g': ('A100', 16, 0),
  'g2-standard-4': ('L4', 1, 4),
  'g2-standard-8': ('L4', 1, 8),
  'g2-standard-12': ('L4', 1, 12),
  'g2-standard-16': ('L4', 1, 16),
  'g2-standard-32': ('L4', 1, 32),
  'g2-standard-24': ('L4', 2, 24),
  'g2-standard-48': ('L4', 4, 48),
  'g2-standard-96': ('L4', 8, 96),
}
# Accelerators for n1 machines: the possible numbers, and the most vCPUs for each (the page above,
# "Valid numbers of GPUs for each machine type").
ACCELERATORS = {
  'T4': {1: 16, 2: 32, 4: 96},
  'P4': {1: 16, 2: 32, 4: 96},
  'P100': {1: 16, 2: 32, 4: 32},
  'V100': {1: 8, 2: 16, 4: 32, 8: 96},
}
_APART = tuple(dict.fromkeys(name for name, _, _ in WITH_ACCELERATORS.values()))
_PROJECT = re.compile(r'([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]')
_BUCKET = re.compile(r'gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[^/\s]+)*')
_REGION = re.compile(r'[a-z]+-[a-z]+\d{1,2}')
_REPOSITORY = re.compile(r'[a-z][a-z0-9-]{0,61}[a-z0-9]')
_EXAMPLE = 'n1-standard-8 or n1-standard-8+1xT4'


@dataclasses.dataclass(frozen=True)
class CloudConfig:
  """Vertex AI, for --launch=vertex_ai (docs/scaling.md).

  project: Google Cloud project. bucket: gs://NAME[/FOLDER] for runs. region: region of everything.
  learner, actors, replay: machine of each node, TYPE or TYPE+NUMBERxACCELERATOR.
  repository: repository of Artifact Registry for the images. service_account: account that the
    nodes run as; '' = Vertex AI's own.
  code: folder with your own modules, copied into the images. requirements: file of more packages to
    install there.
  """

  project: str = ''
  bucket: str = ''
  region: str = 'us-central1'
  learner: str = 'n1-standard-8'
  actors: str = 'n1-standard-4'
  replay: str = 'n1-highmem-8'
  repository: str = 'seed-acme'
  service_account: str = ''
  code: str = ''
  requirements: str = ''


class Machine(NamedTuple):
  """A machine type with accelerators.

  cpu, ram_gib: 0 if xmanager identifies the machine without them. accelerator: '' = none.
  """

  type: str
  cpu: int
  ram_gib: int
  accelerator: str
  num_accelerators: int

  def __str__(self) -> str:
    accelerators = f' + {self.num_accelerators} x {self.accelerator}' if self.accelerator else ''
    return self.type + accelerators


def parse_machine(text: str, flag: str) -> Machine:
  """Parses `n1-standard-8+1xT4`; raises `UserError` with the flag, the bad part and the choices."""
  type_, plus, rest = text.strip().lower().partition('+')
  if type_ not in MACHINES and type_ not in WITH_ACCELERATORS:
    known = [*MACHINES, *WITH_ACCELERATORS]
    raise types.UserError(
      f'{flag}={text}: unknown machine type {type_!r}'
      f'{near_names.hint(type_, known)}; write {_EXAMPLE}'
    )
  number, accelerator = _parse_accelerators(rest, text, flag) if plus else (0, '')
  if type_ in WITH_ACCELERATORS:
    its_own, its_number, its_cpu = WITH_ACCELERATORS[type_]
    if accelerator and (number, accelerator) != (its_number, its_own):
      raise types.UserError(
        f'{flag}={text}: {type_} comes with {its_number} {its_own} and takes no others: '
        f'write {type_}'
      )
    return Machine(type_, its_cpu, 0, its_own, its_number)
  if accelerator in _APART:
    numbers = {name: n for name, (kind, n, _) in WITH_ACCELERATORS.items() if kind == accelerator}
    fitting = [name for name, its_number in numbers.items() if its_number >= number]
    raise types.UserError(
      f'{flag}={text}: {accelerator} come with machines of their own: write '
      f'{(fitting or list(numbers))[0]}'
    )
  cpu, ram_gib = MACHINES[type_]
  if accelerator:
    _check_number(number, accelerator, type_, cpu, f'{flag}={text}')
  return Machine(type_, cpu, ram_gib, accelerator, number)


def _parse_accelerators(text: str, whole: str, flag: str) -> tuple[int, str]:
  found = re.fullmatch(r'(?:(\d+)x)?(?:nvidia[_-]tesla[_-])?([a-z0-9_]+)', text)
  if not found:
    raise types.UserError(f'{flag}={whole}: {text!r} is no NUMBERxACCELERATOR: write {_EXAMPLE}')
  name = found[2].upper()
  known = [*ACCELERATORS, *_APART]
  if name not in known:
    raise types.UserError(
      f'{flag}={whole}: unknown accelerator {name!r}'
      f'{near_names.hint(name, known)}; known: {", ".join(known)}; '
      f'write {_EXAMPLE}'
    )
  return int(found[1] or 1), name


def _check_number(number: int, accelerator: str, type_: str, cpu: int, given: str) -> None:
  numbers = [n for n, most_cpu in ACCELERATORS[accelerator].items() if cpu <= most_cpu]
  if not numbers:
    raise types.UserError(
      f'{given}: {type_} takes no {accelerator}: choose a machine with fewer vCPUs'
    )
  if number not in numbers:
    raise types.UserError(
      f'{given}: {type_} takes {" or ".join(map(str, numbers))} {accelerator},'
      f' not {number}: write {type_}+{numbers[0]}x{accelerator}'
    )


def check(cloud: CloudConfig) -> None:
  """Raises `types.UserError` for settings that are known to be wrong without asking Google."""
  if not cloud.project:
    raise types.UserError(
      '--launch=vertex_ai needs --cloud.project=PROJECT_ID: gcloud projects list shows yours'
    )
  _match(cloud.project, _PROJECT, '--cloud.project', 'a project id, such as my-project-123')
  if not cloud.bucket:
    raise types.UserError(
      '--launch=vertex_ai needs --cloud.bucket=gs://NAME, where logs and '
      'checkpoints go: gcloud storage buckets list shows yours'
    )
  checked_url(cloud.bucket, '--cloud.bucket')
  _match(cloud.region, _REGION, '--cloud.region', 'a region, such as us-central1')
  _match(cloud.repository, _REPOSITORY, '--cloud.repository', 'lower-case letters, digits and -')
  for flag in ('learner', 'actors', 'replay'):
    parse_machine(getattr(cloud, flag), f'--cloud.{flag}')
  if cloud.code and not pathlib.Path(cloud.code).is_dir():
    raise types.UserError(
      f'--cloud.code={cloud.code} is no folder: give the one that holds your modules'
    )
  if cloud.requirements and not pathlib.Path(cloud.requirements).is_file():
    raise types.UserError(
      f'--cloud.requirements={cloud.requirements} is no file: give one with a requirement a line'
    )


def check_replay(cloud: CloudConfig, config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` if a machine is named for a node that the run does not have."""
  if cloud.replay != CloudConfig().replay and not config.replay.separate_process:
    raise types.UserError(
      f'--cloud.replay={cloud.replay}: the learner holds the replay of this '
      'run: add --config.replay.separate_process=True, or leave it out'
    )


def checked_url(url: str, flag: str) -> str:
  """Returns a bucket's folder without a slash at its end; raises `types.UserError`."""
  _match(url.rstrip('/'), _BUCKET, flag, 'gs://NAME or gs://NAME/FOLDER')
  return url.rstrip('/')


def _match(value: str, pattern: re.Pattern[str], flag: str, form: str) -> None:
  if not pattern.fullmatch(value):
    raise types.UserError(f'{flag}={value!r} is not of the right form: write {form}')


def machines(cloud: CloudConfig) -> dict[str, Machine]:
  """Returns machines by group of nodes: `learners` are all learner hosts but the first."""
  return {
    'learner': parse_machine(cloud.learner, '--cloud.learner'),
    'learners': parse_machine(cloud.learner, '--cloud.learner'),
    'replay': parse_machine(cloud.replay, '--cloud.replay'),
    'actor': parse_machine(cloud.actors, '--cloud.actors'),
  }


def bucket_name(cloud: CloudConfig) -> str:
  """Returns `name` of `gs://name/folder`."""
  return cloud.bucket.removeprefix('gs://').partition('/')[0]


def registry(cloud: CloudConfig) -> str:
  """Returns the registry host of the images."""
  return f'{cloud.region}-docker.pkg.dev'


def with_cloud(config: config_lib.ExperimentConfig) -> config_lib.ExperimentConfig:
  """Returns the configuration of nodes on separate hosts, which get their addresses elsewhere."""
  config = dataclasses.replace(config, replay=dataclasses.replace(config.replay, port=0))
  return cluster_file.between_hosts(config, '0.0.0.0', 0)
