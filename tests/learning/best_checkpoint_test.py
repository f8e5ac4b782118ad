"""The choice of the best checkpoint: its score, the episodes needed, and what is kept."""

import numpy as np
import pytest

from seed_acme.inference import episodes as episodes_lib
from seed_acme.learning import best_checkpoint
from seed_acme.storage import checkpoint
from tests.learning import loop_run

_HALF = episodes_lib.WINDOW // 2


class _Scored:
  """A `BestCheckpoint` with its evaluation statistics."""

  def __init__(self):
    self.evaluation = episodes_lib.EpisodeStatistics(1)
    self.best = best_checkpoint.BestCheckpoint(self.evaluation, evaluates=True)

  def play(self, number, score):
    """Adds episodes with this score, and asks after each whether the score is known."""
    for _ in range(number):
      self.evaluation.extend([(score, score, 1)])
      self.best.update()


def test_the_score_is_of_the_weights_that_played_and_not_of_those_that_have_collapsed_since():
  scored = _Scored()
  scored.best.add_checkpoint(1)
  scored.play(50, 10.0)
  scored.best.add_checkpoint(2)
  scored.play(50, 20.0)
  assert scored.best.best == (2, 15.0, 100)  # fifty episodes before it, and fifty after
  scored.play(100, 20.0)
  # the window is full of 20, but these weights play no further episodes
  scored.best.add_checkpoint(3)
  scored.play(100, 0.0)
  assert scored.best.best == (2, 15.0, 100)


@pytest.mark.parametrize('at_once', [False, True])
def test_episodes_that_end_between_two_questions_count_from_the_checkpoint_on(at_once):
  """Otherwise untrained weights would get the return of those that were trained since."""
  scored = _Scored()
  scored.best.add_checkpoint(0)
  played = [(-0.5, -0.5, 1)] * 300 + [(1.0, 1.0, 1)] * 100
  for part in [played] if at_once else [[episode] for episode in played]:
    scored.evaluation.extend(part)  # at once: of another learner host
  scored.best.update()
  assert scored.best.best == (0, -0.5, 10)
  scored.best.add_checkpoint(9)
  scored.evaluation.extend([(0.0, 0.0, 1)] * 300)
  scored.best.update()
  assert scored.best.best == (9, 0.5, 100)


@pytest.mark.parametrize('is_end', [False, True])
def test_a_score_that_is_known_counts_though_nobody_has_asked(is_end):
  scored = _Scored()
  scored.best.add_checkpoint(1)
  scored.evaluation.extend([(1.0, 1.0, 1)] * 10 + [(0.0, 0.0, 1)] * 100)
  if is_end:
    scored.best.end(2)
  else:
    scored.best.add_checkpoint(2)
    assert scored.best.kept() == {1, 2}
  assert scored.best.best == (1, 1.0, 10)


def test_the_best_is_the_last_one_before_a_decline():
  scored = _Scored()
  for updates in range(1, 41):
    scored.best.add_checkpoint(updates)
    # the episodes between this checkpoint and the next
    scored.play(20, 100.0 - abs(updates - 20) * 5)
  assert 18 <= scored.best.best.updates <= 21


def test_where_evaluation_episodes_are_rare_a_checkpoint_is_scored_by_those_around_it():
  steps = 0
  evaluation = episodes_lib.EpisodeStatistics(1, lambda: steps)
  best = best_checkpoint.BestCheckpoint(evaluation, evaluates=True)
  for steps in range(1000, 61_000, 1000):  # an episode each, better and better
    evaluation.extend([(float(steps), 0.0, 1)])
    best.update()
    if steps == 50_000:
      best.add_checkpoint(50)
  assert best.best.updates == 50 and best.best.num_episodes == 10
  assert best.best.evaluation_return == pytest.approx(50_000, abs=1000)


@pytest.mark.parametrize('number, is_scored', [(9, False), (10, True)])
def test_few_episodes_score_nothing(number, is_scored):
  scored = _Scored()
  scored.best.add_checkpoint(0)
  scored.play(number, 1.0)
  assert (scored.best.best is not None) == is_scored
  last = _Scored()
  last.play(number, 1.0)
  last.best.end(7)
  assert last.best.best == ((7, 1.0, 10) if is_scored else None)


def test_of_equal_ones_the_later_counts_and_the_last_gets_the_window_that_ends_with_it():
  scored = _Scored()
  for updates in (1, 2, 3):
    scored.best.add_checkpoint(updates)
    scored.play(_HALF, 1.0)
  assert scored.best.best.updates == 3
  scored.best.add_checkpoint(4)
  assert scored.best.kept() == {3, 4}
  scored.best.end(5)
  assert scored.best.best == (5, 1.0, 100) and scored.best.kept() == {5}
  scored.best.add_checkpoint(5)
  scored.play(100, 9.0)  # by actors that have not heard of the end yet
  assert scored.best.best == (5, 1.0, 100)


def test_a_window_from_before_the_start_says_nothing_of_the_weights_at_the_end():
  scored = _Scored()
  scored.evaluation.restore([(5.0, 5.0, 1)] * 100)
  scored.best.end(9)
  assert scored.best.best is None


def test_a_return_that_is_no_number_is_no_best():
  scored = _Scored()
  scored.best.add_checkpoint(1)
  scored.play(10, float('inf'))
  scored.best.end(2)
  assert scored.best.best is None


def _play(run, number, score):
  run.inference.evaluation_episodes.extend([(score, score, 1)] * number)


def _step(run, clock):
  clock.now += 1
  run.counters.add(agent_steps=10)
  run.loop.train(1.0)


def _run(path, clock, evaluates=True, **changes):
  """Makes a run that saves after each update and keeps one checkpoint."""
  return loop_run.Run(
    path,
    clock,
    num_evaluation_environments=int(evaluates),
    learner=loop_run.replace('learner', log_period_s=0.0),
    checkpoint=loop_run.replace('checkpoint', **{'period_s': 0.0, 'keep': 1, **changes}),
  )


def _peaked(path, clock, **changes):
  """Makes a run whose best return was at update 2."""
  run = _run(path, clock, **changes)
  run.loop.restore()
  for score in (1.0, 5.0, 9.0, 0.0, 0.0, 0.0):
    _play(run, 50, score)
    _step(run, clock)
  return run


def _best(run):
  return checkpoint.load(checkpoint.newest(run.folder.checkpoints)).best


def test_the_best_stays_beyond_keep_with_the_score_of_the_log(tmp_path, clock):
  run = _peaked(tmp_path, clock)
  assert _best(run).updates == 2
  assert 2 in run.saved_updates() and len(run.saved_updates()) <= 3
  assert checkpoint.load(checkpoint.at(run.folder.checkpoints, 2)).counts.updates == 2
  rows = run.rows()
  assert _best(run).evaluation_return == max(rows['evaluation/return']) == 7.0
  assert run.status()['best_checkpoint'] == {
    'updates': 2,
    'evaluation_return': 7.0,
    'num_episodes': 100,
  }
  run.loop.finish('finished')
  assert run.saved_updates() == [2, 6]


def test_a_resumed_run_knows_its_best_and_deletes_it_for_a_better_one_only(tmp_path, clock):
  _peaked(tmp_path, clock).loop.finish('stopped')
  run = _run(tmp_path, clock)
  run.loop.restore()
  for _ in range(3):
    _play(run, 100, 6.9)
    _step(run, clock)
  assert _best(run) == (2, 7.0, 100) and 2 in run.saved_updates()
  run.loop.finish('stopped')
  run = _run(tmp_path, clock)
  run.loop.restore()
  for _ in range(3):
    _play(run, 100, 7.5)
    _step(run, clock)
  run.loop.finish('finished')
  assert _best(run).evaluation_return == 7.5
  assert run.saved_updates() == [12]


def test_a_run_that_no_longer_evaluates_keeps_its_best(tmp_path, clock):
  _peaked(tmp_path, clock).loop.finish('stopped')
  run = _run(tmp_path, clock, evaluates=False)
  run.loop.restore()
  _step(run, clock)
  run.loop.finish('finished')
  assert _best(run) == (2, 7.0, 100) and run.saved_updates() == [2, 7]


@pytest.mark.parametrize(
  'harm, reason',
  [
    (lambda path: (path / 'arrays.npz').write_bytes(b'x'), 'is corrupt'),
    (lambda path: path.rename(path.with_name('elsewhere')), 'it is not there any more'),
  ],
)
def test_a_best_checkpoint_that_is_lost_is_told_and_another_takes_its_place(
  tmp_path, clock, harm, reason
):
  first = _peaked(tmp_path, clock)
  first.loop.finish('stopped')
  harm(checkpoint.at(first.folder.checkpoints, 2))
  run = _run(tmp_path, clock)
  run.loop.restore()
  notice = run.folder.notices.read_text()
  assert 'the best checkpoint, of update 2 with an evaluation return of 7.00, is lost' in notice
  assert reason in notice
  assert _best(run) is None
  _play(run, 100, 0.5)
  _step(run, clock)
  _step(run, clock)
  assert _best(run) == (6, 0.25, 100)  # half of the window was played before the run stopped


@pytest.mark.parametrize('evaluates', [True, False])
def test_without_evaluation_or_where_it_is_switched_off_nothing_is_kept(tmp_path, clock, evaluates):
  run = _run(tmp_path, clock, evaluates, keep_best=not evaluates)
  run.loop.restore()
  for _ in range(3):
    if evaluates:
      _play(run, 100, 1.0)
    _step(run, clock)
    assert len(run.saved_updates()) == 1
  run.loop.finish('finished')
  assert run.saved_updates() == [3] and _best(run) is None


def test_a_full_disk_leaves_the_best_as_it_was(tmp_path, clock, monkeypatch):
  run = _peaked(tmp_path, clock)

  def full(*_, **__):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(np, 'savez', full)
    with pytest.raises(OSError, match='No space'):
      _step(run, clock)
  assert _best(run).updates == 2
  checkpoint.load(checkpoint.at(run.folder.checkpoints, 2))
