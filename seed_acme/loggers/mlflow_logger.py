"""Logs metrics to MLflow: `--config.learner.logger=mlflow`. Needs the extra `mlflow`.

MLFLOW_TRACKING_URI names a server or a folder; without it rows go to the folder `mlruns` where
the run is started. MLFLOW_EXPERIMENT_NAME names the experiment.
"""

from __future__ import annotations

import os
import pathlib
import re
import time

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.files import local
from seed_acme.loggers import background
from seed_acme.loggers import tracking
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

FILE = 'mlflow.json'
_FOLDER = 'mlruns'
_MAX_PARAMS = 100  # MLflow's limit for one call
_MAX_CHARACTERS = 500  # MLflow's limit for a parameter, in every version and store
_ENDS = {'finished': 'FINISHED', 'stopped': 'KILLED'}


class MlflowLogger:
  """One MLflow run per run folder; a resumed run continues it.

  The configuration becomes parameters, which MLflow never changes, so a value that a resumed run
  changes becomes a tag `resumed.<field>`. Rows are sent in another thread: if the server
  disappears, rows are lost, which a notice reports, but the run goes on.
  """

  def __init__(self, config: config_lib.ExperimentConfig, run_dir: pathlib.Path):
    mlflow = tracking.import_package('mlflow')
    self._entities = tracking.import_package('mlflow.entities')
    self._error = mlflow.MlflowException
    self._run_dir = run_dir
    self._uri = os.environ.get('MLFLOW_TRACKING_URI') or pathlib.Path(_FOLDER).absolute().as_uri()
    if '://' not in self._uri or self._uri.startswith('file:'):
      os.environ.setdefault('MLFLOW_ALLOW_FILE_STORE', 'true')  # MLflow 3 requires it
    try:
      self._client = mlflow.MlflowClient(tracking_uri=self._uri)
      self._run_id = self._find_or_create(config)
      self._describe(config)
    except self._error as error:
      raise types.Failure(
        tracking.without_password(
          f'MLflow at {self._uri} cannot be used: {error}; MLFLOW_TRACKING_URI '
          'names another server or folder'
        )
      ) from None
    self._failed_rows = 0
    self._sender = background.Background('mlflow', self._tell)

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Queues a row."""
    now_ms = int(time.time() * 1000)
    row = [
      self._entities.Metric(_name(name), float(value), now_ms, int(agent_steps))
      for name, value in metrics.items()
    ]
    self._sender.put(lambda: self._client.log_batch(self._run_id, metrics=row))

  def write_video(self, recording: types.Recording) -> None:
    """Queues the file as an artifact in the folder `videos` of the run."""
    path = str(recording.video)
    self._sender.put(lambda: self._client.log_artifact(self._run_id, path, 'videos'))

  def close(self) -> None:
    """Waits for rows that have not been sent yet, but not for ever."""
    end = _ENDS.get(tracking.status(self._run_dir), 'FAILED')
    self._sender.put(lambda: self._client.set_terminated(self._run_id, status=end))
    if not self._sender.close(tracking.CLOSE_S) or self._sender.num_dropped:
      self._tell(TimeoutError(f'not all rows were sent within {tracking.CLOSE_S:g} s of the end'))

  def _find_or_create(self, config: config_lib.ExperimentConfig) -> str:
    saved = tracking.load(self._run_dir / FILE)
    if saved:
      self._check_there(saved['id'])
      self._client.update_run(saved['id'], status='RUNNING')
      return saved['id']
    run = self._client.create_run(
      self._experiment(os.environ.get('MLFLOW_EXPERIMENT_NAME') or tracking.PROJECT),
      run_name=tracking.run_name(config.name, self._run_dir),
      tags={'seed_acme.run_dir': str(self._run_dir)},
    )
    local.write_json(self._run_dir / FILE, {'id': run.info.run_id})
    return run.info.run_id

  def _check_there(self, run_id: str) -> None:
    try:
      self._client.get_run(run_id)
    except self._error as error:
      if error.error_code != 'RESOURCE_DOES_NOT_EXIST':
        raise
      raise types.UserError(
        f'MLflow at {tracking.without_password(self._uri)} has no run {run_id}, in which this run '
        f'is to go on: set MLFLOW_TRACKING_URI as it was before, or delete {self._run_dir / FILE}'
      ) from None

  def _experiment(self, name: str) -> str:
    experiment = self._client.get_experiment_by_name(name)
    if experiment is not None:
      return experiment.experiment_id
    try:
      return self._client.create_experiment(name)
    except self._error:
      experiment = self._client.get_experiment_by_name(name)
      if experiment is None:
        raise
      return experiment.experiment_id  # another run has just made it

  def _describe(self, config: config_lib.ExperimentConfig) -> None:
    """Sets the parameters of a new run; for a resumed one, adds new ones and tags for changes."""
    now = {
      _name(name): str(value)[:_MAX_CHARACTERS]
      for name, value in saved_config.flatten(config).items()
    }
    data = self._client.get_run(self._run_id).data
    before, tags = data.params, data.tags
    fresh = [self._entities.Param(name, value) for name, value in now.items() if name not in before]
    for i in range(0, len(fresh), _MAX_PARAMS):
      self._client.log_batch(self._run_id, params=fresh[i : i + _MAX_PARAMS])
    for name, value in now.items():
      tag = f'resumed.{name}'
      if before.get(name, value) != value or tags.get(tag, value) != value:
        self._client.set_tag(self._run_id, tag, value)

  def _tell(self, error: Exception) -> None:
    """Adds a notice for the first error only, as an unreachable server would fill the screen."""
    self._failed_rows += 1
    if self._failed_rows == 1:
      run_directory.RunDirectory(self._run_dir).add_notice(
        tracking.without_password(
          f'MLflow at {self._uri} lacks rows or videos: {error}. The run folder has them all'
        )
      )


def _name(name: str) -> str:
  """Replaces the characters that MLflow does not accept."""
  return re.sub(r'[^\w\-. /]', '_', name)
