"""The progress line on a terminal and elsewhere."""

import io
import math
import subprocess
import sys

import pytest

from seed_acme.loggers import terminal

_STATUS = {
  'agent_steps': 450_000,
  'total_steps': 1_000_000,
  'updates': 700,
  'episode_return': 0.8712,
  'steps_per_s': 22_000.0,
  'wall_s': 20.4,
}


class _Terminal(io.StringIO):
  encoding = 'utf-8'

  def isatty(self):
    return True


class _Clock:
  now = 0.0

  def __call__(self):
    return self.now


def test_live_line_shows_everything():
  line = terminal.live_line(_STATUS, 100)
  assert line.startswith('##########-')
  for part in ('45%', 'return 0.871', '22,000 steps/s', '0:25 left'):
    assert part in line


@pytest.mark.parametrize('columns', [1, 10, 30, 45, 60, 200])
def test_live_line_never_reaches_the_last_column(columns):
  assert len(terminal.live_line(_STATUS, columns, '█░▏▎▍▌▋▊▉')) < max(2, columns)


@pytest.mark.parametrize('steps', [0, 1, 123_456, 999_999, 1_000_000, 1_000_500])
def test_the_bar_keeps_its_width(steps):
  line = terminal.live_line({**_STATUS, 'agent_steps': steps}, 200, '█░▏▎▍▌▋▊▉')
  assert len(line.split(' ')[0]) == 24
  assert '101%' not in line


@pytest.mark.parametrize(
  'status',
  [
    {},
    {'agent_steps': None, 'total_steps': None},
    {**_STATUS, 'episode_return': None},
    {**_STATUS, 'steps_per_s': 0.0},
    {**_STATUS, 'steps_per_s': math.inf},
    {**_STATUS, 'episode_return': math.nan, 'total_steps': 0},
  ],
)
def test_unknown_figures_are_left_out(status):
  for line in (terminal.live_line(status, 120), terminal.plain_line(status)):
    assert line and 'None' not in line and 'nan' not in line and 'inf' not in line


def test_plain_line():
  assert terminal.plain_line(_STATUS) == (
    '450k of 1M steps (45%), return 0.871, 22,000 steps/s, 700 updates, 0:20 gone, 0:25 left'
  )


@pytest.mark.parametrize(
  'seconds, text', [(0, '0:00'), (7.9, '0:07'), (760, '12:40'), (11100, '3:05:00'), (-1, '0:00')]
)
def test_duration(seconds, text):
  assert terminal.duration(seconds) == text


def test_a_terminal_gets_one_line_that_renews_itself(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  stream = _Terminal()
  progress = terminal.Progress(stream)
  progress.update(_STATUS)
  progress.update({**_STATUS, 'agent_steps': 900_000})
  assert '\n' not in stream.getvalue() and stream.getvalue().count('\r') == 2
  progress.message('actor 1 was restarted')
  assert stream.getvalue().count('\n') == 1 and '90%' in stream.getvalue().rpartition('\n')[2]
  progress.finish({**_STATUS, 'agent_steps': 1_000_000})
  assert stream.getvalue().endswith('\n') and '100%' in stream.getvalue()
  progress.finish()
  assert stream.getvalue().count('\n') == 2


def test_other_outputs_get_a_line_every_ten_seconds_and_the_last():
  stream, clock = io.StringIO(), _Clock()
  progress = terminal.Progress(stream, clock)
  for second in range(25):
    clock.now = second
    progress.update({**_STATUS, 'agent_steps': second * 10_000})
  progress.message('hello')
  progress.finish({**_STATUS, 'agent_steps': 1_000_000})
  lines = stream.getvalue().splitlines()
  assert [line.split(' ')[0] for line in lines] == ['0', '100k', '200k', 'hello', '1M']
  assert '\r' not in stream.getvalue() and '\x1b' not in stream.getvalue()


def test_the_last_line_is_not_printed_twice():
  stream = io.StringIO()
  progress = terminal.Progress(stream, _Clock())
  progress.update(_STATUS)
  progress.finish(_STATUS)
  assert len(stream.getvalue().splitlines()) == 1


def test_an_ascii_terminal_gets_ascii(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  stream = _Terminal()
  stream.encoding = 'ascii'
  terminal.Progress(stream).update(_STATUS)
  assert stream.getvalue().isascii()


def test_light_modules_bring_no_heavy_ones():
  code = """
import sys
import seed_acme.counting, seed_acme.timing, seed_acme.run_directory, seed_acme.saved_config
import seed_acme.plot, seed_acme.doctor
import seed_acme.loggers.csv_file, seed_acme.loggers.terminal, seed_acme.loggers.composite
import seed_acme.loggers.tensorboard
heavy = {'tensorflow', 'reverb', 'sonnet', 'launchpad', 'courier', 'matplotlib'}
print(sorted(heavy & set(sys.modules)))
"""
  result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert result.stdout.strip() == '[]'
