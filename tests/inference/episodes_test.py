"""Episode statistics against a slow reference."""

from __future__ import annotations

import json

import numpy as np
import pytest

from seed_acme import types
from seed_acme.inference import episodes


def add(
  statistics: episodes.EpisodeStatistics,
  env_ids: list[int],
  step_types: list[int],
  rewards: list[float],
  scores: list[float],
) -> int:
  return statistics.add(
    np.array(env_ids),
    np.array(step_types, np.uint8),
    np.array(rewards, np.float32),
    np.array(scores, np.float32),
  )


def test_sums_of_random_episodes_agree_with_lists():
  random = np.random.default_rng(3)
  statistics = episodes.EpisodeStatistics(6)
  open_rows: list[list[tuple[float, float]]] = [[] for _ in range(6)]
  has_ended = [True] * 6
  expected = []
  for _ in range(300):
    env_ids = random.choice(6, random.integers(1, 7), replace=False).tolist()
    step_types, rewards, scores, num_ended = [], [], [], 0
    for env_id in env_ids:
      is_first = has_ended[env_id]
      is_last = not is_first and random.random() < 0.2
      step_types.append(types.FIRST if is_first else types.LAST if is_last else types.MID)
      reward, score = (0.0, 0.0) if is_first else random.integers(-9, 10, 2).tolist()
      rewards.append(reward)
      scores.append(score)
      if not is_first:
        open_rows[env_id].append((reward, score))
      if is_last:
        rows, open_rows[env_id] = open_rows[env_id], []
        expected.append((sum(r for r, _ in rows), sum(s for _, s in rows), len(rows)))
        num_ended += 1
      has_ended[env_id] = is_last
    assert add(statistics, env_ids, step_types, rewards, scores) == num_ended
  assert len(expected) > episodes.WINDOW
  for summary, wanted in (
    (statistics.summary(), expected[-episodes.WINDOW :]),
    (statistics.take_recent(), expected),
  ):
    return_, score, length = np.mean(wanted, axis=0)
    assert summary.num_episodes == len(wanted)
    assert summary.return_ == pytest.approx(return_)
    assert summary.score == pytest.approx(score)
    assert summary.length == pytest.approx(length)
  assert statistics.take_recent() == episodes.EpisodeSummary(0, None, None, None)


def test_nothing_ended_is_none():
  statistics = episodes.EpisodeStatistics(1)
  assert statistics.summary() == episodes.EpisodeSummary(0, None, None, None)
  add(statistics, [0], [types.FIRST], [0], [0])
  assert statistics.summary().score is None


def test_reset_drops_the_open_episode_of_that_environment_alone():
  statistics = episodes.EpisodeStatistics(2)
  add(statistics, [0, 1], [types.FIRST] * 2, [0, 0], [0, 0])
  add(statistics, [0, 1], [types.MID] * 2, [5, 5], [1, 1])
  statistics.reset(np.array([0]))
  add(statistics, [0], [types.FIRST], [0], [0])
  add(statistics, [0, 1], [types.LAST] * 2, [2, 2], [3, 3])
  summary = statistics.take_recent()
  assert summary == episodes.EpisodeSummary(2, (3 + 4) / 2, (2 + 7) / 2, (1 + 2) / 2)


def test_episodes_that_ended_elsewhere_count_here():
  here, there = episodes.EpisodeStatistics(2), episodes.EpisodeStatistics(2)
  for statistics, reward in ((here, 1.0), (there, 3.0)):
    for step_type in (types.FIRST, types.LAST):
      row = np.array([step_type]), np.array([reward]), np.array([reward])
      statistics.add(np.array([1]), *row)
  told = there.drain()
  assert told == [(6.0, 6.0, 1)] and not there.drain()
  here.extend(told)
  assert here.summary().score == 4.0
  recent = here.take_recent()
  assert recent.score == 4.0 and recent.num_episodes == 2
  assert here.take_recent().num_episodes == 0


class _Run:
  """A run in which an episode ends every thousand agent steps, with these steps as its score."""

  def __init__(self, num_episodes: int = 0):
    self.agent_steps = 0
    self.statistics = episodes.EpisodeStatistics(1, lambda: self.agent_steps)
    self.play(num_episodes)

  def play(self, num_episodes: int) -> None:
    for _ in range(num_episodes):
      self.agent_steps += 1000
      self.statistics.extend([(float(self.agent_steps), 0.0, 1)])

  def scores(self) -> list[float]:
    return [score for score, *_ in self.statistics.window()]


@pytest.mark.parametrize('num_played, num_counted', [(3, 3), (60, 10), (500, 51), (2000, 100)])
def test_the_window_forgets_what_ended_long_ago_but_never_the_last_ten(num_played, num_counted):
  run = _Run(num_played)
  first = num_played - num_counted + 1
  assert run.scores() == [1000.0 * i for i in range(first, num_played + 1)]
  summary = run.statistics.summary()
  assert summary.num_episodes == num_counted
  assert summary.score == 1000 * (first + num_played) / 2


def test_episodes_age_while_none_ends():
  run = _Run(500)
  run.agent_steps = 530_000  # of which the last tenth begins at 477,000
  assert run.scores() == [1000.0 * i for i in range(477, 501)]


def test_a_resumed_run_forgets_what_it_would_have_forgotten():
  through, resumed = _Run(500), _Run()
  resumed.agent_steps = 500_000
  resumed.statistics.restore(json.loads(json.dumps(through.statistics.window())))
  for run in (through, resumed):
    run.play(20)
  assert resumed.scores() == through.scores()
  assert len(resumed.scores()) == 53


def test_episodes_of_a_checkpoint_that_does_not_say_when_they_ended_count_as_just_ended():
  run = _Run()
  run.agent_steps = 500_000
  run.statistics.restore([[7.0, 7.0, 1]] * 100)
  assert run.scores() == [7.0] * 100
  run.play(60)
  assert run.scores() == [1000.0 * i for i in range(504, 561)]


@pytest.mark.parametrize('is_of_another_host', [False, True])
def test_means_are_over_all_episodes_of_a_long_period_and_memory_stays_bounded(is_of_another_host):
  statistics = episodes.EpisodeStatistics(1)
  for i in range(32):
    block = [(float(i >= 16), 2.0, 3)] * 1000
    if is_of_another_host:
      statistics.extend(block)
    else:
      for score, return_, _ in block:
        add(statistics, [0], [types.LAST], [return_], [score])
  summary = statistics.take_recent()
  assert (summary.num_episodes, summary.score, summary.return_) == (32_000, 0.5, 2.0)
  statistics.extend([(1.0, 1.0, 1)] * 32_000)
  assert len(statistics.drain()) == 10_000
  assert statistics.take_recent().num_episodes == 0
