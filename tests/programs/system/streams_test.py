"""Outputs that cannot encode a character, and terminals that go away."""

import errno
import io
import os
import pty
import subprocess
import sys

import pytest

from seed_acme.programs.system import streams

_LOSE = """
import os, sys, time
from seed_acme.programs.system import streams
print('ready', flush=True)
while os.isatty(1):
  time.sleep(0.01)
{then}
print('dropped', flush=True)
print('dropped', file=sys.stderr, flush=True)
open({file!r}, 'w').write('went on')
"""
_SIGNAL = 'streams.leave_lost_terminals()'
_ERROR = """
with streams.outliving_output():
  print('lost', flush=True)
"""


def _environment(**variables):
  return {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), **variables}


@pytest.mark.parametrize('then', [_SIGNAL, _ERROR])
def test_a_program_outlives_its_terminal(tmp_path, then):
  master, terminal = pty.openpty()
  file = tmp_path / 'file'
  program = subprocess.Popen(
    [sys.executable, '-c', _LOSE.format(then=then, file=str(file))],
    stdin=subprocess.DEVNULL,
    stdout=terminal,
    stderr=terminal,
    env=_environment(),
  )
  os.close(terminal)
  said = b''
  while not said.endswith(b'\n'):  # the write returns only after everything is read
    said += os.read(master, 100)
  os.close(master)
  assert program.wait(60) == 0
  assert file.read_text() == 'went on'


def test_files_and_terminals_that_are_there_are_kept(tmp_path):
  master, terminal = pty.openpty()
  with open(tmp_path / 'out', 'wb') as out:
    code = (
      'import sys\n'
      'from seed_acme.programs.system import streams\n'
      'streams.leave_lost_terminals()\n'
      'print("a word"); print("a cry", file=sys.stderr)'
    )
    subprocess.run(
      [sys.executable, '-c', code], stdout=out, stderr=terminal, env=_environment(), check=True
    )
  assert (tmp_path / 'out').read_text() == 'a word\n'
  assert os.read(master, 100).startswith(b'a cry')
  os.close(master)
  os.close(terminal)


def test_another_error_is_not_taken_for_a_lost_terminal():
  with pytest.raises(OSError, match='nobody reads'), streams.outliving_output():
    raise OSError(errno.EPIPE, 'nobody reads')


def test_a_full_disk_of_the_output_is_no_reason_to_fail():
  with streams.outliving_output():
    raise OSError(errno.ENOSPC, 'no room')


@pytest.mark.slow
@pytest.mark.parametrize('locale', [{'PYTHONIOENCODING': 'ascii'}, {'LC_ALL': 'C'}])
def test_a_command_prints_any_text(tmp_path, locale):
  run = tmp_path / 'über'
  run.mkdir()
  (run / 'config.json').write_text('{}')
  (run / 'metrics.csv').write_text('agent_steps,wall_s,episode/return\n10,1,0.5\n')
  ended = subprocess.run(
    [sys.executable, '-m', 'seed_acme.programs.cli', 'plot', str(run), '--out=größe.png'],
    cwd=tmp_path,
    env=_environment(**locale),
    capture_output=True,
  )
  assert ended.returncode == 0, ended.stderr
  shown = r'gr\xf6\xdfe' if 'PYTHONIOENCODING' in locale else 'größe'
  assert ended.stdout.decode() == f'Plot: {shown}.png\n'
  assert (tmp_path / 'größe.png').exists()


_TALK = """
import atexit, ctypes, os, sys
from seed_acme.programs.system import streams
c = ctypes.CDLL(None)
with streams.results_only() as results:
  print('in Python', end='')
  os.write(1, b'by descriptor')
  os.system('echo a child')
  c.printf(b'in C, which holds it back')
  atexit.register(print, 'at exit')
  print('ü', file=results)
print('later')
"""


def test_results_are_all_that_stands_on_standard_output():
  done = subprocess.run(
    [sys.executable, '-c', _TALK],
    capture_output=True,
    env=_environment(PYTHONIOENCODING='utf-8'),
    check=True,
  )
  assert done.stdout.decode() == 'ü\nlater\n'
  for words in ('in Python', 'by descriptor', 'a child', 'in C, which holds it back', 'at exit'):
    assert words in done.stderr.decode()


def test_who_has_put_another_stream_there_gets_the_results(capfd, monkeypatch):
  own = io.StringIO()
  monkeypatch.setattr(sys, 'stdout', own)
  with streams.results_only() as results:
    print('talk')
    os.write(1, b'more talk')
    print('a result', file=results)
  assert own.getvalue() == 'a result\n' and sys.stdout is own
  os.write(1, b'afterwards')
  said = capfd.readouterr()
  assert (said.out, said.err) == ('afterwards', 'talk\nmore talk')


def test_where_standard_output_is_closed_nothing_fails():
  code = (
    'import os\nfrom seed_acme.programs.system import streams\nos.close(1)\n'
    'with streams.results_only():\n  pass\nos._exit(7)\n'
  )
  assert subprocess.run([sys.executable, '-c', code], env=_environment()).returncode == 7
