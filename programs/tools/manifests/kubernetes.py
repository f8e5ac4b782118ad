"""The nodes of a run as Kubernetes objects: a Job for each, with stable host names.

Several learner hosts are separate Jobs instead of one indexed Job, because only the first has the
volume, and the pods of an indexed Job are all alike.
This module only makes data: it writes no YAML, parses no command line and asks no cluster.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.checks import device_names
from seed_acme.programs.tools.manifests import deployment as deployment_lib
from seed_acme.storage import saved_config

Object = deployment_lib.Object
INSTANCE_LABEL = 'app.kubernetes.io/instance'  # a label with the run's name on every object

_INFERENCE_PORT, _REPLAY_PORT, _EXCHANGE_PORT = 8000, 8001, 8002
_RUN_DIR = '/runs'
_SETTINGS_DIR = '/etc/seed-acme'
_TOKEN_VARIABLE = 'SEED_ACME_TOKEN'
_TOKEN_KEY = 'token'
_GPU = 'nvidia.com/gpu'
# Exit codes: wrong input, which no restart would fix, and the failure of another learner host.
_WRONG_INPUT, _OTHER_FAILED = 2, 3
_STOP_S = 60  # from SIGTERM to SIGKILL, not counting the time to save a replay memory
_GROUP = 1000  # group that owns the volume, so that an image whose user is not root can write


def objects(
  config: config_lib.ExperimentConfig, deployment: deployment_lib.Deployment
) -> list[Object]:
  """Returns all objects, in the order in which they should be created."""
  config = dataclasses.replace(config, replay=dataclasses.replace(config.replay, port=_REPLAY_PORT))
  layout, record = layout_lib.Layout.of(config), saved_config.to_json(config)
  made = [
    _service(layout, deployment),
    _network_policy(deployment),
    _settings(layout, record, deployment),
  ]
  if deployment.token:
    made.append(_secret(deployment))
  if deployment.storage:
    made.append(_claim(deployment))
  made += [_job(layout, deployment, 'learner', index) for index in _learner_indices(layout)]
  if layout.has_replay_nodes:
    made.append(_job(layout, deployment, 'replay'))
  made += [_job(layout, deployment, 'actor', actor.index) for actor in layout.actors]
  return made


def _object(
  version: str,
  kind: str,
  deployment: deployment_lib.Deployment,
  name: str = '',
  role: str = '',
  **fields: Any,
) -> Object:
  """name: '' = that of the run."""
  metadata: Object = {'name': name or deployment.name, 'labels': _labels(deployment, role)}
  if deployment.namespace:
    metadata['namespace'] = deployment.namespace
  return {'apiVersion': version, 'kind': kind, 'metadata': metadata, **fields}


def _labels(deployment: deployment_lib.Deployment, role: str = '') -> dict[str, str]:
  labels = {'app.kubernetes.io/name': 'seed-acme', INSTANCE_LABEL: deployment.name}
  return {**labels, 'app.kubernetes.io/component': role} if role else labels


def _secret(deployment: deployment_lib.Deployment) -> Object:
  token = {_TOKEN_KEY: deployment.token}
  return _object(
    'v1', 'Secret', deployment, deployment.token_secret, type='Opaque', stringData=token
  )


def learner_name(layout: layout_lib.Layout, deployment: deployment_lib.Deployment) -> str:
  """Returns the name of the Job of the learner, or of the chief among several learner hosts."""
  return _name(deployment, 'learner', _learner_indices(layout)[0])


def _learner_indices(layout: layout_lib.Layout) -> list[int | None]:
  """Returns the learner hosts' indices, or [None] for a single one, whose name has no number."""
  return [learner.index if layout.has_several_learners else None for learner in layout.learners]


def _name(deployment: deployment_lib.Deployment, role: str, index: int | None = None) -> str:
  """Returns the name of a node: of its Job and of its pod's host."""
  return f'{deployment.name}-{role}' + ('' if index is None else f'-{index}')


def _service(layout: layout_lib.Layout, deployment: deployment_lib.Deployment) -> Object:
  """Returns a headless service. It names the pods before they are ready, and balances no load."""
  ports = [{'name': 'inference', 'port': _INFERENCE_PORT}, {'name': 'replay', 'port': _REPLAY_PORT}]
  if layout.has_several_learners:
    ports.append({'name': 'exchange', 'port': _EXCHANGE_PORT})
  return _object(
    'v1',
    'Service',
    deployment,
    spec={
      'clusterIP': 'None',
      'publishNotReadyAddresses': True,
      'selector': _labels(deployment),
      'ports': ports,
    },
  )


def _network_policy(deployment: deployment_lib.Deployment) -> Object:
  """Returns a policy by which only pods of this run may reach its pods.

  It is needed because neither Reverb nor TensorFlow's collectives ask for a token.
  """
  own = {'podSelector': {'matchLabels': _labels(deployment)}}
  return _object(
    'networking.k8s.io/v1',
    'NetworkPolicy',
    deployment,
    spec={**own, 'policyTypes': ['Ingress'], 'ingress': [{'from': [own]}]},
  )


def _settings(
  layout: layout_lib.Layout, record: Object, deployment: deployment_lib.Deployment
) -> Object:
  learners = _learner_indices(layout)
  acting, exchange = (
    [_address(deployment, 'learner', port, index) for index in learners]
    for port in (_INFERENCE_PORT, _EXCHANGE_PORT)
  )
  several: Object = {'learner': acting, 'exchange': exchange}
  cluster: Object = {
    **(several if layout.has_several_learners else {'learner': acting[0]}),
    'listen': f'0.0.0.0:{_INFERENCE_PORT}',
    'actors': layout.num_training_actors,
    'fence': False,  # the NetworkPolicy is the fence, and the pods' addresses change
    'token_variable': _TOKEN_VARIABLE,
  }
  if layout.has_replay_nodes:
    cluster['replay'] = _address(deployment, 'replay', _REPLAY_PORT)
  return _object(
    'v1',
    'ConfigMap',
    deployment,
    data={
      'cluster.json': json.dumps(cluster, indent=2) + '\n',
      'config.json': json.dumps(record, indent=2) + '\n',
    },
  )


def _address(
  deployment: deployment_lib.Deployment, role: str, port: int, index: int | None = None
) -> str:
  """Returns `<pod's hostname>.<service>:<port>`, which every pod of the namespace resolves."""
  namespace = f'.{deployment.namespace}.svc' if deployment.namespace else ''
  return f'{_name(deployment, role, index)}.{deployment.name}{namespace}:{port}'


def _claim(deployment: deployment_lib.Deployment) -> Object:
  spec: Object = {
    'accessModes': ['ReadWriteOnce'],
    'resources': {'requests': {'storage': deployment.storage}},
  }
  if deployment.storage_class:
    spec['storageClassName'] = deployment.storage_class
  return _object('v1', 'PersistentVolumeClaim', deployment, spec=spec)


def _job(
  layout: layout_lib.Layout,
  deployment: deployment_lib.Deployment,
  role: str,
  index: int | None = None,
) -> Object:
  """Returns the Job of one node.

  A lost pod is restarted under the same name; wrong input ends the Job. If one learner host fails,
  the others end, too, and restart to meet it again.
  """
  name = _name(deployment, role, index)

  def ends_with(code: int) -> Object:
    return {'containerName': role, 'operator': 'In', 'values': [code]}

  rules = [
    {'action': 'Ignore', 'onPodConditions': [{'type': 'DisruptionTarget', 'status': 'True'}]},
    {'action': 'FailJob', 'onExitCodes': ends_with(_WRONG_INPUT)},
  ]
  if role == 'learner' and index is not None:
    # Restarts count for the Job of the host that has failed, or not at all if that was preempted.
    rules.append({'action': 'Ignore', 'onExitCodes': ends_with(_OTHER_FAILED)})
  pod = {
    'metadata': {'labels': _labels(deployment, role)},
    'spec': _pod(layout, deployment, role, index, name),
  }
  spec = {'backoffLimit': deployment.retries, 'podFailurePolicy': {'rules': rules}, 'template': pod}
  return _object('batch/v1', 'Job', deployment, name, role, spec=spec)


def _pod(
  layout: layout_lib.Layout,
  deployment: deployment_lib.Deployment,
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
  if role == 'learner' and not index:
    arguments.append(f'--run_dir={_RUN_DIR}/{deployment.name}')
    mounts.append({'name': 'runs', 'mountPath': _RUN_DIR})
    if deployment.storage:
      volumes.append({'name': 'runs', 'persistentVolumeClaim': {'claimName': deployment.name}})
    else:
      volumes.append({'name': 'runs', 'emptyDir': {}})
  if role == 'learner':
    ports.append({'name': 'inference', 'containerPort': _INFERENCE_PORT})
    if index is not None:
      ports.append({'name': 'exchange', 'containerPort': _EXCHANGE_PORT})
  if role == ('replay' if layout.has_replay_nodes else 'learner'):
    ports.append({'name': 'replay', 'containerPort': _REPLAY_PORT})
  secret = {'name': deployment.token_secret, 'key': _TOKEN_KEY}
  placement = deployment.placements[role]
  container: Object = {
    'name': role,
    'image': placement.image,
    'command': ['seed-acme'],
    'args': arguments,
    'env': [{'name': _TOKEN_VARIABLE, 'valueFrom': {'secretKeyRef': secret}}, *_gpus(placement)],
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


def _where(deployment: deployment_lib.Deployment, placement: deployment_lib.Placement) -> Object:
  """Returns the machines that a pod may run on and the Secret that pulls its image."""
  made: Object = {}
  if deployment.image_pull_secret:
    made['imagePullSecrets'] = [{'name': deployment.image_pull_secret}]
  if placement.node_selector:
    made['nodeSelector'] = placement.node_selector
  tolerations = list(placement.tolerations)
  if placement.gpus:  # machines with GPUs usually have a taint for other pods
    tolerations.append({'key': _GPU, 'operator': 'Exists', 'effect': 'NoSchedule'})
  if tolerations:
    made['tolerations'] = tolerations
  return made


def _gpus(placement: deployment_lib.Placement) -> list[Object]:
  """Returns the variable with which a node refuses to train without its GPUs; [] without any."""
  if not placement.gpus:
    return []
  return [{'name': device_names.GPUS_VARIABLE, 'value': str(placement.gpus)}]


def _resources(placement: deployment_lib.Placement) -> Object:
  made: Object = {'requests': {'cpu': placement.cpu, 'memory': placement.memory}}
  if placement.gpus:
    made['limits'] = {_GPU: placement.gpus}
  return made
