"""Runs kept in gs://, with TensorFlow's own client, and a stand-in for the storage."""

import json
import shutil

import pytest

from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.front_end import bucket_folder
from seed_acme.storage import run_directory
from tests.programs import several_commands

pytestmark = pytest.mark.slow

_URL = 'gs://bucket/runs/one'
_ALONE = ('--launch=single_process', '--config.num_actors=1')


@pytest.fixture(autouse=True)
def _environment(storage, monkeypatch, tmp_path):
  for name, value in storage.environment.items():
    monkeypatch.setenv(name, value)
  monkeypatch.setenv('TMPDIR', str(tmp_path))


@pytest.mark.scale
@pytest.mark.timeout(900)
def test_a_killed_run_goes_on_from_its_bucket(runs, storage, until, tmp_path):
  slow = '--config.environment.id=drill_slow:Slow'
  first = runs.train(*_ALONE, runs.endless, slow, run_dir=_URL)

  def checkpoints():
    return [
      name
      for name in storage.names(_URL)
      if name.endswith('/meta.json') and not name.startswith('checkpoints/000000000000')
    ]

  until(lambda: checkpoints() or first.check_runs(), 'a checkpoint in the bucket', 400)
  _check_is_refused(runs, first.folder)
  first.check_runs()
  first.kill_everything()
  assert not (first.folder / 'runs').exists() and not (first.folder / 'gs:').exists()
  counts = max(
    (
      json.loads(storage.path(f'{_URL}/{name}').read_text())['meta']['counts']
      for name in checkpoints()
    ),
    key=lambda counts: counts['updates'],
  )
  assert counts['updates'] > 0
  storage.path(f'{_URL}/lock.json').unlink()  # otherwise its successor waits until it seems dead
  shutil.rmtree(tmp_path)
  tmp_path.mkdir()
  total = counts['agent_steps'] + 500
  options = (*_ALONE, f'--config.total_steps={total}', '--trust_run_dir')
  successor = runs.train(*options, run_dir=_URL, folder=first.folder)
  assert successor.wait(400) == 0, successor.stderr
  assert f'Resuming: {_URL}' in successor.stdout
  assert f'--logdir={_URL}/tensorboard' in successor.stdout
  status = json.loads(storage.path(f'{_URL}/status.json').read_text())
  assert status['status'] == 'finished' and status['resumptions'] == 1
  assert status['updates'] > counts['updates']
  assert {'config.json', 'metrics.csv', 'summary.json'} <= set(storage.names(_URL))
  assert 'lock.json' not in storage.names(_URL)
  assert not list(tmp_path.iterdir()), 'the local copy stays behind'
  _check_is_read(first.folder)


def _check_is_refused(runs, folder):
  """Checks that neither a bucket that another program uses nor a forbidden one is trained in."""
  train = ['train', *runs.small, *_ALONE, runs.endless]
  used, forbidden = several_commands.run(
    folder, [*train, f'--run_dir={_URL}'], [*train, '--run_dir=gs://forbidden/run']
  )
  assert used[0] == 2 and 'is being trained by another program' in used[2]
  assert forbidden[0] == 2
  error = forbidden[2].strip().splitlines()[-1]
  assert error.startswith('error: cannot read gs://forbidden/run/lock.json: ')
  assert 'gcloud auth application-default login' in error


def _check_is_read(folder):
  evaluated, plotted = several_commands.run(
    folder,
    ['evaluate', _URL, '--episodes=2', '--json', '--trust_run_dir'],
    ['plot', _URL, '--out=curve.png'],
  )
  assert evaluated[0] == 0, evaluated[2]
  record = json.loads(evaluated[1])
  assert record['run_dir'] == _URL and record['episodes'] == 2
  assert plotted[0] == 0, plotted[2]
  assert (folder / 'curve.png').exists()


@pytest.mark.processes
def test_a_failure_is_told_by_urls_and_logs_of_each_start_stay(runs, tmp_path):
  url = f'file://{tmp_path}/bucket/run'
  folder = runs.folder()
  first = [
    *_ALONE,
    '--config.environment.id=drill_environments:Raising',
    '--config.environment.settings',
    'at_step',
    '5',  # before the first update is traced
  ]
  for number, options in ((1, first), (2, [*_ALONE, '--trust_run_dir'])):
    run = runs.train(*options, run_dir=url, folder=folder)
    assert run.wait(400) == 1, run.stderr
    assert run.nodes() == [] and 'Traceback' not in run.stdout
    assert run.stderr.splitlines()[-2:] == [
      'error in single_process: RuntimeError: the ball fell off the board',
      f'log: {url}/logs/launcher',
    ]
    there = run_directory.RunDirectory(tmp_path / 'bucket' / 'run')
    assert local.read_json(there.summary)['status'] == 'failed'
    assert local.read_json(there.failure)['log'] == f'{url}/logs/launcher'
    logs = [there.logs / 'launcher', there.logs / 'attempt_1' / 'launcher'][:number]
    assert sorted(path for path in there.logs.rglob('*') if path.is_file()) == sorted(logs)
    assert all('the ball fell off the board' in path.read_text() for path in logs)


def test_a_bucket_without_credentials_is_refused_at_once(runs, monkeypatch, tmp_path):
  monkeypatch.delenv('GOOGLE_AUTH_TOKEN_FOR_TESTING')
  monkeypatch.setenv('GOOGLE_APPLICATION_CREDENTIALS', str(tmp_path / 'absent.json'))
  run = runs.train(*_ALONE, run_dir=_URL)
  assert run.wait(400) == 2
  assert run.stderr.strip() == (
    f'error: --run_dir={_URL} needs credentials of Google Cloud, and '
    f'GOOGLE_APPLICATION_CREDENTIALS={tmp_path}/absent.json is no file: run unset '
    'GOOGLE_APPLICATION_CREDENTIALS && gcloud auth application-default login'
  )


@pytest.mark.parametrize('is_link', [True, False])
@pytest.mark.parametrize('is_absolute', [True, False])
def test_latest_is_never_a_folder_of_its_own(tmp_path, monkeypatch, is_link, is_absolute):
  """`runs/latest`, typed in another folder than that of the runs, or when its run is deleted."""
  monkeypatch.chdir(tmp_path)
  if is_link:
    (tmp_path / 'runs').mkdir()
    (tmp_path / 'runs' / 'latest').symlink_to('catch/deleted')
  path = str(tmp_path / 'runs/latest') if is_absolute else 'runs/latest'
  with pytest.raises(types.UserError, match=f'there is no run at {path}'):
    with bucket_folder.opened(path):
      pass


def test_a_folder_of_another_place_may_be_called_latest(tmp_path):
  with bucket_folder.opened(str(tmp_path / 'latest')) as run:
    assert run.path == tmp_path / 'latest'


def test_the_folder_of_a_local_run_has_no_bucket(tmp_path):
  assert run_directory.create(tmp_path / 'run').name == str(tmp_path / 'run')


def test_a_name_that_leads_out_of_the_folder_is_refused(storage, tmp_path):
  """Whoever can write to a bucket must not choose where its readers store a file."""
  checkpoint = 'gs://bucket/strange/checkpoints/000000000001'
  for name in ('meta.json', '../../../escaped', 'replay/../../../../escaped'):
    path = storage.path(f'{checkpoint}/{name}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{}')
  folder = tmp_path / 'a' / 'b'
  folder.mkdir(parents=True)
  [(code, _, error)] = several_commands.run(folder, ['evaluate', 'gs://bucket/strange'])
  assert code == 2 and 'leads out of gs://bucket/strange/checkpoints/000000000001' in error
  assert not list(tmp_path.rglob('escaped'))
