"""Saves the state of a training loop in checkpoints, and restores it when a run resumes."""

from __future__ import annotations

import pathlib
import shutil

from seed_acme import core
from seed_acme.inference import episodes as episodes_lib
from seed_acme.learning import best_checkpoint
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import loop_settings
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import watching
from seed_acme.loggers import csv_file
from seed_acme.progress import counting
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import opening
from seed_acme.storage import run_directory


class CheckpointManager:
  """Used by the thread of the training loop, which owns all that is saved here.

  With several learner hosts each has one: all save their replay memories, and only the chief
  restores and writes checkpoints.
  """

  def __init__(
    self,
    settings: loop_settings.LoopSettings,
    run: run_directory.RunDirectory,
    *,
    learner: learner_lib.Learner,
    counters: counting.Counters,
    episodes: dict[str, episodes_lib.EpisodeStatistics],
    watcher: watching.Watcher,
    memory: core.ReplayMemory | None,
    csv: csv_file.CsvLogger,
    peers: peers_lib.Peers,
    best: best_checkpoint.BestCheckpoint | None,
  ):
    """episodes: by kind. memory, csv: see `TrainingLoop`. best: None = the best is not sought."""
    self._settings = settings
    self._run = run
    self._learner = learner
    self._counters = counters
    self._episodes = episodes
    self._watcher = watcher
    self._memory = memory
    self._csv = csv
    self._peers = peers
    self._best = best
    self._begins_anew_at: int | None = None  # update at which the run resumed with an empty memory
    self.resumptions = 0

  def restore(self) -> None:
    """Resumes from the newest whole checkpoint of the run, or starts from `initial_checkpoint`."""
    for skipped in checkpoint.set_damaged_aside(self._run.checkpoints):
      self._run.add_notice(skipped)
    saved = checkpoint.load_newest(self._run.checkpoints)
    if saved is not None:
      self._resume(saved)
    else:
      if self._settings.initial_checkpoint:
        self._warm_start(self._settings.initial_checkpoint)
      self._csv.truncate_after(-1, -1)  # rows of a run that was killed before its first checkpoint

  def _warm_start(self, path: str) -> None:
    new = self._learner.warm_start(opening.load_checkpoint(path).arrays)
    if new:
      self._run.add_notice(f'{path} has no {", ".join(new)}: what it lacks starts anew')

  def _resume(self, saved: checkpoint.Checkpoint) -> None:
    counts = saved.counts
    self._learner.restore(saved.arrays, counts.updates)
    self._counters.restore(counts)
    for kind, statistics in self._episodes.items():
      statistics.restore(saved.meta.get('episodes', {}).get(kind, []))
    self._watcher.restore(counts.agent_steps, saved.meta.get('watches', {}))
    self._csv.truncate_after(counts.agent_steps, counts.updates)
    self.resumptions = saved.resumptions + 1
    if self._best is not None and saved.best is not None:
      self._restore_best(self._best, saved.best)
    if self._memory is not None and not self._memory.counts()[0]:
      self._begins_anew_at = counts.updates

  def _restore_best(self, to: best_checkpoint.BestCheckpoint, best: checkpoint.Best) -> None:
    """Restores which checkpoint is the best, unless it is lost; another then takes its place."""
    reason = 'it is not there any more'
    path = checkpoint.at(self._run.checkpoints, best.updates)
    try:
      if path is not None:
        checkpoint.load(path)
        to.best = best
        return
    except checkpoint.Damaged as error:
      reason = str(error)
    self._run.add_notice(
      f'the best checkpoint, of update {best.updates} with an evaluation return of '
      f'{best.evaluation_return:,.2f}, is lost ({reason}): the best of those that follow is kept'
    )

  def save_start(self) -> None:
    """Writes the checkpoint of a start; on the chief, after `restore`.

    It records the resumption. A memory that was restored stays in the old checkpoint, because
    saving it takes long and a memory that could not be restored would be lost.
    """
    replay = self._whole_memory() if self.resumptions == 0 else None
    self._write(replay, self._counters.snapshot())

  def save(self, counts: counting.Counts) -> None:
    """Writes a checkpoint on the chief, with the memories of all hosts."""
    replay = self._whole_memory()
    if self._peers.is_chief:
      self._write(replay, counts)

  def _write(self, replay: pathlib.Path | None, counts: counting.Counts) -> None:
    """Writes a checkpoint, without the memory if there is room for one of the two."""
    try:
      self._write_with(replay, counts)
    except OSError as error:
      if replay is None:
        raise
      shutil.rmtree(replay, ignore_errors=True)
      self._write_with(None, counts)
      self._tell_of_lost_memory(error)

  def _write_with(self, replay: pathlib.Path | None, counts: counting.Counts) -> None:
    best = self._best.best if self._best is not None else None
    checkpoint_writer.save(
      self._run.checkpoints,
      counts.updates,
      self._learner.save(),
      {
        'counts': counts._asdict(),
        'resumptions': self.resumptions,
        'episodes': {kind: statistics.window() for kind, statistics in self._episodes.items()},
        'watches': self._watcher.save(),
        'best': None if best is None else best._asdict(),
      },
      keep=self._settings.checkpoint.keep,
      replay=replay,
      keep_also=self._best.kept() if self._best is not None else (),
    )
    if self._best is not None:
      self._best.add_checkpoint(counts.updates)

  def _whole_memory(self) -> pathlib.Path | None:
    if self._memory is None:
      return None
    return self._peers.whole_memory(self._own_memory, self._run)

  def _own_memory(self) -> pathlib.Path | None:
    """Saves this host's replay memory; returns None if it is not saved.

    If the memory, the larger part, does not fit on the disk, the weights must still be saved. A
    memory that could not be restored must not be replaced either, if the run ends before it has
    learnt from the new one."""
    if self._memory is None or not self._settings.checkpoint.replay:
      return None
    if self._learner.num_updates == self._begins_anew_at:
      return None
    try:
      return self._memory.checkpoint()
    except RuntimeError as error:
      self._tell_of_lost_memory(error)
      return None

  def _tell_of_lost_memory(self, error: Exception) -> None:
    self._run.add_notice(
      f'the replay memory was not saved ({error}); the weights are. If the disk is full make '
      'room, or set checkpoint.replay=False'
    )
