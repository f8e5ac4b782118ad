"""The training loop around a learner: update, count, publish, log, checkpoint, stop.

The same object serves the single-process and the distributed program.
"""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import shutil
import time
from typing import Any

import numpy as np

from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import counting
from seed_acme import learner as learner_lib
from seed_acme import run_directory
from seed_acme import timing
from seed_acme import types
from seed_acme.inference import episodes as episodes_lib
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.loggers import csv_file

FINISHED, STOPPED = 'finished', 'stopped'


class TrainingLoop:
  """Owns the learner's side of a run and its files. One thread, the learner's.

  It writes status.json, metrics.csv, TensorBoard events and checkpoints; the summary
  is written by whoever launched the run, from the last status.
  """

  def __init__(
    self,
    config: config_lib.ExperimentConfig,
    run: run_directory.RunDirectory,
    *,
    learner: learner_lib.Learner,
    server: server_lib.InferenceServer,
    published: policy_lib.PublishedVariables,
    counters: counting.Counters,
    csv: csv_file.CsvLogger,
    logger: core.Logger,
    memory: core.ReplayMemory | None,
  ):
    """csv is the part of `logger` that is cut back when a run resumes.

    memory: None for a queue, which has no priorities and is not saved.
    """
    self._config = config
    self._run = run
    self._learner = learner
    self._server = server
    self._published = published
    self._counters = counters
    self._csv = csv
    self._logger = logger
    self._memory = memory
    self._metrics = _MetricMeans()
    self._policy_lag_max = 0.0
    self._logged = counters.snapshot()
    self._logged_at_s = self._saved_at_s = time.monotonic()
    self.resumptions = 0
    self._begins_anew_at: int | None = None  # update at which an empty memory was resumed with
    self.timer = timing.PhaseTimer()
    self._timers = {'learner': self.timer, 'inference': server.timer}
    self._policy_lags = timing.Latencies()
    self._num_inserted: Callable[[], int] = lambda: 0
    self._actors: Callable[[], list[dict[str, Any]]] = list

  def watch_writer(self, timer: timing.PhaseTimer, num_inserted: Callable[[], int]) -> None:
    """Reports the replay writer's time, and the unrolls it inserted, in the status."""
    self._timers['replay_writer'] = timer
    self._num_inserted = num_inserted

  def watch_actors(self, records: Callable[[], list[dict[str, Any]]]) -> None:
    """Reports a record of every actor in the status."""
    self._actors = records

  def restore(self) -> None:
    """Resumes from the newest checkpoint of the run, or starts from `initial_checkpoint`."""
    path = checkpoint.newest(self._run.checkpoints)
    if path is not None:
      saved = checkpoint.load(path)
      counts = counting.Counts(**saved.meta['counts'])
      self._learner.restore(saved.arrays, counts.updates)
      self._counters.restore(counts)
      for kind, statistics in self._episodes().items():
        statistics.restore(saved.meta.get('episodes', {}).get(kind, []))
      self._csv.truncate_after(counts.agent_steps, counts.updates)
      self.resumptions = saved.meta['resumptions'] + 1
      if self._memory is not None and not self._memory.counts()[0]:
        self._begins_anew_at = counts.updates
    else:
      if self._config.initial_checkpoint:
        self._learner.warm_start(checkpoint.load_from(self._config.initial_checkpoint).arrays)
      self._csv.truncate_after(-1, -1)  # rows of a run that was killed before its first checkpoint
    self._logged = self._counters.snapshot()
    self._published.publish(self._learner.variables())
    # Counts the resumption. The memory of that checkpoint stays in it: saving it takes long, and
    # what could not be restored would be gone.
    self._save(None if path is not None else self._save_replay())

  def train(self, sample: types.Sample) -> None:
    """One update, and whatever is due after it."""
    with self.timer.phase('gradient'):
      update = self._learner.step(sample, self._counters.snapshot().agent_steps)
    with self.timer.phase('publish'):
      if self._learner.num_updates % self._config.inference.publish_period == 0:
        self._published.publish(update.variables)
    if self._memory is not None and update.priorities is not None:
      self._memory.update_priorities(np.asarray(sample.keys), update.priorities)
    self._counters.add(updates=1, trained_steps=update.trained_steps)
    self._metrics.add(update.metrics)
    self._policy_lags.add(update.metrics['learner/policy_lag'])
    self._policy_lag_max = max(self._policy_lag_max, update.metrics['learner/policy_lag_max'])
    self.do_what_is_due()

  def do_what_is_due(self) -> None:
    """Logs and saves if their periods have passed; also called while no sample comes."""
    now = time.monotonic()
    if now - self._logged_at_s >= self._config.learner.log_period_s:
      with self.timer.phase('log'):
        self.log('running')
    if now - self._saved_at_s >= self._config.checkpoint.period_s:
      with self.timer.phase('checkpoint'):
        self.save()

  def is_finished(self) -> bool:
    """Whether the budget of steps or of seconds is used up."""
    counts = self._counters.snapshot()
    max_wall_s = self._config.max_wall_s
    return (
      counts.agent_steps >= self._config.total_steps
      or bool(max_wall_s)
      and counts.wall_s >= max_wall_s
    )

  def finish(self, status: str) -> None:
    """Last checkpoint and last row; status is FINISHED or STOPPED."""
    self.save()
    self.log(status)
    self.close()

  def close(self) -> None:
    """Closes the logs, also of a run that failed; may be called twice."""
    self._logger.close()

  def save(self) -> None:
    """Writes a checkpoint of this moment."""
    self._save(self._save_replay())

  def _save(self, replay: pathlib.Path | None) -> None:
    self._saved_at_s = time.monotonic()
    counts = self._counters.snapshot()
    checkpoint.save(
      self._run.checkpoints,
      counts.updates,
      self._learner.save(),
      {
        'counts': counts._asdict(),
        'resumptions': self.resumptions,
        'episodes': {kind: statistics.window() for kind, statistics in self._episodes().items()},
      },
      keep=self._config.checkpoint.keep,
      replay=replay,
    )

  def _episodes(self) -> dict[str, episodes_lib.EpisodeStatistics]:
    return {
      'training': self._server.training_episodes,
      'evaluation': self._server.evaluation_episodes,
    }

  def _save_replay(self) -> pathlib.Path | None:
    """What is learnt must not be lost because the memory, the larger part, finds no room; nor a
    memory that was not restored, because the run ends before it has learnt from the new one."""
    if self._memory is None or not self._config.checkpoint.replay:
      return None
    if self._learner.num_updates == self._begins_anew_at:
      return None
    try:
      return self._memory.checkpoint()
    except RuntimeError as error:
      for left in self._run.replay_in_progress.glob('*'):  # it would keep the disk full
        shutil.rmtree(left, ignore_errors=True)
      self._run.add_notice(
        f'the replay memory was not saved ({error}); the weights are. Make '
        'room on the disk, or set checkpoint.replay=False'
      )
      return None

  def log(self, status: str) -> None:
    """Writes one row of metrics and status.json."""
    now = time.monotonic()
    counts = self._counters.snapshot()
    elapsed_s = max(1e-9, now - self._logged_at_s)
    steps_per_s = (counts.agent_steps - self._logged.agent_steps) / elapsed_s
    training = self._server.training_episodes
    recent, window = training.take_recent(), training.summary()
    evaluation = self._server.evaluation_episodes.summary()
    metrics = {
      **{name: float(value) for name, value in counts._asdict().items() if name != 'agent_steps'},
      'time/steps_per_s': steps_per_s,
      'time/updates_per_s': (counts.updates - self._logged.updates) / elapsed_s,
      **_episode_metrics('episode', recent),
      **_episode_metrics('evaluation', evaluation),
      **self._metrics.take(),
    }
    if window.score is not None:
      metrics['episode/return_last_100'] = window.score
    self._logger.write(counts.agent_steps, metrics)
    self._write_status(status, counts, steps_per_s, window, evaluation)
    self._logged, self._logged_at_s = counts, now

  def _write_status(
    self,
    status: str,
    counts: counting.Counts,
    steps_per_s: float,
    window: episodes_lib.EpisodeSummary,
    evaluation: episodes_lib.EpisodeSummary,
  ) -> None:
    lag = self._policy_lags.summary()
    record: dict[str, Any] = {
      'status': status,
      'time_s': time.time(),
      **counts._asdict(),
      'total_steps': self._config.total_steps,
      'steps_per_s': steps_per_s,
      'episode_return': window.score,
      'episode_return_last_100': window.score,
      'evaluation_return': evaluation.score,
      'policy_lag_mean': lag['mean'] if lag['count'] else None,
      'policy_lag_p95': lag['p95'] if lag['count'] else None,
      'policy_lag_max': self._policy_lag_max if lag['count'] else None,
      'unrolls_inserted': self._num_inserted(),
      'resumptions': self.resumptions,
      'actors': self._actors(),
      'seconds': {name: timer.snapshot() for name, timer in self._timers.items()},
      'inference_batch_size': self._server.batch_sizes.summary(),
      'inference_latency_s': self._server.latencies_s.summary(),
    }
    run_directory.write_json(self._run.status, record)


class _MetricMeans:
  """Mean of each metric over the updates since the last row of the log; `*_max`: maximum."""

  def __init__(self) -> None:
    self._sums: dict[str, float] = {}
    self._maxima: dict[str, float] = {}
    self._count = 0

  def add(self, metrics: dict[str, float]) -> None:
    for name, value in metrics.items():
      if name.endswith('_max'):
        self._maxima[name] = max(self._maxima.get(name, value), value)
      else:
        self._sums[name] = self._sums.get(name, 0.0) + value
    self._count += 1

  def take(self) -> dict[str, float]:
    means = {name: total / self._count for name, total in self._sums.items()}
    maxima = self._maxima
    self._sums, self._maxima, self._count = {}, {}, 0
    return {**means, **maxima}


def _episode_metrics(group: str, episodes: episodes_lib.EpisodeSummary) -> dict[str, float]:
  if episodes.score is None or episodes.return_ is None or episodes.length is None:
    return {}
  metrics = {f'{group}/return': episodes.score, f'{group}/length': episodes.length}
  if episodes.return_ != episodes.score:  # the environment shapes its reward
    metrics[f'{group}/training_return'] = episodes.return_
  return metrics
