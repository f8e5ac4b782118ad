"""The Kubernetes manifest: valid by Kubernetes' schemas, and right in what these do not check."""

import pathlib
import re

import kubernetes_validate
import pytest

from seed_acme.configs import registry
from seed_acme.programs.cluster import cluster_file
from tests.programs.tools.manifests import manifests

_ROOT = pathlib.Path(__file__).parents[4]
_VERSIONS = ('1.31', '1.34', kubernetes_validate.latest_version())


@pytest.mark.slow
@pytest.mark.parametrize('version', _VERSIONS)
@pytest.mark.parametrize(
  'fields',
  [
    {},
    {'storage': 'none'},
    {
      'namespace': 'learning',
      'token_secret': 'mine',
      'storage_class': 'fast',
      'learner_gpus': 2,
      'image_pull_secret': 'registry',
      'actor_node_selector': 'a.example.org/b=c,d=',
      'actor_tolerations': 'a.example.org/b=c:NoSchedule,d:NoExecute',
    },
    {'config': 'catch_r2d2', 'overrides': ['--config.replay.separate_process=True']},
    {'learner_gpus': 2, 'overrides': ['--config.num_learner_hosts=2', '--config.num_actors=4']},
  ],
  ids=['plain', 'no_volume', 'all_options', 'replay_apart', 'several_learners'],
)
def test_every_object_is_valid_by_the_schemas_of_kubernetes(make_objects, version, fields):
  fields = dict(fields)
  for one in make_objects(*fields.pop('overrides', []), **fields).values():
    kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_do_find_a_mistake(make_objects):
  job = make_objects()['Job', 'catch-vtrace-learner']
  job['spec']['template']['spec']['hostnam'] = job['spec']['template']['spec'].pop('hostname')
  with pytest.raises(kubernetes_validate.ValidationError):
    kubernetes_validate.validate(job, _VERSIONS[-1], strict=True)


def test_there_is_one_job_for_each_node_and_names_lead_to_it(make_objects):
  made = make_objects(
    '--config.num_actors=3', '--config.num_evaluation_environments=2', namespace='lab'
  )
  jobs = {name: one for (kind, name), one in made.items() if kind == 'Job'}
  assert list(jobs) == ['catch-vtrace-learner', *(f'catch-vtrace-actor-{i}' for i in range(4))]
  service = made['Service', 'catch-vtrace']
  assert service['spec']['clusterIP'] == 'None' and service['spec']['publishNotReadyAddresses']
  for name, job in jobs.items():
    pod = manifests.pod(job)
    assert (pod['hostname'], pod['subdomain']) == (name, 'catch-vtrace')
    labels = job['spec']['template']['metadata']['labels']
    assert service['spec']['selector'].items() <= labels.items()
    assert job['metadata']['namespace'] == 'lab' and len(name) <= 63
    role = 'learner' if name.endswith('learner') else 'actor'
    container = manifests.container(job)
    assert container['image'] == manifests.IMAGE and container['command'] == ['seed-acme']
    assert container['args'][:2] == ['node', role]
    index = [a for a in container['args'] if a.startswith('--index=')]
    assert index == ([] if role == 'learner' else [f'--index={name[-1]}'])


def test_the_nodes_read_what_the_manifest_holds(make_objects, tmp_path, monkeypatch):
  """Cluster file, configuration and token are read exactly as in a pod."""
  made = make_objects(
    '--config.num_actors=3', '--config.agent.discount=0.5', '--config.replay.separate_process=True'
  )
  for name, text in made['ConfigMap', 'catch-vtrace']['data'].items():
    (tmp_path / name).write_text(text)
  token = made['Secret', 'catch-vtrace-token']['stringData']['token']
  container = manifests.container(made['Job', 'catch-vtrace-actor-1'])
  assert container['env'] == [
    {
      'name': 'SEED_ACME_TOKEN',
      'valueFrom': {'secretKeyRef': {'name': 'catch-vtrace-token', 'key': 'token'}},
    }
  ]
  monkeypatch.setenv('SEED_ACME_TOKEN', token)
  cluster = cluster_file.load(str(tmp_path / 'cluster.json'))
  config = registry.load(str(tmp_path / 'config.json'))
  assert config.agent.discount == 0.5 and cluster.token == token and len(cluster.actors) == 3
  assert cluster.learner == 'catch-vtrace-learner.catch-vtrace:8000'
  assert cluster.replay == 'catch-vtrace-replay.catch-vtrace:8001'
  assert cluster.listen == '0.0.0.0:8000'
  assert cluster.admitted() is None  # the NetworkPolicy replaces the fence
  for role in ('learner', 'replay', 'actor'):
    assert cluster_file.with_cluster(config, (), cluster, role).num_actors == 3
  ports = {p['name']: p['port'] for p in made['Service', 'catch-vtrace']['spec']['ports']}
  assert ports == {'inference': 8000, 'replay': 8001}


def test_a_preempted_node_starts_again_and_wrong_input_does_not(make_objects):
  for (kind, _), job in make_objects('--config.replay.separate_process=True', retries=9).items():
    if kind == 'Job':
      rules = job['spec']['podFailurePolicy']['rules']
      assert [rule['action'] for rule in rules] == ['Ignore', 'FailJob']
      assert rules[0]['onPodConditions'][0]['type'] == 'DisruptionTarget'
      assert rules[1]['onExitCodes'] == {
        'containerName': manifests.container(job)['name'],
        'operator': 'In',
        'values': [2],
      }
      assert manifests.pod(job)['restartPolicy'] == 'Never'  # required by pod failure policies
      assert job['spec']['backoffLimit'] == 9


def test_the_learner_keeps_its_run_and_gets_the_accelerators(make_objects):
  made = make_objects(
    storage='20Gi',
    storage_class='fast',
    learner_gpus=1,
    learner_cpu='3500m',
    learner_memory='12Gi',
    actor_cpu='7',
  )
  learner = made['Job', 'catch-vtrace-learner']
  assert manifests.container(learner)['resources'] == {
    'requests': {'cpu': '3500m', 'memory': '12Gi'},
    'limits': {'nvidia.com/gpu': 1},
  }
  assert {'name': 'SEED_ACME_GPUS', 'value': '1'} in manifests.container(learner)['env']
  actor = manifests.container(made['Job', 'catch-vtrace-actor-0'])
  assert 'SEED_ACME_GPUS' not in [variable['name'] for variable in actor['env']]
  assert actor['resources'] == {'requests': {'cpu': '7', 'memory': '1Gi'}}
  claim = made['PersistentVolumeClaim', 'catch-vtrace']['spec']
  assert claim['resources']['requests']['storage'] == '20Gi'
  assert claim['storageClassName'] == 'fast'
  mount = next(m for m in manifests.container(learner)['volumeMounts'] if m['name'] == 'runs')
  run_dir = next(a for a in manifests.container(learner)['args'] if a.startswith('--run_dir='))
  assert run_dir == f'--run_dir={mount["mountPath"]}/catch-vtrace'
  volume = next(v for v in manifests.pod(learner)['volumes'] if v['name'] == 'runs')
  assert volume['persistentVolumeClaim'] == {'claimName': 'catch-vtrace'}
  lost = make_objects(storage='none')
  assert ('PersistentVolumeClaim', 'catch-vtrace') not in lost
  assert {'name': 'runs', 'emptyDir': {}} in manifests.pod(lost['Job', 'catch-vtrace-learner'])[
    'volumes'
  ]


@pytest.mark.slow
def test_the_roles_get_their_own_images_and_machines(make_objects):
  made = make_objects(
    '--config.replay.separate_process=True',
    image=f'{manifests.IMAGE}-gpu',
    actor_image=manifests.IMAGE,
    image_pull_secret='registry',
    learner_gpus=1,
    learner_node_selector='cloud.google.com/gke-accelerator=nvidia-tesla-t4',
    actor_node_selector='spot=true,disk=',
    actor_tolerations='spot=true:NoSchedule,x:NoExecute',
  )
  learner, replay, actor = (
    made['Job', f'catch-vtrace-{name}'] for name in ('learner', 'replay', 'actor-0')
  )
  assert [manifests.container(job)['image'] for job in (learner, replay, actor)] == [
    f'{manifests.IMAGE}-gpu',
    manifests.IMAGE,
    manifests.IMAGE,
  ]
  for job in (learner, replay, actor):
    assert manifests.pod(job)['imagePullSecrets'] == [{'name': 'registry'}]
  assert manifests.pod(learner)['nodeSelector'] == {
    'cloud.google.com/gke-accelerator': 'nvidia-tesla-t4'
  }
  assert manifests.pod(learner)['tolerations'] == [
    {'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoSchedule'}
  ]
  assert manifests.pod(actor)['nodeSelector'] == {'spot': 'true', 'disk': ''}
  assert manifests.pod(actor)['tolerations'] == [
    {'key': 'spot', 'operator': 'Equal', 'value': 'true', 'effect': 'NoSchedule'},
    {'key': 'x', 'operator': 'Exists', 'effect': 'NoExecute'},
  ]
  assert not {'nodeSelector', 'tolerations'} & manifests.pod(replay).keys()
  plain = manifests.pod(make_objects()['Job', 'catch-vtrace-actor-0'])
  assert not {'nodeSelector', 'tolerations', 'imagePullSecrets'} & plain.keys()


def test_no_pod_runs_as_root_and_the_image_has_a_user_by_number(make_objects):
  for (kind, _), job in make_objects('--config.replay.separate_process=True').items():
    if kind == 'Job':
      assert manifests.pod(job)['securityContext']['runAsNonRoot'] is True
  for name in ('Dockerfile', 'Dockerfile.gpu'):  # Kubernetes cannot tell for a user name
    users = re.findall(r'^USER (.*)', (_ROOT / name).read_text(), re.MULTILINE)
    assert users and int(users[-1]) > 0


@pytest.mark.slow
def test_time_to_save_a_replay_memory_is_left_before_a_kill(make_objects):
  seconds = {
    config: manifests.pod(make_objects(config=config, name='x')['Job', 'x-learner'])[
      'terminationGracePeriodSeconds'
    ]
    for config in ('catch_vtrace', 'atari_r2d2')
  }
  assert seconds['catch_vtrace'] == 60 < 300 < seconds['atari_r2d2']


def test_a_token_of_ones_own_stands_nowhere(make_objects):
  made = make_objects(token_secret='mine')
  assert not any(kind == 'Secret' for kind, _ in made)
  secret = manifests.container(made['Job', 'catch-vtrace-learner'])['env'][0]['valueFrom'][
    'secretKeyRef'
  ]
  assert secret == {'name': 'mine', 'key': 'token'}
