"""The training loop around a learner: update, count, publish, log, checkpoint, stop.

The same object serves the single-process and the distributed program.
"""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.inference import episodes as episodes_lib
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import best_checkpoint
from seed_acme.learning import checkpoint_manager
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import loop_settings
from seed_acme.learning import metrics as metrics_lib
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import status as status_lib
from seed_acme.learning import watching
from seed_acme.loggers import csv_file
from seed_acme.progress import counting
from seed_acme.progress import timing
from seed_acme.storage import recordings
from seed_acme.storage import run_directory

FINISHED, STOPPED = 'finished', 'stopped'
_STATUS_PERIOD_S = 1.0  # of `show_life`, for a program that logs only after updates


class TrainingLoop:
  """Owns the learner's side of a run and its files. Used by one thread, the learner's.

  It writes status.json, metrics.csv, TensorBoard events and checkpoints; the launcher of the
  run writes the summary, from the last status. If several learner hosts learn together, they
  decide together through `Peers`, and only the chief writes.
  """

  def __init__(
    self,
    settings: loop_settings.LoopSettings,
    run: run_directory.RunDirectory,
    *,
    learner: learner_lib.Learner,
    inference: server_statistics.ServerStatistics,
    published: policy_lib.PublishedVariables,
    counters: counting.Counters,
    csv: csv_file.CsvLogger,
    logger: core.VideoLogger,
    memory: core.ReplayMemory | None,
    peers: peers_lib.Peers = peers_lib.ALONE,
  ):
    """csv: the part of `logger` that is truncated when a run resumes.

    memory: None for a queue, which has no priorities and is not saved. counters: made by `peers`.
    """
    self._settings = settings
    self._run = run
    self._learner = learner
    self._inference = inference
    self._published = published
    self._counters = counters
    self._logger = logger
    self._memory = memory
    self._peers = peers
    self._metrics = metrics_lib.MetricMeans(learner.of_row)
    self._watcher = watching.Watcher(learner.watches, settings.total_steps, run.add_notice)
    self._logged = counters.snapshot()
    self._logged_at_s = self._saved_at_s = self._shown_at_s = time.monotonic()
    self.is_stopped = False  # whether the run is to end before its budget is used up
    self.timer = timing.PhaseTimer()
    self._status = status_lib.StatusWriter(settings, run, inference, self.timer)
    self._best: best_checkpoint.BestCheckpoint | None = None
    if settings.checkpoint.keep_best and peers.is_chief:
      self._best = best_checkpoint.BestCheckpoint(
        inference.evaluation_episodes, evaluates=settings.evaluates
      )
    self._episodes = {
      'training': inference.training_episodes,
      'evaluation': inference.evaluation_episodes,
    }
    self._checkpoints = checkpoint_manager.CheckpointManager(
      settings,
      run,
      learner=learner,
      counters=counters,
      episodes=self._episodes,
      watcher=self._watcher,
      memory=memory,
      csv=csv,
      peers=peers,
      best=self._best,
    )
    self.has_trained = False  # in this start
    self._recordings = recordings.Unseen(run.videos) if settings.is_filmed else None

  def watch_replay(
    self, writer_seconds: Callable[[], dict[str, float]], account: core.UnrollAccount
  ) -> None:
    """Adds the seconds of the replay's writers, and the counts of unrolls, to the status."""
    self._status.watch_replay(writer_seconds, account)

  def watch_actors(self, records: Callable[[], list[dict[str, Any]]]) -> None:
    """Adds a record of every actor to the status."""
    self._status.actors = records

  @property
  def resumptions(self) -> int:
    """How often the run has been resumed."""
    return self._checkpoints.resumptions

  def restore(self) -> None:
    """Resumes from the newest whole checkpoint of the run, or starts from `initial_checkpoint`.

    With several hosts the chief does so, and the others load its state.
    """
    if self._peers.is_chief:
      self._checkpoints.restore()
      self._published.publish(self._learner.variables())
      self._checkpoints.save_start()
      self._saved_at_s = time.monotonic()
    start = self._peers.follow(self._start)
    if start is not None:
      self._checkpoints.resumptions = start.resumptions
      self._learner.restore(start.arrays, start.counts.updates)
      # The chief counts the earlier steps.
      self._counters.restore(start.counts._replace(agent_steps=0, frames=0, episodes=0))
      self._published.publish(self._learner.variables())
    self._agree(has_sample=False, wants_stop=False)  # all count the same from here on
    self._logged = self._counters.snapshot()
    self._status.begin(self._logged)

  def _start(self) -> peers_lib.Start:
    counts = self._counters.snapshot()
    return peers_lib.Start(self._settings.common, counts, self.resumptions, self._learner.save())

  def train(self, sample: types.Sample) -> None:
    """Makes one update, and then logs and saves if due."""
    if not self.has_trained:
      self._tell_phase('tracing the first update')
    with self.timer.phase('gradient'):
      update = self._learner.step(sample, self._counters.snapshot().agent_steps)
    with self.timer.phase('publish'):
      if self._learner.num_updates % self._settings.publish_period == 0:
        self._published.publish(self._learner.variables())
    if self._memory is not None and update.priorities is not None:
      self._memory.update_priorities(np.asarray(sample.keys), update.priorities)
    self._counters.add(updates=1, trained_steps=update.trained_steps)
    self._metrics.add(update.metrics)
    self._status.add_update(update.metrics)
    if not self.has_trained:
      self.has_trained = True
      self._tell_phase('')
    self.do_what_is_due()

  def do_what_is_due(self) -> None:
    """Logs and saves if their periods have passed. Several hosts do so in `may_train` only."""
    if self._peers.is_alone:
      self._do(*self._due())

  def _due(self) -> tuple[bool, bool]:
    """Returns whether a row of the log is due, and whether a checkpoint is."""
    now = time.monotonic()
    logs = now - self._logged_at_s >= self._settings.log_period_s
    return logs, now - self._saved_at_s >= self._settings.checkpoint.period_s

  def _do(self, logs: bool, saves: bool) -> None:
    if logs:
      with self.timer.phase('log'):
        self.log('running')
        self.report_wait()
    if saves:
      with self.timer.phase('checkpoint'):
        self.save()
        self._peers.wait_until_saved()

  def may_train(self, has_sample: bool, wants_stop: bool) -> bool:
    """Whether the next update can begin; first logs and saves if due.

    wants_stop: whether this node has been told to stop; then `is_stopped` is set.
    """
    decision = self._agree(has_sample, wants_stop)
    self.is_stopped = decision.stops
    self._status.hosts_without_data = list(decision.lacking)
    if decision.logs or decision.saves:
      self._hear_others()
      self._do(decision.logs, decision.saves)
    return decision.trains

  def _agree(self, has_sample: bool, wants_stop: bool) -> peers_lib.Decision:
    """Agrees with the other hosts on what to do next, and updates the counters with their sum."""
    proposal = peers_lib.Proposal(has_sample, wants_stop, *self._due(), self._counters.own())
    decision = self._peers.agree(proposal, self.timer)
    self._counters.agree(decision.counts)
    return decision

  def _hear_others(self) -> None:
    """Collects the other hosts' reports on the chief, and adds the episodes that ended there."""
    self._status.others = []
    for report in self._peers.to_chief(self._report):
      self._status.others.append(report['status'])
      for kind, episodes in report['episodes'].items():
        self._episodes[kind].extend(episodes)

  def _report(self) -> dict[str, Any]:
    episodes = {kind: statistics.drain() for kind, statistics in self._episodes.items()}
    return {'status': self._status.report(), 'episodes': episodes}

  def waits_for(self) -> str:
    """Describes what the next update waits for from other hosts; '' = nothing."""
    return ', '.join(f'data of learner/{i}' for i in self._status.hosts_without_data)

  def show_life(self) -> None:
    """Updates the status between two updates, without a row of metrics, because the rows of the
    single-process program must be reproducible: they are written only after updates."""
    now = time.monotonic()
    if now - max(self._logged_at_s, self._shown_at_s) >= _STATUS_PERIOD_S:
      self._shown_at_s = now
      counts = self._counters.snapshot()
      self._status.write('running', counts, self._summaries(), self.resumptions)
      self.report_wait()

  def report_wait(self) -> None:
    """Shows the user what the first update of this start waits for."""
    if self.has_trained or not self._peers.is_chief:
      return
    connected = [actor['is_connected'] for actor in self._status.all_actors()]
    least, memory = self._settings.min_unrolls, self._memory
    counts = (0, 0) if memory is None else memory.counts_now()
    num_unrolls = counts[0] if counts else 0
    if not all(connected):
      text = f'waiting for actors ({sum(connected)} of {len(connected)} connected)'
    elif counts is None:
      text = 'waiting for the replay server, which does not answer'
    elif num_unrolls < least:
      text = f'filling the replay memory ({num_unrolls:,} of {least:,} unrolls)'
    else:
      text = 'collecting the first batch'
    self._run.set_phase(text)

  def is_finished(self) -> bool:
    """Whether the budget of steps or of seconds is used up."""
    counts = self._counters.snapshot()
    max_wall_s = self._settings.max_wall_s
    return (
      counts.agent_steps >= self._settings.total_steps
      or bool(max_wall_s)
      and counts.wall_s >= max_wall_s
    )

  def finish(self, status: str) -> None:
    """Writes the last checkpoint and the last row; status is FINISHED or STOPPED."""
    self._hear_others()
    self._tell_phase('saving the last checkpoint')
    counts = self._counters.snapshot()  # actors continue meanwhile; row and checkpoint must agree
    if self._best is not None:
      self._best.end(counts.updates)
    self._save_all(counts)
    self.log(status, counts)
    self._tell_phase('ending the processes')
    self.close()

  def close(self) -> None:
    """Closes the logs, also if the run failed; may be called twice."""
    self._logger.close()

  def save(self, counts: counting.Counts | None = None) -> None:
    """Writes a checkpoint. counts: None = the current ones."""
    self._save_all(counts or self._counters.snapshot())
    self._tell_phase('')
    self.report_wait()

  def _save_all(self, counts: counting.Counts) -> None:
    if self._memory is not None and self._settings.checkpoint.replay:
      self._tell_phase('saving the replay memory')
    self._checkpoints.save(counts)
    self._saved_at_s = time.monotonic()

  def _tell_phase(self, phase: str) -> None:
    """Shows what the run does. All hosts may share one run folder, so only the chief writes."""
    if self._peers.is_chief:
      self._run.set_phase(phase)

  def log(self, status: str, counts: counting.Counts | None = None) -> None:
    """Writes one row of metrics and status.json. counts: see `save`."""
    if not self._peers.is_chief:
      return
    now = time.monotonic()
    counts = counts or self._counters.snapshot()
    steps_per_s, updates_per_s = self._per_second(counts, now)
    recent, episodes = self._inference.training_episodes.take_recent(), self._summaries()
    of_updates = self._metrics.take()
    metrics = {
      **{name: float(value) for name, value in counts._asdict().items() if name != 'agent_steps'},
      'time/steps_per_s': steps_per_s,
      'time/updates_per_s': updates_per_s,
      **metrics_lib.of_episodes('episode', recent),
      **metrics_lib.of_episodes('evaluation', episodes['evaluation']),
      **of_updates,
    }
    if episodes['training'].score is not None:
      metrics['episode/return_last_100'] = episodes['training'].score
    self._logger.write(counts.agent_steps, metrics)
    self._show_recordings()
    self._watcher.add_row(counts.agent_steps, of_updates)
    if self._best is not None:
      self._best.update()
      self._status.best = self._best.best
    self._status.write(status, counts, episodes, self.resumptions)
    self._status.tell_of_missing_unrolls()
    self._logged, self._logged_at_s = counts, now

  def _show_recordings(self) -> None:
    """Passes to the logger what the evaluation actor has filmed since the last row."""
    for recording in self._recordings.take() if self._recordings else ():
      try:
        self._logger.write_video(recording)
      except OSError as error:  # somebody has deleted or moved the file
        self._run.add_notice(f'the video {recording.video.name} could not be logged: {error}')

  def _per_second(self, counts: counting.Counts, now: float) -> tuple[float, float]:
    """Returns agent steps and updates per second since the last row of the log."""
    elapsed_s = max(1e-9, now - self._logged_at_s)
    steps = counts.agent_steps - self._logged.agent_steps
    return steps / elapsed_s, (counts.updates - self._logged.updates) / elapsed_s

  def _summaries(self) -> dict[str, episodes_lib.EpisodeSummary]:
    return {kind: statistics.summary() for kind, statistics in self._episodes.items()}
