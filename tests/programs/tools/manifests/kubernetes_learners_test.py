"""The Kubernetes manifest of several learner hosts. The schemas see it in `kubernetes_test.py`."""

import pytest

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.system import processes
from seed_acme.programs.tools.manifests import command as manifest_command
from tests.programs.tools.manifests import manifests

_TWO = ('--config.num_learner_hosts=2', '--config.num_actors=3')


@pytest.fixture
def made(make_objects):
  return make_objects(*_TWO)


def _learners(made):
  return [made['Job', f'catch-vtrace-learner-{index}'] for index in (0, 1)]


def test_each_host_is_a_job_with_its_number(made):
  jobs = [name for kind, name in made if kind == 'Job']
  assert jobs == [
    *(f'catch-vtrace-learner-{index}' for index in range(2)),
    *(f'catch-vtrace-actor-{index}' for index in range(3)),
  ]
  service = made['Service', 'catch-vtrace']['spec']
  assert {'name': 'exchange', 'port': 8002} in service['ports']
  for index, job in enumerate(_learners(made)):
    arguments = manifests.container(job)['args']
    assert arguments[:2] == ['node', 'learner'] and f'--index={index}' in arguments
    pod = manifests.pod(job)
    assert (pod['hostname'], pod['subdomain']) == (f'catch-vtrace-learner-{index}', 'catch-vtrace')
    assert service['selector'].items() <= job['spec']['template']['metadata']['labels'].items()
    ports = {port['name']: port['containerPort'] for port in manifests.container(job)['ports']}
    assert ports == {'inference': 8000, 'exchange': 8002, 'replay': 8001}


def test_one_host_has_no_exchange(make_objects):
  made = make_objects()
  assert ('Job', 'catch-vtrace-learner') in made
  assert '"exchange"' not in made['ConfigMap', 'catch-vtrace']['data']['cluster.json']
  ports = made['Service', 'catch-vtrace']['spec']['ports']
  assert 'exchange' not in {port['name'] for port in ports}


@pytest.mark.slow
def test_only_the_first_has_the_volume_of_the_run(made):
  for index, job in enumerate(_learners(made)):
    has_run = index == 0
    names = {volume['name'] for volume in manifests.pod(job)['volumes']}
    mounts = {mount['name'] for mount in manifests.container(job)['volumeMounts']}
    folders = [a for a in manifests.container(job)['args'] if a.startswith('--run_dir=')]
    assert ('runs' in names, 'runs' in mounts, len(folders) == 1) == (has_run,) * 3


@pytest.mark.parametrize('namespace', ['', 'lab'])
def test_the_nodes_find_every_host_by_name(make_objects, tmp_path, monkeypatch, namespace):
  made = make_objects(*_TWO, namespace=namespace)
  for name, text in made['ConfigMap', 'catch-vtrace']['data'].items():
    (tmp_path / name).write_text(text)
  monkeypatch.setenv('SEED_ACME_TOKEN', 'a-token-of-the-run')
  cluster = cluster_file.load(str(tmp_path / 'cluster.json'))
  service = 'catch-vtrace.lab.svc' if namespace else 'catch-vtrace'
  for port, addresses in ((8000, cluster.learners), (8002, cluster.exchange)):
    assert addresses == tuple(f'catch-vtrace-learner-{i}.{service}:{port}' for i in range(2))
  assert [cluster.listen_of(index) for index in (0, 1)] == ['0.0.0.0:8000'] * 2
  config = registry.load(str(tmp_path / 'config.json'))
  for role, index in (('learner', 0), ('learner', 1), ('actor', 2)):
    own = cluster_file.with_cluster(config, (), cluster, role, index)
    assert (own.num_learner_hosts, own.num_actors) == (2, 3)
    assert [layout_lib.Layout.of(own).actors[actor].learner for actor in range(3)] == [0, 1, 0]


def test_a_host_that_another_one_leaves_alone_starts_again_for_nothing(made, make_objects):
  """The failure counts for the host that failed, and a preemption for none."""
  for job in _learners(made):
    rules = job['spec']['podFailurePolicy']['rules']
    assert [rule['action'] for rule in rules] == ['Ignore', 'FailJob', 'Ignore']
    codes = [rule['onExitCodes']['values'] for rule in rules[1:]]
    assert codes == [[processes.USER_ERROR_EXIT], [processes.OTHER_NODE_EXIT]]
    assert manifests.pod(job)['restartPolicy'] == 'Never'  # the Job makes a new pod
    assert job['spec']['backoffLimit'] == 6
  for alone in (made['Job', 'catch-vtrace-actor-0'], make_objects()['Job', 'catch-vtrace-learner']):
    assert len(alone['spec']['podFailurePolicy']['rules']) == 2


@pytest.mark.slow
def test_a_memory_is_divided_and_not_saved(capsys):
  notices, seconds = [], []
  for number in (1, 2):
    arguments = manifests.arguments(f'--config.num_learner_hosts={number}', config='atari_r2d2')
    assert manifest_command.write(*arguments) == 0
    shown = capsys.readouterr()
    notices.append(float(shown.err.partition(' takes up to ')[2].partition('Gi')[0]))
    seconds.append(int(shown.out.partition('terminationGracePeriodSeconds: ')[2].split()[0]))
  assert notices[0] == pytest.approx(2 * notices[1], rel=0.01)
  assert seconds[0] > 300 > 60 == seconds[1]


def test_the_command_shows_the_host_that_has_the_run(capsys, tmp_path):
  path = tmp_path / 'run.yaml'
  assert (
    cli.main(
      ['manifest', '--config=catch_vtrace', f'--image={manifests.IMAGE}', f'--out={path}', *_TWO]
    )
    == 0
  )
  assert 'kubectl logs -f job/catch-vtrace-learner-0\n' in capsys.readouterr().out


def test_hosts_that_cannot_share_the_work_are_refused():
  with pytest.raises(types.UserError, match=r'num_learner_hosts \(2\) is more than num_actors'):
    manifest_command.write(
      *manifests.arguments('--config.num_learner_hosts=2', '--config.num_actors=1')
    )
