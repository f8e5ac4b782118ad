"""The real MLflow, with a folder as its store: rows, parameters, a resumed run, and failures."""

import dataclasses
import importlib.util
import sys

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.loggers import mlflow_logger
from seed_acme.loggers import own
from seed_acme.storage import run_directory

# Importing it here would cost every test process half a second.
if importlib.util.find_spec('mlflow') is None:
  pytest.skip('MLflow is not installed', allow_module_level=True)
pytestmark = pytest.mark.filterwarnings('ignore::FutureWarning')  # MLflow's warning about folders


@pytest.fixture(name='run', autouse=True)
def _run(tmp_path, monkeypatch):
  for name in ('MLFLOW_TRACKING_URI', 'MLFLOW_EXPERIMENT_NAME', 'MLFLOW_ALLOW_FILE_STORE'):
    monkeypatch.setenv(name, '')  # undoes the logger's settings afterwards
    monkeypatch.delenv(name)
  monkeypatch.chdir(tmp_path)
  return run_directory.create(tmp_path / 'run')


def _config(**changes):
  return dataclasses.replace(
    registry.load('catch_vtrace'), learner=config_lib.LearnerConfig(logger='mlflow'), **changes
  )


def _make(run, **changes):
  config = _config(**changes)
  own.check(config)
  (logger,) = own.make(config, run)
  return logger


def _client(tmp_path, folder='mlruns'):
  import mlflow

  return mlflow.MlflowClient(tracking_uri=(tmp_path / folder).as_uri())


def _history(client, run_id, name):
  return [(point.step, point.value) for point in client.get_metric_history(run_id, name)]


@pytest.mark.slow
def test_a_resumed_run_goes_on_in_the_same_one(run, tmp_path):
  first = _make(run)
  first.write(100, {'loss/total': 0.5, 'odd:name': 2})
  first.write(200, {'loss/total': 0.25})
  first.close()
  client = _client(tmp_path)
  run_id = local.read_json(run.path / mlflow_logger.FILE)['id']
  assert client.get_run(run_id).info.status == 'FAILED'  # it had not reported a good end
  resumed = _make(run, num_actors=7)
  assert client.get_run(run_id).info.status == 'RUNNING'
  resumed.write(150, {'loss/total': 0.125})
  local.write_json(run.status, {'status': 'finished'})
  resumed.close()

  assert sorted(_history(client, run_id, 'loss/total')) == [(100, 0.5), (150, 0.125), (200, 0.25)]
  assert _history(client, run_id, 'odd_name') == [(100, 2)]
  experiment = client.get_experiment_by_name('seed_acme')
  assert [found.info.run_id for found in client.search_runs([experiment.experiment_id])] == [run_id]
  found = client.get_run(run_id)
  assert found.info.status == 'FINISHED' and found.info.run_name == 'catch_vtrace run'
  assert found.data.params['agent.batch_size'] == str(_config().agent.batch_size)
  assert found.data.params['num_actors'] == str(_config().num_actors)
  assert found.data.tags['resumed.num_actors'] == '7'
  assert not run.notices.exists()
  _make(run).close()  # with the value that it began with
  assert client.get_run(run_id).data.tags['resumed.num_actors'] == str(_config().num_actors)


def test_a_filmed_episode_is_an_artifact(run, tmp_path):
  film = tmp_path / '000000000090.mp4'
  film.write_bytes(b'a film')
  logger = _make(run)
  logger.write_video(types.Recording(90, film, film, 12.0, 1500, False))
  logger.close()
  run_id = local.read_json(run.path / mlflow_logger.FILE)['id']
  [artifact] = _client(tmp_path).list_artifacts(run_id, 'videos')
  assert artifact.path == 'videos/000000000090.mp4' and artifact.file_size == 6
  assert not run.notices.exists()


def test_server_and_experiment_are_those_of_the_environment(run, tmp_path, monkeypatch):
  monkeypatch.setenv('MLFLOW_TRACKING_URI', str(tmp_path / 'theirs'))
  monkeypatch.setenv('MLFLOW_EXPERIMENT_NAME', 'an experiment')
  _make(run).close()
  experiment = _client(tmp_path, 'theirs').get_experiment_by_name('an experiment')
  assert len(_client(tmp_path, 'theirs').search_runs([experiment.experiment_id])) == 1
  monkeypatch.setenv('MLFLOW_TRACKING_URI', str(tmp_path / 'another'))
  with pytest.raises(types.UserError, match='has no run .*set MLFLOW_TRACKING_URI as it was'):
    _make(run)


def test_a_password_in_the_address_of_the_server_is_told_nobody(run, monkeypatch):
  import mlflow

  monkeypatch.setenv('MLFLOW_HTTP_REQUEST_MAX_RETRIES', '0')
  monkeypatch.setenv('MLFLOW_TRACKING_URI', 'http://alice:S3cret@127.0.0.1:9')
  with pytest.raises(types.Failure, match='MLflow at http://127.0.0.1:9 cannot be used') as caught:
    _make(run)
  assert 'S3cret' not in str(caught.value) and caught.value.__suppress_context__
  monkeypatch.delenv('MLFLOW_TRACKING_URI')
  logger = _make(run)

  def fail(*_, **__):
    raise OSError('http://alice:S3cret@127.0.0.1:9/api is away')

  monkeypatch.setattr(mlflow.MlflowClient, 'log_batch', fail)
  logger.write(1, {'a': 1})
  logger.close()
  assert 'http://127.0.0.1:9/api is away' in run.notices.read_text()
  assert 'S3cret' not in run.notices.read_text()


def test_rows_that_cannot_be_sent_cost_a_notice_and_not_the_run(run, tmp_path, monkeypatch):
  import mlflow

  logger = _make(run)
  send = mlflow.MlflowClient.log_batch

  def fail_before_the_third(client, run_id, metrics):
    if metrics[0].step < 3:
      raise mlflow.MlflowException('the server is away')
    send(client, run_id, metrics=metrics)

  monkeypatch.setattr(mlflow.MlflowClient, 'log_batch', fail_before_the_third)
  for step in (1, 2, 3):
    logger.write(step, {'a': step})
  logger.close()
  notices = run.notices.read_text().splitlines()
  assert len(notices) == 1 and 'lacks rows or videos: the server is away' in notices[0]
  run_id = local.read_json(run.path / mlflow_logger.FILE)['id']
  assert _history(_client(tmp_path), run_id, 'a') == [(3, 3)]


def test_without_mlflow_the_extra_is_named(run, monkeypatch):
  monkeypatch.setitem(sys.modules, 'mlflow', None)
  with pytest.raises(types.UserError, match=r"needs the package mlflow: .*'\.\[mlflow\]'"):
    mlflow_logger.MlflowLogger(_config(), run.path)
