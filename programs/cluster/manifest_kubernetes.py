"""The nodes of a run as Kubernetes objects: a Job for each, found by stable names.

Data only: no YAML, no command line, no cluster is asked.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from seed_acme import config as config_lib
from seed_acme.programs.nodes import actors
from seed_acme.storage import saved_config

Object = dict[str, Any]
INSTANCE_LABEL = 'app.kubernetes.io/instance'  # every object has it, with the name of the run

_INFERENCE_PORT, _REPLAY_PORT = 8000, 8001
_RUN_DIR = '/runs'
_SETTINGS_DIR = '/etc/seed-acme'
_TOKEN_VARIABLE = 'SEED_ACME_TOKEN'
_TOKEN_KEY = 'token'
_GPU = 'nvidia.com/gpu'
_WRONG_INPUT = 2  # exit code that no new start would mend
_STOP_S = 60  # from SIGTERM to the end, without what a replay memory takes to be saved
_GROUP = 1000  # owner of the volume, so that an image whose user is not root can write


@dataclasses.dataclass(frozen=True)
class Placement:
  """What the pods of a role ask the scheduler for; gpus is a limit, too.

  node_selector: labels that a machine must have. tolerations: as a pod's specification has them.
  """

  image: str
  cpu: str
  memory: str
  node_selector: dict[str, str]
  tolerations: tuple[Object, ...]
  gpus: int = 0


@dataclasses.dataclass(frozen=True)
class Deployment:
  """Everything about the run that is not its configuration.

  name: of the run; all objects begin with it. token: '' = the Secret `token_secret` exists.
  image_pull_secret: Secret of kind docker-registry; '' = the images are public, or the cluster
    knows.
  storage: size of the volume claim; '' = a folder that is lost with the learner's pod.
  retries: of each node before its Job fails; a preemption is none. saving_s: how long saving
    the replay memory may take at the end.
  """

  name: str
  namespace: str
  image_pull_secret: str
  token_secret: str
  token: str
  storage: str
  storage_class: str
  retries: int
  saving_s: float
  placements: dict[str, Placement]  # by role


def objects(config: config_lib.ExperimentConfig, deployment: Deployment) -> list[Object]:
  """All objects, in the order in which they should be created."""
  config = dataclasses.replace(config, replay=dataclasses.replace(config.replay, port=_REPLAY_PORT))
  made = [_service(deployment), _network_policy(deployment), _settings(config, deployment)]
  if deployment.token:
    made.append(_secret(deployment))
  if deployment.storage:
    made.append(_claim(deployment))
  made.append(_job(config, deployment, 'learner'))
  if config.replay.separate_process:
    made.append(_job(config, deployment, 'replay'))
  made += [
    _job(config, deployment, 'actor', index) for index in range(actors.num_actor_nodes(config))
  ]
  return made


def _object(
  version: str, kind: str, deployment: Deployment, name: str, role: str = '', **fields: Any
) -> Object:
  metadata: Object = {'name': name, 'labels': _labels(deployment, role)}
  if deployment.namespace:
    metadata['namespace'] = deployment.namespace
  return {'apiVersion': version, 'kind': kind, 'metadata': metadata, **fields}


def _labels(deployment: Deployment, role: str = '') -> dict[str, str]:
  labels = {'app.kubernetes.io/name': 'seed-acme', INSTANCE_LABEL: deployment.name}
  return {**labels, 'app.kubernetes.io/component': role} if role else labels


def _secret(deployment: Deployment) -> Object:
  token = {_TOKEN_KEY: deployment.token}
  return _object(
    'v1', 'Secret', deployment, deployment.token_secret, type='Opaque', stringData=token
  )


def _service(deployment: Deployment) -> Object:
  """Headless: it gives the pods names, before they are ready, and balances nothing."""
  return _object(
    'v1',
    'Service',
    deployment,
    deployment.name,
    spec={
      'clusterIP': 'None',
      'publishNotReadyAddresses': True,
      'selector': _labels(deployment),
      'ports': [
        {'name': 'inference', 'port': _INFERENCE_PORT},
        {'name': 'replay', 'port': _REPLAY_PORT},
      ],
    },
  )


def _network_policy(deployment: Deployment) -> Object:
  """Reverb asks nobody for a token, so only pods of this run may reach its pods."""
  own = {'podSelector': {'matchLabels': _labels(deployment)}}
  return _object(
    'networking.k8s.io/v1',
    'NetworkPolicy',
    deployment,
    deployment.name,
    spec={**own, 'policyTypes': ['Ingress'], 'ingress': [{'from': [own]}]},
  )


def _settings(config: config_lib.ExperimentConfig, deployment: Deployment) -> Object:
  cluster: Object = {
    'learner': _address(deployment, 'learner', _INFERENCE_PORT),
    'listen': f'0.0.0.0:{_INFERENCE_PORT}',
    'actors': config.num_actors,
    'token_variable': _TOKEN_VARIABLE,
  }
  if config.replay.separate_process:
    cluster['replay'] = _address(deployment, 'replay', _REPLAY_PORT)
  return _object(
    'v1',
    'ConfigMap',
    deployment,
    deployment.name,
    data={
      'cluster.json': json.dumps(cluster, indent=2) + '\n',
      'config.json': json.dumps(saved_config.to_json(config), indent=2) + '\n',
    },
  )


def _address(deployment: Deployment, role: str, port: int) -> str:
  """`<pod's hostname>.<service>`, which every pod of the namespace resolves."""
  namespace = f'.{deployment.namespace}.svc' if deployment.namespace else ''
  return f'{deployment.name}-{role}.{deployment.name}{namespace}:{port}'


def _claim(deployment: Deployment) -> Object:
  spec: Object = {
    'accessModes': ['ReadWriteOnce'],
    'resources': {'requests': {'storage': deployment.storage}},
  }
  if deployment.storage_class:
    spec['storageClassName'] = deployment.storage_class
  return _object('v1', 'PersistentVolumeClaim', deployment, deployment.name, spec=spec)


def _job(
  config: config_lib.ExperimentConfig, deployment: Deployment, role: str, index: int | None = None
) -> Object:
  """One node. A pod that is lost is started anew, under the same name; wrong input is not."""
  name = f'{deployment.name}-{role}' + ('' if index is None else f'-{index}')
  only_wrong_input = {'containerName': role, 'operator': 'In', 'values': [_WRONG_INPUT]}
  rules = [
    {'action': 'Ignore', 'onPodConditions': [{'type': 'DisruptionTarget', 'status': 'True'}]},
    {'action': 'FailJob', 'onExitCodes': only_wrong_input},
  ]
  pod = {
    'metadata': {'labels': _labels(deployment, role)},
    'spec': _pod(config, deployment, role, index, name),
  }
  spec = {'backoffLimit': deployment.retries, 'podFailurePolicy': {'rules': rules}, 'template': pod}
  return _object('batch/v1', 'Job', deployment, name, role, spec=spec)


def _pod(
  config: config_lib.ExperimentConfig,
  deployment: Deployment,
  role: str,
  index: int | None,
  name: str,
) -> Object:
  volumes: list[Object] = [{'name': 'settings', 'configMap': {'name': deployment.name}}]
  mounts = [{'name': 'settings', 'mountPath': _SETTINGS_DIR, 'readOnly': True}]
  arguments = [
    'node',
    role,
    f'--cluster={_SETTINGS_DIR}/cluster.json',
    f'--config={_SETTINGS_DIR}/config.json',
  ]
  ports: list[Object] = []
  if index is not None:
    arguments.append(f'--index={index}')
  if role == 'learner':
    arguments.append(f'--run_dir={_RUN_DIR}/{deployment.name}')
    mounts.append({'name': 'runs', 'mountPath': _RUN_DIR})
    if deployment.storage:
      volumes.append({'name': 'runs', 'persistentVolumeClaim': {'claimName': deployment.name}})
    else:
      volumes.append({'name': 'runs', 'emptyDir': {}})
    ports.append({'name': 'inference', 'containerPort': _INFERENCE_PORT})
  if role == ('replay' if config.replay.separate_process else 'learner'):
    ports.append({'name': 'replay', 'containerPort': _REPLAY_PORT})
  secret = {'name': deployment.token_secret, 'key': _TOKEN_KEY}
  placement = deployment.placements[role]
  container: Object = {
    'name': role,
    'image': placement.image,
    'command': ['seed-acme'],
    'args': arguments,
    'env': [{'name': _TOKEN_VARIABLE, 'valueFrom': {'secretKeyRef': secret}}],
    'resources': _resources(placement),
    'volumeMounts': mounts,
    'securityContext': {'allowPrivilegeEscalation': False, 'capabilities': {'drop': ['ALL']}},
  }
  if ports:
    container['ports'] = ports
  return {
    **_where(deployment, placement),
    'hostname': name,
    'subdomain': deployment.name,
    'restartPolicy': 'Never',
    'terminationGracePeriodSeconds': _STOP_S
    + (math.ceil(deployment.saving_s) if role == 'learner' else 0),
    'automountServiceAccountToken': False,
    'enableServiceLinks': False,
    'securityContext': {
      'runAsNonRoot': True,
      'fsGroup': _GROUP,
      'seccompProfile': {'type': 'RuntimeDefault'},
    },
    'containers': [container],
    'volumes': volumes,
  }


def _where(deployment: Deployment, placement: Placement) -> Object:
  """On which machines, and with whose leave to fetch the image."""
  made: Object = {}
  if deployment.image_pull_secret:
    made['imagePullSecrets'] = [{'name': deployment.image_pull_secret}]
  if placement.node_selector:
    made['nodeSelector'] = placement.node_selector
  tolerations = list(placement.tolerations)
  if placement.gpus:  # machines with GPUs are commonly kept for pods that ask for them
    tolerations.append({'key': _GPU, 'operator': 'Exists', 'effect': 'NoSchedule'})
  if tolerations:
    made['tolerations'] = tolerations
  return made


def _resources(placement: Placement) -> Object:
  made: Object = {'requests': {'cpu': placement.cpu, 'memory': placement.memory}}
  if placement.gpus:
    made['limits'] = {_GPU: placement.gpus}
  return made
