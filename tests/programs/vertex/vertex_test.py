"""`--launch=vertex_ai` without an account: dry runs, and the replicas themselves.

They share a process, because the libraries of a dry run take seconds to load.
"""

import json
import re
import signal
import zipfile

import pytest

from seed_acme.programs import cli
from seed_acme.programs.vertex import image as cloud_image
from tests.programs.vertex import containers
from tests.programs.vertex import launching

pytestmark = pytest.mark.slow

_URL = 'gs://bucket/vertex/run'
_WHEEL = 'dm_launchpad-0.5.1+seed-py3-none-any.whl'  # not on any index
_STEPS = 40_000  # so many that the learner can be lost twice before its end, and that it learns
_HOSTS_URL = 'gs://bucket/vertex/learners'
_HOSTS_STEPS = 20_000  # so many that each host can be lost before the end


@pytest.fixture(scope='module')
def dry_run(tmp_path_factory):
  """Makes a dry run of a small run on Catch with evaluation."""
  return launching.dry_run(
    tmp_path_factory.mktemp('dry'),
    f'--run_dir={_URL}',
    '--config.num_actors=1',
    '--config.environments_per_actor=32',
    '--config.num_evaluation_environments=2',
    f'--config.total_steps={_STEPS}',
    '--config.checkpoint.period_s=1',
    '--cloud.learner=n1-standard-8',
  )


def test_the_job_has_the_learners_pool_first(dry_run):
  pools = dry_run.spec()['workerPoolSpecs']
  assert [pool['machineSpec'] for pool in pools] == [
    {'machineType': 'n1-standard-8'},
    {'machineType': 'n1-standard-4'},
  ]
  assert [pool['replicaCount'] for pool in pools] == ['1', '2']
  images = [pool['containerSpec']['imageUri'] for pool in pools]
  for image, group in zip(images, ('learner', 'actor')):
    assert re.fullmatch(
      r'us-central1-docker\.pkg\.dev/my-project-123/seed-acme/'
      rf'catch-vtrace-{group}:\d{{8}}-\d{{6}}',
      image,
    )


def test_it_says_what_would_run_and_what_is_missing(dry_run):
  for text in (
    'Vertex AI, project my-project-123, region us-central1',
    f'Run: {_URL}',
    'Pool 0: 1 x n1-standard-8: learner',
    'Pool 1: 2 x n1-standard-4: actors, 32 environments each, 32 in all',
    'credentials [',
    'APIs [not checked]',
    'gcloud services enable aiplatform.googleapis.com',
    'image repository [not checked]',
    'gcloud artifacts repositories create seed-acme',
    'bucket [not checked]',
    'gcloud storage buckets create gs://bucket',
    'quota [not checked]: cpus >= 16',
    'gcloud alpha services quota list',
  ):
    assert text in dry_run.stdout, dry_run.stdout


def test_a_context_holds_the_clean_package_its_pins_and_the_nodes(dry_run):
  for group in ('learner', 'actor'):
    app = dry_run.folder / group / cloud_image.APP
    assert {path.name for path in app.iterdir()} == {
      'seed_acme',
      'job.pkl',
      'process_entry.py',
      'requirements.txt',
      _WHEEL,
    }
    lines = (app / 'requirements.txt').read_text().splitlines()
    assert '--find-links=.' in lines and 'dm-launchpad==0.5.1+seed' in lines
    with zipfile.ZipFile(app / _WHEEL) as wheel:
      assert {'launchpad/program.py', 'courier/python/server.py'} <= set(wheel.namelist())
      assert not [name for name in wheel.namelist() if 'INSTALLER' in name or '.pyc' in name]
    lines = (dry_run.folder / group / 'Dockerfile').read_text().splitlines()
    assert f'FROM {cloud_image.python_image()}' in lines
    assert 'RUN python -m pip install --no-cache-dir -r requirements.txt' in lines
    user = lines.index('USER 1000')  # a number, and after all steps that need root
    assert not any(line.startswith('RUN') for line in lines[user:])
    assert lines[user + 1].startswith('ENTRYPOINT')
    assert 'COPY --chown=1000 app/ ./' in lines
    entry = (dry_run.folder / group / 'entrypoint.sh').read_text()
    assert entry.splitlines()[-1] == 'exec python -m process_entry --data_file=job.pkl "$@"'


def _images(dry_run):
  """Returns the group of nodes that each pool's image is for."""
  pools = dry_run.spec()['workerPoolSpecs']
  return [re.search(r'-(\w+):', pool['containerSpec']['imageUri'])[1] for pool in pools]


def test_nodes_of_one_machine_type_are_pools_of_their_own_and_the_learner_is_first(
  tmp_path, empty_images
):
  dry_run = launching.dry_run(
    tmp_path,
    *(f'--cloud.{kind}=n1-standard-4' for kind in ('learner', 'replay', 'actors')),
    '--config.num_actors=1',
    '--config.replay.separate_process=True',
  )
  assert re.findall(r'^Pool (\d): 1 x n1-standard-4: (\w+)', dry_run.stdout, re.M) == [
    ('0', 'learner'),
    ('1', 'replay'),
    ('2', 'actors'),
  ]
  assert _images(dry_run) == ['learner', 'replay', 'actor']


def test_the_first_learner_host_is_a_pool_and_the_others_are_the_next(tmp_path, empty_images):
  dry_run = launching.dry_run(
    tmp_path,
    '--config.num_learner_hosts=3',
    '--config.agent.batch_size=24',
    '--config.replay.queue_size=48',
    '--config.num_actors=3',
    '--config.num_evaluation_environments=2',
  )
  pools = dry_run.spec()['workerPoolSpecs']
  assert [pool['replicaCount'] for pool in pools] == ['1', '2', '4']
  assert [pool['machineSpec']['machineType'] for pool in pools] == [
    'n1-standard-8',
    'n1-standard-8',
    'n1-standard-4',
  ]
  assert _images(dry_run) == ['learner', 'learners', 'actor']
  for text in (
    'Pool 0: 1 x n1-standard-8: learner\n',
    'Pool 1: 2 x n1-standard-8: learner hosts 1 ... 2\n',
    'Pool 2: 4 x n1-standard-4: actors, 32 environments each, 96 in all',
    'quota [not checked]: cpus >= 40',
  ):
    assert text in dry_run.stdout


def test_a_folder_with_files_is_not_written_into(capsys, tmp_path, monkeypatch):
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  (tmp_path / 'mine').write_text('')
  monkeypatch.chdir(tmp_path)
  assert cli.main([*launching.VERTEX, *launching.CLOUD, '--dry_run', f'--out={tmp_path}']) == 2
  assert 'is there already' in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ['mine']


@pytest.fixture
def replicas(dry_run, storage, tmp_path):
  started = containers.Replicas(dry_run, storage, tmp_path)
  yield started
  started.kill()


@pytest.mark.processes
def test_a_replica_that_waits_for_the_learner_ends_at_once_when_it_is_stopped(replicas, until):
  replicas.start('workerpool1', 'actor', 0)
  until(lambda: 'waiting for the learner' in replicas.log('actor', 0), 'its message')
  assert replicas.terminate('actor', 0) == 143, replicas.logs()
  assert 'Traceback' not in replicas.log('actor', 0)
  assert 'Killing' not in replicas.log('actor', 0), 'Launchpad lost its patience'


@pytest.mark.scale
@pytest.mark.timeout(1200)
def test_the_replicas_train_to_the_end_and_survive_losses_and_stops(
  dry_run, replicas, storage, until
):
  def read(name):
    path = storage.path(f'{_URL}/{name}')
    return json.loads(path.read_text()) if path.exists() else {}

  def saved():
    """Returns the updates of the newest whole checkpoint in the bucket."""
    found = [
      re.fullmatch(r'checkpoints/(\d+)(\.again)?/meta\.json', name) for name in storage.names(_URL)
    ]
    return max([int(match[1]) for match in found if match], default=0)

  def wait_for_checkpoint(since):
    learner = replicas.processes['learner', 0]
    until(lambda: saved() > since or learner.poll() is not None, 'a checkpoint', launching.HANG_S)
    assert learner.poll() is None, replicas.logs()

  replicas.start_all()
  wait_for_checkpoint(0)
  assert replicas.terminate('actor', 0) == 143, replicas.logs()  # the learner idles
  # Logs are copied every ten seconds; later lines are lost by a kill.
  until(lambda: 'logs/learner/0' in storage.names(_URL), 'the log of the learner', launching.HANG_S)
  updates = saved()
  replicas.start('workerpool1', 'actor', 0)  # Vertex AI restarts a container in its place
  wait_for_checkpoint(updates)
  replicas.processes['learner', 0].kill()
  replicas.processes['learner', 0].wait()
  updates = saved()
  replicas.start('workerpool0', 'learner', 0)
  wait_for_checkpoint(updates)
  assert replicas.terminate('learner', 0) == 143, replicas.logs()
  stopped = read('status.json')
  assert read('summary.json')['status'] == stopped['status'] == 'stopped'
  assert saved() == stopped['updates'] > updates
  assert 0 < stopped['agent_steps'] < _STEPS, 'it was over too soon for this test'
  assert 'lock.json' not in storage.names(_URL)
  replicas.start('workerpool0', 'learner', 0)
  assert set(replicas.wait().values()) == {0}, replicas.logs()
  final = read('status.json')
  assert final['status'] == 'finished' and final['agent_steps'] >= _STEPS
  assert final['resumptions'] == 2
  assert final['episode_return_last_100'] > 0.5, 'it did not learn'
  assert final['evaluation_return'] is not None
  assert read('summary.json')['status'] == 'finished'
  assert read('summary.json')['agent_steps'] == final['agent_steps']
  names = storage.names(_URL)
  assert {'config.json', 'metrics.csv', 'plot.png'} <= set(names)
  assert not {'lock.json', 'failure.json'} & set(names)
  assert any(name.startswith('tensorboard/events') for name in names)
  assert {name for name in names if name.startswith('logs/')} == {
    'logs/attempt_1/learner/0',
    'logs/attempt_2/learner/0',
    'logs/learner/0',
  }
  assert ' of 40k steps ' in storage.path(f'{_URL}/logs/learner/0').read_text()
  _check_loaded(dry_run, replicas.loaded())
  _start_once_more(replicas, storage, final)


def _start_once_more(replicas, storage, final):
  """Restarts a learner that was lost after its last checkpoint; it completes what was missing."""
  for name in ('summary.json', 'plot.png'):
    storage.path(f'{_URL}/{name}').unlink()
  replicas.start_all()
  assert set(replicas.wait().values()) == {0}, replicas.logs()
  summary = json.loads(storage.path(f'{_URL}/summary.json').read_text())
  assert summary['status'] == 'finished' and summary['agent_steps'] == final['agent_steps']
  assert {'plot.png', 'logs/attempt_3/learner/0'} <= set(storage.names(_URL))
  assert 'lock.json' not in storage.names(_URL)


def _check_loaded(dry_run, loaded):
  """Checks that all code came from the contexts, and that only the learner loaded large libraries.

  The process that tries an environment is a child of the learner.
  """
  by_kind = {'learner': [], 'actor_supervisor': [], 'door': [], 'actor': []}
  for record in loaded:
    by_kind[record['kind']].append(record)
    group = 'learner' if record['kind'] in ('learner', 'door') else 'actor'
    app = str(dry_run.folder / group / cloud_image.APP)
    assert record['files'] and all(name.startswith(app) for name in record['files'])
    assert record['heavy'] == (['tensorflow', 'reverb'] if record['kind'] == 'learner' else [])
  assert all(by_kind.values())


@pytest.fixture
def hosts(storage, tmp_path_factory, tmp_path):
  """Several learner hosts."""
  dry_run = launching.dry_run(
    tmp_path_factory.mktemp('dry'),
    f'--run_dir={_HOSTS_URL}',
    '--config.num_learner_hosts=2',
    '--config.num_actors=2',
    f'--config.total_steps={_HOSTS_STEPS}',
    '--config.checkpoint.period_s=1',
  )
  started = containers.Replicas(dry_run, storage, tmp_path)
  yield started
  started.kill()


@pytest.mark.scale
@pytest.mark.processes
@pytest.mark.timeout(1200)
def test_learner_hosts_meet_again_after_each_loss_and_train_to_the_end(hosts, storage, until):
  def status():
    path = storage.path(f'{_HOSTS_URL}/status.json')
    return json.loads(path.read_text()) if path.exists() else {}

  def wait_for_updates(resumptions):
    # At least as many: a host that comes back late on a busy machine costs the others one more.
    is_training = lambda now: (
      now.get('resumptions', -1) >= resumptions and now['status'] == 'running'
    )
    chief = hosts.processes['learner', 0]
    try:
      until(lambda: is_training(status()) or chief.poll() is not None, 'updates', launching.HANG_S)
    except AssertionError as error:
      raise AssertionError(f'{error}: {status()}\n{hosts.logs()}') from error
    assert chief.poll() is None, hosts.logs()

  hosts.start_all()
  wait_for_updates(0)
  lost = hosts.processes['learners', 0]
  lost.kill()
  lost.wait()
  hosts.start('workerpool1', 'learners', 0)  # Vertex AI restarts a container in its place
  wait_for_updates(1)
  assert hosts.terminate('learner', 0) == 143, hosts.logs()
  hosts.start('workerpool0', 'learner', 0)
  assert set(hosts.wait().values()) == {0}, hosts.logs()
  final = status()
  assert final['status'] == 'finished' and final['agent_steps'] >= _HOSTS_STEPS, hosts.logs()
  assert final['resumptions'] >= 2
  assert all(actor['rows'] for actor in final['actors'])
  for key in (('learner', 0), ('learners', 0)):
    assert 'Starting again, to meet the other learner hosts' in hosts.log(*key)
