"""The notice to the user that a metric does not rise."""

import dataclasses

import pytest

from seed_acme import agent as agent_lib
from seed_acme.learning import watching

_WATCH = agent_lib.Watch(
  metric='toy/share',
  bound=0.05,
  share=0.05,
  min_steps=50_000,
  problem='the toy shares nothing yet',
  advice='Ask it.',
)
_TOTAL = 2_000_000  # a twentieth: 100,000


def _told(rows, total_steps=_TOTAL):
  """Returns the steps at which rows (agent steps, metrics) led to a notice."""
  lines = []
  watcher = watching.Watcher([_WATCH], total_steps, lines.append)
  told = []
  for agent_steps, metrics in rows:
    before = len(lines)
    watcher.add_row(agent_steps, metrics)
    told.extend([agent_steps] * (len(lines) - before))
  return told


def _rows(value, first, last, step=10_000):
  return [(steps, {'toy/share': value}) for steps in range(first, last + 1, step)]


def test_a_metric_below_its_bound_for_the_share_of_the_run_is_told_once():
  lines = []
  watcher = watching.Watcher([_WATCH], _TOTAL, lines.append)
  for agent_steps, metrics in _rows(0.012, 10_000, 90_000):
    watcher.add_row(agent_steps, metrics)
  assert not lines
  for agent_steps, metrics in _rows(-3.0, 100_000, 900_000):
    watcher.add_row(agent_steps, metrics)
  line = (
    'the toy shares nothing yet: toy/share is -3, and was below 0.05 for the last '
    '100,000 agent steps. Ask it.'
  )
  assert lines == [line]


@pytest.mark.parametrize(
  'rows, total_steps, told',
  [
    (_rows(0.05, 10_000, 900_000), _TOTAL, []),  # the bound is reached
    (_rows(0.0, 5_000, 900_000, 5_000), 1_000, [50_000]),  # never before min_steps
    # After a rise, the count starts again.
    ([*_rows(0.0, 10_000, 90_000), (100_000, {'toy/share': 0.3}), *_rows(0.0, 110_000, 900_000)],
     _TOTAL, [200_000]),
    # A row without the metric counts neither for nor against.
    ([*_rows(0.0, 10_000, 90_000), (300_000, {'loss/total': 1.0}), *_rows(0.0, 310_000, 900_000)],
     _TOTAL, [310_000]),
    ([(steps, {'loss/total': 1.0}) for steps in range(10_000, 900_000, 10_000)], _TOTAL, []),
    # A row without updates belongs to the next row with one.
    ([(90_000, {}), (100_000, {'toy/share': 0.0})], _TOTAL, [100_000]),
    # Low for long, and then risen: no notice.
    ([(90_000, {'toy/share': 0.0}), (200_000, {'toy/share': 0.1})], _TOTAL, []),
  ],
)  # fmt: skip
def test_which_rows_count(rows, total_steps, told):
  assert _told(rows, total_steps) == told


def test_a_resumed_run_goes_on_counting_and_tells_nothing_twice():
  lines = []
  killed = watching.Watcher([_WATCH], _TOTAL, lines.append)
  for agent_steps, metrics in _rows(0.0, 10_000, 90_000):
    killed.add_row(agent_steps, metrics)
  resumed = watching.Watcher([_WATCH], _TOTAL, lines.append)
  resumed.restore(90_000, killed.save())
  assert not lines
  resumed.add_row(100_000, {'toy/share': 0.0})
  assert len(lines) == 1
  again = watching.Watcher([_WATCH], _TOTAL, lines.append)
  again.restore(100_000, resumed.save())
  for agent_steps, metrics in _rows(0.0, 110_000, 900_000):
    again.add_row(agent_steps, metrics)
  assert len(lines) == 1


def _told_of_amounts(amounts, resumes_at=None):
  """Returns the row, of 10,000 steps each, whose metric was told to be low; None = none was."""
  lines, watch = [], dataclasses.replace(_WATCH, amount=lambda row: row['toy/amount'])
  watcher = watching.Watcher([watch], _TOTAL, lines.append)
  for row, amount in enumerate(amounts, 1):
    watcher.add_row(10_000 * row, {'toy/share': 0.0, 'toy/amount': amount})
    if row == resumes_at:
      saved, watcher = watcher.save(), watching.Watcher([watch], _TOTAL, lines.append)
      watcher.restore(10_000 * row, saved)
    if lines:
      return row
  return None


@pytest.mark.parametrize('scale', [1.0, 1e-6, 1e6])
@pytest.mark.parametrize('resumes_at', [None, 3, 20])
def test_where_little_is_left_to_learn_nothing_is_told(scale, resumes_at):
  """As the variance of the targets in a game that is solved, whatever the unit of its rewards."""
  solved = [0.3 * scale, 0.7 * scale, *[0.03 * scale] * 90]
  assert _told_of_amounts(solved, resumes_at) is None
  assert _told_of_amounts([0.3 * scale, 0.7 * scale, *[0.08 * scale] * 90], resumes_at) == 10
  assert _told_of_amounts(solved[:20] + [0.2 * scale] * 90, resumes_at) == 28


def test_a_checkpoint_of_before_has_no_watches():
  lines = []
  watcher = watching.Watcher([_WATCH], _TOTAL, lines.append)
  watcher.restore(1_000_000, {})
  watcher.add_row(1_090_000, {'toy/share': 0.0})
  assert not lines
  watcher.add_row(1_100_000, {'toy/share': 0.0})
  assert len(lines) == 1


def test_each_metric_is_watched_apart():
  lines = []
  other = dataclasses.replace(_WATCH, metric='toy/other', bound=1.0, share=0.5, problem='other')
  watcher = watching.Watcher([_WATCH, other], _TOTAL, lines.append)
  for steps in (100_000, 900_000, 1_000_000):
    watcher.add_row(steps, {'toy/share': 0.0, 'toy/other': 0.9})
  assert [line.split(':')[0] for line in lines] == ['the toy shares nothing yet', 'other']


def test_two_watches_of_one_metric_are_refused():
  with pytest.raises(ValueError, match='two watches of one metric'):
    watching.Watcher([_WATCH, _WATCH], _TOTAL, print)
