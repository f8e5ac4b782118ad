"""Logs metrics to Weights & Biases: `--config.learner.logger=wandb`. Needs the extra `wandb`.

wandb sends from its own process; what it could not send stays in `RUN_DIR/wandb`, for
`wandb sync`. The project and other settings are set by wandb's own environment variables.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.files import local
from seed_acme.loggers import background
from seed_acme.loggers import terminal
from seed_acme.loggers import tracking
from seed_acme.storage import recordings
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

FILE = 'wandb.json'
_ENDED_WELL = ('finished', 'stopped')


class WandbLogger:
  """One W&B run per run folder; a resumed run continues it.

  W&B counts rows as steps and refuses to go back, but a resumed run goes back to its checkpoint.
  So `wandb.json` keeps counting rows, and charts are drawn over `agent_steps`.
  """

  def __init__(self, config: config_lib.ExperimentConfig, run_dir: pathlib.Path):
    self._wandb = wandb = tracking.import_package('wandb')
    self._run_dir = run_dir
    self._saved = {'rows': 0, **tracking.load(run_dir / FILE)}
    self._run = self._start(wandb, config)
    # The file may be older than the run: a bucket has the one of some seconds before a kill.
    self._saved['rows'] = max(self._saved['rows'], self._run.step)
    self._run.define_metric('agent_steps')
    self._run.define_metric('*', step_metric='agent_steps')
    self._saved.update(id=self._run.id, project=self._run.project, entity=self._run.entity)
    self._save()
    if self._run.url:
      run_directory.RunDirectory(run_dir).add_notice(f'Weights & Biases: {self._run.url}')

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Passes a row to wandb's own process."""
    self._log(agent_steps, metrics)

  def write_video(self, recording: types.Recording) -> None:
    """Logs the film as a separate row; wandb copies the file to its folder before this returns."""
    caption = f'return {terminal.number(recording.episode_return)} in {recording.length:,} steps'
    video = self._wandb.Video(str(recording.video), caption=caption, format='mp4')
    self._log(recording.agent_steps, {recordings.METRIC: video})

  def _log(self, agent_steps: int, values: dict[str, Any]) -> None:
    self._run.log({'agent_steps': agent_steps, **values}, step=self._saved['rows'])
    self._saved['rows'] += 1
    self._save()

  def close(self) -> None:
    """Waits for rows that have not been sent yet, but not for ever."""
    exit_code = 0 if tracking.status(self._run_dir) in _ENDED_WELL else 1
    sender = background.Background('wandb', self._tell)
    sender.put(lambda: self._run.finish(exit_code=exit_code))
    if not sender.close(tracking.CLOSE_S):
      self._tell(TimeoutError(f'not all rows were sent within {tracking.CLOSE_S:g} s'))

  def _start(self, wandb: Any, config: config_lib.ExperimentConfig) -> Any:
    try:
      settings = wandb.Settings(console='off')  # the output is in logs/
      return wandb.init(**self._identity(config), settings=settings)
    except wandb.errors.UsageError as error:  # no login, or somebody else's project
      raise types.UserError(
        f'Weights & Biases cannot start: {error}\nlog in with `wandb login`, '
        'set WANDB_API_KEY, or log here with WANDB_MODE=offline'
      ) from error
    except wandb.errors.Error as error:
      raise types.Failure(
        f'Weights & Biases cannot start: {error}; WANDB_MODE=offline logs without its server'
      ) from error

  def _identity(self, config: config_lib.ExperimentConfig) -> dict[str, Any]:
    """Returns the arguments that identify the W&B run: the earlier one, if this run is resumed."""
    saved = self._saved
    return {
      'project': saved.get('project') or os.environ.get('WANDB_PROJECT') or tracking.PROJECT,
      'entity': saved.get('entity') or None,
      'id': saved.get('id'),
      'resume': 'allow' if 'id' in saved else None,
      'name': os.environ.get('WANDB_NAME') or tracking.run_name(config.name, self._run_dir),
      'dir': str(self._run_dir),
      'config': saved_config.to_json(config),
      'allow_val_change': True,
    }

  def _save(self) -> None:
    local.write_json(self._run_dir / FILE, self._saved)

  def _tell(self, error: Exception) -> None:
    run_directory.RunDirectory(self._run_dir).add_notice(
      f'Weights & Biases: {error}; what is missing there is in {self._run_dir / "wandb"}, for '
      '`wandb sync`'
    )
