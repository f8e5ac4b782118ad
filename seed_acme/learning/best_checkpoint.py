"""Finds the best checkpoint of a run by its evaluation return."""

from __future__ import annotations

import math

from seed_acme.inference import episodes as episodes_lib
from seed_acme.storage import checkpoint


class BestCheckpoint:
  """Scores checkpoints. Used by the training loop's thread only.

  The weights keep changing during evaluation, so the mean over the window of episodes belongs to
  the weights in the middle of the window, and not to those at its end, which may have collapsed
  since. A saved checkpoint is therefore a candidate until half of the window's episodes, of which
  there must be `episodes.MIN_EPISODES`, have ended after it. Its score is the mean over the window
  at that moment, not that of the next row of the log, in which there may be only episodes of later
  weights. Meanwhile no other checkpoint becomes the candidate, because it would be scored by mostly
  the same episodes and would have to be kept as long.

  Nothing is evaluated after the last checkpoint of a start. It gets the mean of the window that
  ends with it.
  """

  def __init__(self, evaluation: episodes_lib.EpisodeStatistics, *, evaluates: bool):
    """evaluates: whether there will be evaluation episodes. Otherwise no checkpoint becomes a
    candidate, which would be kept for ever, and the best one of earlier starts remains."""
    self._evaluation = evaluation
    self._evaluates = evaluates
    self._candidate: int | None = None  # updates of a checkpoint that is not scored yet
    self._has_ended = False
    self.best: checkpoint.Best | None = None

  def kept(self) -> set[int]:
    """Updates of the checkpoints that are still needed."""
    best = None if self.best is None else self.best.updates
    return {updates for updates in (best, self._candidate) if updates is not None}

  def add_checkpoint(self, updates: int) -> None:
    """Makes a checkpoint the candidate, if there is none. Called after it was saved."""
    self.update()
    if self._evaluates and self._candidate is None and not self._has_ended:
      self._candidate = updates
      self._evaluation.mark()

  def update(self) -> None:
    """Scores the candidate if it is due."""
    evaluation = self._evaluation.around_mark
    if self._candidate is not None and evaluation is not None:
      self._score(self._candidate, evaluation)
      self._candidate = None

  def end(self, updates: int) -> None:
    """Scores the last checkpoint, of this update. Called before it is saved."""
    self.update()
    self._candidate, self._has_ended = None, True
    # Episodes from before this start say nothing about weights that have learnt since.
    if self._evaluation.num_ended >= episodes_lib.MIN_EPISODES:
      self._score(updates, self._evaluation.summary())

  def _score(self, updates: int, evaluation: episodes_lib.EpisodeSummary) -> None:
    """Keeps the best checkpoint; of equal ones the later, which has learnt more."""
    score = evaluation.score
    if score is None or not math.isfinite(score):
      return
    if self.best is None or score >= self.best.evaluation_return:
      self.best = checkpoint.Best(updates, score, evaluation.num_episodes)
