"""The time left, on made-up series of statuses, as the progress line shows it."""

import io
import re

import pytest

from seed_acme.loggers import terminal

_TOTAL = 300_000
# Seconds, and steps per second, of intervals. The first one includes tracing the first update.
_STEADY = [(8.0, 100)] + [(1.0, 5_000)] * 60
_BUSY_MACHINE = [(7.0, 147)] + [
  (1.0, rate) for rate in (5918, 1537, 3994, 9686, 2713, 7723, 1677, 8344, 9144, 2577) * 6
]
_STALLS = [(1.0, 829)] + ([(1.0, 9_000)] * 9 + [(20.0, 300)]) * 3
_SLOWER = [(1.0, 829)] + [(1.0, 20_000)] * 8 + [(1.0, 2_000)] * 60


class _Terminal(io.StringIO):
  encoding = 'utf-8'

  def isatty(self):
    return True


def _shown(intervals, first=(), **more):
  """Returns (steps, seconds of the run, seconds left on the line or None) for each status."""
  progress, rows, steps, wall_s = terminal.Progress(stream := _Terminal()), [], 0, 0.0
  for status in first:
    progress.update(status)
  for seconds, rate in intervals:
    wall_s, steps = wall_s + seconds, steps + seconds * rate
    stream.truncate(stream.seek(0))
    for _ in range(2):  # the front end polls more often than the learner writes
      progress.update(
        {
          'agent_steps': steps,
          'total_steps': _TOTAL,
          'updates': 1,
          'steps_per_s': rate,
          'wall_s': wall_s,
          **more,
        }
      )
    left = re.search(r'(\d+):(\d\d) left', stream.getvalue())
    rows.append((steps, wall_s, left and 60 * int(left[1]) + int(left[2])))
  return rows


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  monkeypatch.setenv('COLUMNS', '120')


@pytest.mark.parametrize('series', [_STEADY, _BUSY_MACHINE, _STALLS, _SLOWER])
def test_it_does_not_jump(series):
  left = [row[2] for row in _shown(series) if row[2] is not None]
  assert len(left) > len(series) // 2
  for before, after in zip(left, left[1:]):
    assert (before - 2) / 1.6 <= after <= 1.6 * before + 2, left


@pytest.mark.parametrize('series', [_STEADY, _BUSY_MACHINE])
def test_it_is_right_from_the_first_seconds_after_tracing(series):
  speed = sum(seconds * rate for seconds, rate in series[1:]) / (len(series) - 1)
  shown = [(steps, left) for steps, _, left in _shown(series) if left is not None]
  for steps, left in shown[3:]:
    assert left == pytest.approx(max(0.0, _TOTAL - steps) / speed, rel=0.35, abs=2)


def test_it_follows_a_lasting_change():
  steps, _, left = _shown(_SLOWER)[-1]
  assert left == pytest.approx((_TOTAL - steps) / 2_000, rel=0.6)


def test_a_limit_of_time_counts():
  _, wall_s, left = _shown(_STEADY[:20], max_wall_s=40.0)[-1]
  assert left == pytest.approx(40.0 - wall_s, abs=1)


def test_what_was_before_the_first_update_says_nothing_of_the_speed():
  waiting = {
    'agent_steps': 640,
    'total_steps': _TOTAL,
    'updates': 0,
    'wall_s': 1.0,
    'phase': 'tracing the first update',
  }
  rows = _shown(_STEADY, first=[waiting, {**waiting, 'phase': ''}])
  assert [left for _, _, left in rows[:3]] == [None] * 3
  assert rows[3][2] is None and rows[4][2] is not None


def test_a_restart_at_a_checkpoint_keeps_the_speed():
  progress, lines = terminal.Progress(stream := _Terminal()), []
  for wall_s in [*range(1, 11), *range(4, 9)]:
    stream.truncate(stream.seek(0))
    progress.update(
      {'agent_steps': wall_s * 5_000, 'total_steps': _TOTAL, 'updates': 1, 'wall_s': float(wall_s)}
    )
    lines.append(stream.getvalue())
  assert '0:50 left' in lines[9] and '0:50 left' in lines[10] and '0:52 left' in lines[-1]
