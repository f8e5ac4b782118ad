"""A command is a single file: help, completion and `--json` know it by its record."""

import importlib
import json
import subprocess
import sys

import pytest

from seed_acme import programs
from seed_acme.programs import cli
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import completion

_TOY = '''
import dataclasses

from seed_acme.programs.command_line import command


@dataclasses.dataclass(frozen=True)
class Arguments:
  """Count the marbles of a bag.

  marbles: in the bag.
  json: print JSON.
  """

  marbles: int = 3
  json: bool = False


def count(arguments):
  return command.Answer({'marbles': arguments.marbles}, f'{arguments.marbles} marbles', 5)


TOY = command.Command(
  'toy', 'count marbles', 'Measuring', arguments='commands:Arguments', run='commands:count'
)
'''


@pytest.fixture(name='toy')
def _toy(tmp_path, monkeypatch):
  """Adds a command in one file, in a folder that is temporarily part of `programs`."""
  (tmp_path / 'toy').mkdir()
  (tmp_path / 'toy' / 'commands.py').write_text(_TOY)
  monkeypatch.setattr(programs, '__path__', [*programs.__path__, str(tmp_path)])
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(sys, 'path', list(sys.path))
  importlib.invalidate_caches()
  command_lib.every.cache_clear()
  yield
  command_lib.every.cache_clear()
  for name in ('toy', 'toy.commands'):
    sys.modules.pop(f'{programs.__name__}.{name}', None)


@pytest.mark.usefixtures('toy')
def test_the_help_has_a_new_command(capsys):
  assert cli.main(['--help']) == 0
  assert '  toy        count marbles\n' in capsys.readouterr().out
  assert cli.main(['toy', '--help']) == 0
  shown = capsys.readouterr().out
  assert shown.startswith('usage: seed-acme toy [OPTION ...]\n\nCount the marbles of a bag.')
  assert '--marbles=INT' in shown and 'in the bag. (default: 3)' in shown


@pytest.mark.usefixtures('toy')
def test_the_completion_has_a_new_command():
  assert completion.candidates('seed-acme to') == ['toy']
  assert completion.candidates('seed-acme toy --m') == ['--marbles=']


@pytest.mark.usefixtures('toy')
def test_a_new_command_answers_in_words_and_as_json(capsys):
  assert cli.main(['toy', '--marbles=4']) == 5
  assert capsys.readouterr().out == '4 marbles\n'
  assert cli.main(['toy', '--json']) == 5
  assert json.loads(capsys.readouterr().out) == {'marbles': 3}
  assert cli.main(['toy', '--marble=4']) == 2
  assert 'did you mean --marbles' in capsys.readouterr().err
  assert cli.main(['toi']) == 2
  assert capsys.readouterr().err.startswith("error: unknown command 'toi'; did you mean toy")


def test_without_the_file_there_is_no_such_command(capsys):
  assert cli.main(['toy']) == 2
  assert "unknown command 'toy'" in capsys.readouterr().err


def test_a_command_without_a_configuration_takes_none(monkeypatch, capsys):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  assert cli.main(['list', '--config=catch_vtrace']) == 2
  assert '--config=catch_vtrace' in capsys.readouterr().err


_LIGHT = """
import json, sys
from seed_acme.programs import cli
for arguments in json.loads(sys.argv[1]):
  assert cli.main(arguments) == 0, arguments
  names = ('tensorflow', 'launchpad', 'reverb', 'matplotlib', 'sonnet', 'scipy', 'grpc')
  heavy = set(names) & set(sys.modules)
  assert not heavy, (arguments, heavy)
"""


def test_help_and_completion_load_nothing_heavy():
  calls = [['--help']]
  for name in command_lib.every():
    calls += [[name, '--help'], ['completion', 'bash', f'--line=seed-acme {name} --']]
  run = subprocess.run(
    [sys.executable, '-c', _LIGHT, json.dumps(calls)], capture_output=True, text=True
  )
  assert run.returncode == 0 and run.stdout.count('usage: seed-acme') == 1 + len(calls) // 2, (
    run.stderr
  )
