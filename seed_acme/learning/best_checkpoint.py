"""Which checkpoint of a run is the best, by the evaluation return that its log shows."""

from __future__ import annotations

import math
from typing import NamedTuple

from seed_acme.inference import episodes as episodes_lib
from seed_acme.storage import checkpoint

MIN_EPISODES = 10  # that score a checkpoint: one or two episodes say little of it


class _Candidate(NamedTuple):
  """A checkpoint that is not scored yet. num_ended: evaluation episodes after which it will be."""

  updates: int
  num_ended: int


class BestCheckpoint:
  """Scores checkpoints. The training loop's thread only.

  The weights go on learning while the evaluation plays, so the mean of its window belongs to the
  middle of the window and not to the weights at its end, which may have collapsed since. A saved
  checkpoint therefore waits as the candidate until as many evaluation episodes have ended after it
  as the window has of before it (half a full window, and at least `MIN_EPISODES`). Its score is
  the next `evaluation/return` in the log. Meanwhile no other checkpoint becomes the candidate:
  their scores would come from mostly the same episodes, and each would have to be kept so long.

  After the last checkpoint of a start nothing is played. It gets the mean of the window that ends
  with it.
  """

  def __init__(self, evaluation: episodes_lib.EpisodeStatistics):
    self._evaluation = evaluation
    self._candidate: _Candidate | None = None
    self._has_ended = False
    self.best: checkpoint.Best | None = None

  def kept(self) -> set[int]:
    """Updates of the checkpoints that are still needed."""
    return {known.updates for known in (self.best, self._candidate) if known is not None}

  def add_checkpoint(self, updates: int) -> None:
    """Is called after a checkpoint was saved."""
    if self._candidate is None and not self._has_ended:
      num_before = len(self._evaluation.window())
      wanted = min(max(num_before, MIN_EPISODES), episodes_lib.WINDOW // 2)
      self._candidate = _Candidate(updates, self._evaluation.num_ended + wanted)

  def add_row(self, evaluation: episodes_lib.EpisodeSummary) -> None:
    """evaluation: what the row of the log shows of the evaluation's window."""
    if self._candidate is not None and self._evaluation.num_ended >= self._candidate.num_ended:
      self._score(self._candidate.updates, evaluation)
      self._candidate = None

  def end(self, updates: int) -> None:
    """Is called before the last checkpoint is saved, at this update."""
    self._candidate, self._has_ended = None, True
    # What was played before this start says nothing of weights that have learnt since.
    if self._evaluation.num_ended >= MIN_EPISODES:
      self._score(updates, self._evaluation.summary())

  def _score(self, updates: int, evaluation: episodes_lib.EpisodeSummary) -> None:
    """Of equal ones the later checkpoint counts, which has learnt more."""
    score = evaluation.score
    if score is None or not math.isfinite(score):
      return
    if self.best is None or score >= self.best.evaluation_return:
      self.best = checkpoint.Best(updates, score, evaluation.num_episodes)
