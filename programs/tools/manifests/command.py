"""`seed-acme manifest`: writes the objects that start all nodes of a run on a cluster."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import secrets
import shlex
import sys
from typing import Annotated, Literal

import yaml

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.files import local
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import replay_size
from seed_acme.programs.front_end import warm_start
from seed_acme.programs.nodes import filming
from seed_acme.programs.tools.manifests import deployment as deployment_lib
from seed_acme.programs.tools.manifests import kubernetes
from seed_acme.programs.trial import door

_LABEL = r'[a-z]([-a-z0-9]*[a-z0-9])?'  # a label of DNS
_MAX_NAME = 40  # characters; Kubernetes allows 63 with what we append
_QUANTITY = r'[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?'
_NO_VOLUME = 'none'
_SECRET = r'[a-z0-9]([-.a-z0-9]*[a-z0-9])?'
_KEY_PART = r'[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?'
_KEY = rf'(?P<key>({_SECRET}/)?{_KEY_PART})'
_VALUE = rf'(?P<value>({_KEY_PART})?)'
_SELECTOR = f'{_KEY}={_VALUE}'
_TAINT = f'{_KEY}(={_VALUE})?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)'


@dataclasses.dataclass(frozen=True)
class ManifestArguments:
  """Write a Kubernetes manifest of a run, which `kubectl apply -f FILE` starts. It contains the
  configuration.

  kind: kind of cluster.
  image: container image with seed_acme installed, and with your own environment if any; it must run
    as a user that is not root.
  actor_image: image of actors and replay node; '' = the same.
  image_pull_secret: Secret with which the images are pulled; '' = none.
  out: file to write; '' = standard output.
  name: name of the run, which all names in the manifest begin with; '' = the configuration's.
  namespace: namespace of all objects; '' = the one that kubectl uses.
  token_secret: Secret that holds the token under `token`; '' = a new one, in the manifest.
  storage: size of the volume for the run folder; none = no volume, so the folder is lost with
    each pod of the learner, and a retry starts anew.
  storage_class: class of that volume; '' = the cluster's default.
  learner_gpus: number of `nvidia.com/gpu` per learner.
  *_cpu, *_memory: resources that one such node requests, as Kubernetes writes them.
  *_node_selector: labels that the machines must have, KEY=VALUE,...
  *_tolerations: taints that the machines may have, KEY=VALUE:EFFECT,... or KEY:EFFECT,...
  retries: restarts of a node after failures; a preempted node is restarted in any case.
  """

  kind: Literal['kubernetes'] = 'kubernetes'
  image: str = ''
  actor_image: str = ''
  image_pull_secret: str = ''
  out: str = ''
  name: str = ''
  namespace: str = ''
  token_secret: str = ''
  storage: str = '10Gi'
  storage_class: str = ''
  learner_cpu: str = '2'
  learner_memory: str = '4Gi'
  learner_gpus: Annotated[int, bounds.at_least(0)] = 0
  learner_node_selector: str = ''
  learner_tolerations: str = ''
  replay_cpu: str = '1'
  replay_memory: str = '4Gi'
  replay_node_selector: str = ''
  replay_tolerations: str = ''
  actor_cpu: str = '1'
  actor_memory: str = '1Gi'
  actor_node_selector: str = ''
  actor_tolerations: str = ''
  retries: Annotated[int, bounds.at_least(0)] = 6


class _Dumper(yaml.SafeDumper):
  """A YAML dumper whose output people can read: files as text blocks, and no references."""

  def ignore_aliases(self, data: object) -> bool:
    return True


_Dumper.add_representer(
  str,
  lambda dumper, text: dumper.represent_scalar(
    'tag:yaml.org,2002:str', text, style='|' if '\n' in text else None
  ),
)


def manifest(arguments: ManifestArguments, given: given_lib.Given) -> int:
  """Writes the manifest and returns the exit code; raises `UserError`."""
  given.require_name()
  return write(arguments, given.config())


def _check_start(name: str) -> None:
  """Raises `types.UserError` for a start from this machine's newest run; tells of a path."""
  if warm_start.behind_latest(name):
    raise types.UserError(
      f'--config.initial_checkpoint={name} is a link of this machine: copy the run into a bucket '
      'and give its gs://, or put it into the image and give its path there'
    )
  if name and '://' not in name:
    print(f'Notice: initial_checkpoint ({name}) must be a path within the image', file=sys.stderr)


def write(arguments: ManifestArguments, config: config_lib.ExperimentConfig) -> int:
  """Checks the options, writes the manifest, prints the next commands; returns the exit code."""
  config_validation.validate(config)
  layout = layout_lib.Layout.of(config)
  launches.refuse_shards_elsewhere(layout)
  filming.refuse_elsewhere(config.record_every, 'Kubernetes')
  cluster_file.refuse_courier(config)
  _check_start(config.initial_checkpoint)
  deployment = _deployment(arguments, config)
  made = kubernetes.objects(config, deployment)
  text = yaml.dump_all(made, Dumper=_Dumper, sort_keys=False, width=100)
  if not arguments.out:
    print(text, end='')
    return 0
  local.refuse_url(arguments.out, 'file')
  _write(pathlib.Path(arguments.out), text)
  jobs = [one['metadata']['name'] for one in made if one['kind'] == 'Job']
  out = shlex.quote(arguments.out)
  inside = f' -n {arguments.namespace}' if arguments.namespace else ''
  secret = (
    '' if arguments.token_secret else '; it holds the token of the run, so keep it as a secret'
  )
  lost = ', the run with its checkpoints, too' if deployment.storage else ''
  print(
    f'{arguments.out}: {len(made)} objects, Jobs {_shortened(jobs)}{secret}\n'
    f'Start: kubectl apply -f {out}\n'
    f'Watch: kubectl logs{inside} -f job/{kubernetes.learner_name(layout, deployment)}\n'
    f'Stop; the run stays, and goes on when this manifest, or a changed one, is applied:\n'
    f'  kubectl delete jobs{inside} --cascade=foreground '
    f'-l {kubernetes.INSTANCE_LABEL}={deployment.name}\n'
    f'Remove everything{lost}: kubectl delete -f {out}'
  )
  return 0


def _shortened(names: list[str]) -> str:
  return ', '.join(names if len(names) <= 4 else [*names[:3], '...', names[-1]])


def _write(path: pathlib.Path, text: str) -> None:
  """Writes a file that only its owner can read, because it may hold the token."""
  try:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='utf-8') as file:
      os.fchmod(file.fileno(), 0o600)
      file.truncate(0)
      file.write(text)
  except OSError as error:
    raise types.UserError(f'cannot write --out={path}: {error.strerror}') from None


def _deployment(
  arguments: ManifestArguments, config: config_lib.ExperimentConfig
) -> deployment_lib.Deployment:
  name = arguments.name or config.name.lower().replace('_', '-').replace('.', '-')
  if not re.fullmatch(_LABEL, name) or len(name) > _MAX_NAME:
    raise types.UserError(
      f'--name={name}: use up to {_MAX_NAME} small letters, digits and -, with a letter first'
    )
  if arguments.namespace and not re.fullmatch(_LABEL, arguments.namespace):
    raise types.UserError(
      f'--namespace={arguments.namespace} is no name of a namespace: use '
      'small letters, digits and -'
    )
  for flag in ('image', 'actor_image'):
    image = getattr(arguments, flag)
    if not re.fullmatch(r'\S+', image) and (image or flag == 'image'):
      raise types.UserError(
        f'--{flag}={image!r}: name a container image with seed_acme, such as '
        'registry.example.org/seed-acme:0.1 (docs/scaling.md builds one)'
      )
  for flag in ('image_pull_secret', 'token_secret'):
    secret = getattr(arguments, flag)
    if secret and not re.fullmatch(_SECRET, secret):
      raise types.UserError(
        f'--{flag}={secret} is no name of a Secret: use small letters, digits, - and .'
      )
  saving_s = _saving_seconds(arguments, config)
  return deployment_lib.Deployment(
    name=name,
    namespace=arguments.namespace,
    image_pull_secret=arguments.image_pull_secret,
    token_secret=arguments.token_secret or f'{name}-token',
    token='' if arguments.token_secret else secrets.token_hex(16),
    storage='' if arguments.storage == _NO_VOLUME else _quantity('storage', arguments),
    storage_class=arguments.storage_class,
    retries=arguments.retries,
    saving_s=saving_s,
    placements={role: _placement(role, arguments) for role in ('learner', 'replay', 'actor')},
  )


def _placement(role: str, arguments: ManifestArguments) -> deployment_lib.Placement:
  is_learner = role == 'learner'
  selector = _pairs(f'{role}_node_selector', arguments, _SELECTOR, 'KEY=VALUE')
  taints = _pairs(
    f'{role}_tolerations',
    arguments,
    _TAINT,
    'KEY=VALUE:EFFECT or KEY:EFFECT, with the effect NoSchedule, PreferNoSchedule or NoExecute',
  )
  return deployment_lib.Placement(
    image=arguments.image if is_learner else arguments.actor_image or arguments.image,
    cpu=_quantity(f'{role}_cpu', arguments),
    memory=_quantity(f'{role}_memory', arguments),
    node_selector={found['key']: found['value'] for found in selector},
    tolerations=tuple(_toleration(found) for found in taints),
    gpus=arguments.learner_gpus if is_learner else 0,
  )


def _toleration(taint: re.Match[str]) -> deployment_lib.Object:
  """Returns the toleration of a taint in `kubectl`'s form; without a value, of every value."""
  how = {'operator': 'Exists'}
  if taint['value'] is not None:
    how = {'operator': 'Equal', 'value': taint['value']}
  return {'key': taint['key'], **how, 'effect': taint['effect']}


def _pairs(flag: str, arguments: ManifestArguments, pattern: str, form: str) -> list[re.Match[str]]:
  """Splits a comma-separated option and matches each part with the pattern."""
  value = getattr(arguments, flag)
  found = [re.fullmatch(pattern, part) for part in value.split(',')] if value else []
  if None in found:
    raise types.UserError(f'--{flag}={value}: write {form}; several with a comma between')
  return [match for match in found if match]


def _quantity(flag: str, arguments: ManifestArguments) -> str:
  value = getattr(arguments, flag)
  if not re.fullmatch(_QUANTITY, value):
    raise types.UserError(
      f'--{flag}={value} is no quantity of Kubernetes: write it as 2, 500m, 4Gi'
    )
  return value


def _saving_seconds(arguments: ManifestArguments, config: config_lib.ExperimentConfig) -> float:
  """Returns how long saving the replay memory may take, and shows its size for the pod's memory."""
  layout = layout_lib.Layout.of(config)
  try:
    num_bytes = replay_size.replay_bytes(config, lambda: door.environment_spec(config))
    num_bytes //= len(layout.learners)  # memory of one learner host
  except (types.UserError, door.CannotStart) as error:  # only the image has the environment
    print(f'Warning: the size of a replay memory is not known here: {error}', file=sys.stderr)
    return 0.0
  if num_bytes:
    role = 'replay' if layout.has_replay_nodes else 'learner'
    print(
      f'Notice: a full replay memory takes up to {num_bytes / 2**30:.1f}Gi beside the rest: '
      f'--{role}_memory={getattr(arguments, f"{role}_memory")}',
      file=sys.stderr,
    )
  is_elsewhere = layout.has_replay_nodes or layout.has_several_learners
  if is_elsewhere or not config.checkpoint.replay:
    return 0.0
  return replay_size.saving_seconds(num_bytes)
