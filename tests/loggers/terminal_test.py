"""The progress line on a terminal and elsewhere."""

import io
import math
import os
import subprocess
import sys
import types

import pytest

from seed_acme.loggers import terminal

_STATUS = {
  'agent_steps': 450_000,
  'total_steps': 1_000_000,
  'updates': 700,
  'episode_return_last_100': 0.8712,
  'steps_per_s': 22_000.0,
  'wall_s': 20.4,
  'elapsed_s': 30.4,
  'left_s': 25.0,
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
  for part in ('45%', 'return 0.871', '22,000 steps/s', '0:30 elapsed', '0:25 left'):
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
    {**_STATUS, 'episode_return_last_100': None},
    {**_STATUS, 'steps_per_s': 0.0},
    {**_STATUS, 'steps_per_s': math.inf},
    {**_STATUS, 'episode_return_last_100': math.nan, 'total_steps': 0},
  ],
)
def test_unknown_figures_are_left_out(status):
  for line in (terminal.live_line(status, 120), terminal.plain_line(status)):
    assert line and 'None' not in line and 'nan' not in line and 'inf' not in line


def test_plain_line():
  assert terminal.plain_line(_STATUS) == (
    '450k of 1M steps (45%), return 0.871, 22,000 steps/s, 700 updates, 0:30 elapsed, 0:25 left'
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


def test_what_others_print_does_not_land_on_the_line(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  stream = _Terminal()
  progress = terminal.Progress(stream)
  progress.update(_STATUS)
  progress.hide()
  stream.write('printed\n')
  assert stream.getvalue().endswith('\r\x1b[Kprinted\n')
  progress.update(_STATUS)  # the same status shows again
  assert '45%' in stream.getvalue().rpartition('\n')[2]


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


def test_a_phase_is_shown_from_the_first_moment_and_the_clock_moves(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  stream, clock = _Terminal(), _Clock()
  progress = terminal.Progress(stream, clock)
  shown = []
  for second, phase in enumerate(['', 'loading TensorFlow', 'loading TensorFlow', 'tracing']):
    clock.now = second
    stream.truncate(stream.seek(0))
    progress.update({'phase': phase})
    shown.append(stream.getvalue().strip('\r').removesuffix('\x1b[K'))
  assert shown == [
    '',
    'loading TensorFlow  0:01 elapsed',
    'loading TensorFlow  0:02 elapsed',
    'tracing  0:03 elapsed',
  ]
  stuck = {name: value for name, value in _STATUS.items() if name != 'elapsed_s'}
  for second in (70, 71):
    clock.now = second
    progress.update(stuck)
    assert terminal.duration(second) + ' elapsed' in stream.getvalue()


def test_other_outputs_get_each_phase_until_something_is_learnt():
  stream, clock = io.StringIO(), _Clock()
  progress = terminal.Progress(stream, clock)
  for phase in ('starting', 'waiting (0 of 2)', 'waiting (1 of 2)', 'tracing', '', 'saving', ''):
    clock.now += 1
    progress.update({'phase': phase, **({} if phase else _STATUS)})
  lines = stream.getvalue().splitlines()
  assert lines[:3] == [
    'Starting, 0:01 elapsed',
    'Waiting (0 of 2), 0:02 elapsed',
    'Tracing, 0:04 elapsed',
  ]
  assert len(lines) == 4 and lines[3].startswith('450k of 1M')


@pytest.mark.parametrize('has_own_stream', [False, True])
def test_a_message_does_not_land_on_the_bar(monkeypatch, has_own_stream):
  """Standard error goes to the same terminal, as for a user."""
  monkeypatch.setenv('TERM', 'xterm')
  screen = _Terminal()
  progress = terminal.Progress(screen)
  progress.update(_STATUS)
  bar = screen.getvalue()
  progress.message('Notice: actor/1', screen if has_own_stream else None)
  assert screen.getvalue() == bar + '\r\x1b[KNotice: actor/1\n' + bar


def test_a_terminal_without_a_size_is_not_left_empty(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  # Only in that module, because pytest asks for the size of its own terminal.
  monkeypatch.setattr(
    terminal, 'shutil', types.SimpleNamespace(get_terminal_size=lambda: os.terminal_size((0, 0)))
  )
  stream = _Terminal()
  terminal.Progress(stream).update(_STATUS)
  assert '45%' in stream.getvalue()


def test_a_limit_of_time_fills_the_bar_and_actors_that_are_away_are_counted():
  status = {
    **_STATUS,
    'status': 'running',
    'max_wall_s': 25.5,
    'actors': [{'is_connected': True}, {'is_connected': False}],
  }
  line = terminal.live_line(status, 120)
  assert ' 80%' in line and '1 of 2 actors connected' in line
  assert 'actors' not in terminal.live_line({**status, 'status': 'finished'}, 120)


def test_an_ascii_terminal_gets_ascii(monkeypatch):
  monkeypatch.setenv('TERM', 'xterm')
  stream = _Terminal()
  stream.encoding = 'ascii'
  terminal.Progress(stream).update(_STATUS)
  assert stream.getvalue().isascii()


def test_light_modules_bring_no_heavy_ones():
  code = """
import sys
import seed_acme.progress.counting, seed_acme.progress.timing
import seed_acme.storage.run_directory, seed_acme.storage.saved_config
import seed_acme.programs.pictures.plot, seed_acme.programs.tools.doctor.examination
import seed_acme.loggers.csv_file, seed_acme.loggers.terminal, seed_acme.loggers.composite
import seed_acme.loggers.tensorboard
import seed_acme.programs.tools.inspection.command
import seed_acme.programs.tools.reports.evaluate_command
import seed_acme.programs.front_end.train_command
heavy = {'tensorflow', 'reverb', 'sonnet', 'launchpad', 'courier', 'matplotlib', 'scipy'}
print(sorted(heavy & set(sys.modules)))
"""
  result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  assert result.stdout.strip() == '[]'


@pytest.mark.parametrize(
  'value, digits, text',
  [
    (0.87123, 4, '0.8712'),
    (-20.7, 3, '-20.7'),
    (9_999.4, 4, '9999'),
    (10_334.6, 4, '10,335'),
    (9_999.7, 4, '10,000'),
    (-123_456.0, 3, '-123,456'),
    (1_033.0, 3, '1,033'),
    (130.0, 2, '130'),
    (1e-5, 3, '1e-05'),
    (float('nan'), 3, 'nan'),
    (float('inf'), 3, 'inf'),
  ],
)
def test_numbers_print_in_full(value, digits, text):
  assert terminal.number(value, digits) == text


def test_a_share_is_whole_only_at_the_end():
  assert terminal.percent(0.999) == '99%' and terminal.percent(1.0) == '100%'
  assert terminal.percent(0.29) == '29%'  # 100 * 0.29 is a little less than 29


def test_the_last_line_has_no_rate_of_a_last_instant():
  status = {'agent_steps': 10_000, 'total_steps': 10_000, 'steps_per_s': 0.0, 'updates': 9}
  status['episode_return_last_100'] = 12_345.6
  assert '0 steps/s' in terminal.plain_line({**status, 'status': 'running'})
  line = terminal.plain_line({**status, 'status': 'finished'})
  assert line == '10k of 10k steps (100%), return 12,346, 9 updates'


def test_a_count_just_below_a_unit_is_shown_in_it():
  shown = terminal.plain_line({'agent_steps': 999_936, 'total_steps': 2_000_000_000})
  assert '1M of 2G steps' in shown
