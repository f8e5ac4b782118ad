"""Completion of the command line: the candidates, and real shells that ask for them."""

import os
import pathlib
import pty
import select
import shutil
import sys
import time

import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.command_line import completion
from tests import command_names

_HANG_S = 60.0


def test_commands_and_options():
  assert completion.candidates('seed-acme t') == ['train']
  assert set(completion.candidates('seed-acme ')) == {
    *command_names.listed(),
    '--help',
    '--version',
  }
  options = completion.candidates('seed-acme train --')
  assert {'--config=', '--config.', '--run_dir=', '--json', '--help'} <= set(options)
  assert completion.candidates('seed-acme completion ') == ['bash', 'zsh']
  assert completion.candidates('seed-acme nothing ') == []
  for command in command_names.listed():
    assert '--help' in completion.candidates(f'seed-acme {command} --he')


def test_names_of_configurations_and_fields_level_by_level():
  assert completion.candidates('seed-acme train --config=') == [
    f'--config={name}' for name in registry.names()
  ]
  assert completion.candidates('seed-acme sweep --config cartpole_v') == [
    'cartpole_vmpo',
    'cartpole_vpg',
    'cartpole_vtrace',
  ]
  assert completion.candidates('seed-acme train --config.ag') == ['--config.agent.']
  assert '--config.agent.optimizer.' in completion.candidates('seed-acme train --config.agent.')
  assert completion.candidates('seed-acme train --config.agent.target') == []
  assert completion.candidates('seed-acme train --config=catch_r2d2 --config.agent.target') == [
    '--config.agent.target_period='
  ]
  assert completion.candidates('seed-acme train --config.network.mlp') == [
    '--config.network.mlp_sizes'
  ]


def test_values():
  assert completion.candidates('seed-acme train --launch=local') == ['--launch=local_mp']
  assert completion.candidates('seed-acme train --config.network.core ') == ['gru', 'lstm', 'none']
  assert completion.candidates('seed-acme train --config.learner.xla=T') == [
    '--config.learner.xla=True'
  ]
  assert '--config.environment.id=atari:Pong' in completion.candidates(
    'seed-acme train --config.environment.id=atari:P'
  )
  assert completion.candidates('seed-acme node le') == ['learner']
  assert completion.candidates('seed-acme list dm_') == ['dm_control']
  assert '--help=agent' in completion.candidates('seed-acme bench --help=')


def test_folders_and_the_users_own_file_which_is_not_run(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'runs' / 'mine').mkdir(parents=True)
  (tmp_path / 'mine.py').write_text('import pathlib\npathlib.Path("ran").touch()')
  assert completion.candidates('seed-acme evaluate r') == ['runs/']
  assert completion.candidates('seed-acme evaluate --sampled runs/') == ['runs/mine/']
  (tmp_path / 'runs' / 'pack.zip').touch()
  assert completion.candidates('seed-acme evaluate runs/') == ['runs/mine/', 'runs/pack.zip']
  assert completion.candidates('seed-acme unpack runs/p') == ['runs/pack.zip']
  assert completion.candidates('seed-acme evaluate --checkpoint=b') == ['--checkpoint=best']
  assert completion.candidates('seed-acme export runs/mine --checkpoint=runs/m') == [
    '--checkpoint=runs/mine/'
  ]
  (tmp_path / 'runs' / 'pack.zip').unlink()
  assert completion.candidates('seed-acme train --run_dir=runs/m') == ['--run_dir=runs/mine/']
  assert completion.candidates('seed-acme train --config=./m') == ['--config=./mine.py']
  assert completion.candidates('seed-acme train --config=./mine.py --config.agent.discou') == [
    '--config.agent.discount='
  ]
  assert not (tmp_path / 'ran').exists()


def test_a_path_with_spaces_is_one_word(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'my first runs' / 'one').mkdir(parents=True)
  assert completion.candidates('seed-acme evaluate m') == ['my first runs/']
  assert completion.candidates('seed-acme evaluate my\\ fi') == ['my first runs/']
  for option in ('', '--run_dir='):
    command = 'train ' if option else 'evaluate '
    line = f'seed-acme {command}{option}my\\ first\\ runs/'
    assert completion.candidates(line) == [f'{option}my first runs/one/']


@pytest.mark.parametrize('arguments', [[], ['fish'], ['bash', 'zsh']])
def test_another_shell_is_refused_and_the_help_has_the_line_to_install(arguments, capsys):
  assert cli.main(['completion', *arguments]) == 2
  error = capsys.readouterr().err
  assert error.endswith('see: seed-acme completion --help\n')
  assert arguments[:1] == ['bash'] or 'bash, zsh' in error
  assert cli.main(['completion', '--help']) == 0
  assert 'source <(seed-acme completion bash)' in capsys.readouterr().out


class _Shell:
  """An interactive shell on a terminal that has run the documented line."""

  def __init__(self, name, folder):
    program = pathlib.Path(sys.executable).parent
    variables = {
      **os.environ,
      'PS1': '$ ',
      'TERM': 'dumb',
      'ZDOTDIR': str(folder),
      'PATH': f'{program}:{os.environ["PATH"]}',
    }
    flags = {'bash': ['--norc', '--noprofile', '-i'], 'zsh': ['-i']}[name]
    self._pid, self._terminal = pty.fork()
    if not self._pid:
      os.execvpe(name, [name, *flags], variables)
    self.type(f'source <(seed-acme completion {name}); echo rea""dy\n', 'ready')

  def type(self, text, expected):
    """Types text, and reads until `expected` has appeared."""
    os.write(self._terminal, text.encode())
    out, give_up = '', time.monotonic() + _HANG_S
    while expected not in out:
      assert time.monotonic() < give_up, out
      if select.select([self._terminal], [], [], 0.1)[0]:
        out += os.read(self._terminal, 65536).decode()

  def close(self):
    os.kill(self._pid, 9)
    os.waitpid(self._pid, 0)
    os.close(self._terminal)


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in ('bash', 'zsh') if shutil.which(name)])
def test_a_real_shell_completes(name, tmp_path):
  (tmp_path / '.zshrc').touch()  # otherwise zsh asks new users to make one
  shell = _Shell(name, tmp_path)
  try:
    shell.type('seed-acme tra\t', 'seed-acme train ')
    shell.type('--config=catch_r\t', '2d2 ')
    shell.type('--config.age\t', 'nt.')
    shell.type('opt\t', 'imizer.')
    shell.type('sch\t', 'edule=')
    shell.type('con\t', 'stant ')
    shell.type('--config.environment.id=atari:Po\t', 'ng ')
    (tmp_path / 'two words' / 'one').mkdir(parents=True)
    shell.type(f'--run_dir={tmp_path}/tw\t', 'o\\ words/')
    shell.type('o\t', 'ne/')
  finally:
    shell.close()
