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


def _candidates(line):
  return completion.candidates(line, command_names.listed(), 'catch_vtrace')


def test_commands_and_options():
  assert _candidates('seed-acme t') == ['train']
  assert set(_candidates('seed-acme ')) == {*command_names.listed(), '--help', '--version'}
  options = _candidates('seed-acme train --')
  assert {'--config=', '--config.', '--run_dir=', '--json', '--help'} <= set(options)
  assert _candidates('seed-acme completion ') == ['bash', 'zsh']
  assert _candidates('seed-acme nothing ') == []
  for command in completion._RECORDS:
    assert '--help' in _candidates(f'seed-acme {command} --he')
  assert {*completion._RECORDS, 'completion'} == set(command_names.listed())


def test_names_of_configurations_and_fields_level_by_level():
  assert _candidates('seed-acme train --config=') == [
    f'--config={name}' for name in registry.names()
  ]
  assert _candidates('seed-acme sweep --config cartpole_v') == [
    'cartpole_vmpo',
    'cartpole_vpg',
    'cartpole_vtrace',
  ]
  assert _candidates('seed-acme train --config.ag') == ['--config.agent.']
  assert '--config.agent.optimizer.' in _candidates('seed-acme train --config.agent.')
  assert _candidates('seed-acme train --config.agent.target') == []
  assert _candidates('seed-acme train --config=catch_r2d2 --config.agent.target') == [
    '--config.agent.target_period='
  ]
  assert _candidates('seed-acme train --config.network.mlp') == ['--config.network.mlp_sizes']


def test_values():
  assert _candidates('seed-acme train --launch=local') == ['--launch=local_mp']
  assert _candidates('seed-acme train --config.network.core ') == ['gru', 'lstm', 'none']
  assert _candidates('seed-acme train --config.learner.xla=T') == ['--config.learner.xla=True']
  assert '--config.environment.id=atari:Pong' in _candidates(
    'seed-acme train --config.environment.id=atari:P'
  )
  assert _candidates('seed-acme node le') == ['learner']
  assert _candidates('seed-acme list dm_') == ['dm_control']
  assert '--help=agent' in _candidates('seed-acme bench --help=')


def test_folders_and_the_users_own_file_which_is_not_run(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'runs' / 'mine').mkdir(parents=True)
  (tmp_path / 'mine.py').write_text('import pathlib\npathlib.Path("ran").touch()')
  assert _candidates('seed-acme evaluate r') == ['runs/']
  assert _candidates('seed-acme evaluate --sampled runs/') == ['runs/mine/']
  (tmp_path / 'runs' / 'pack.zip').touch()
  assert _candidates('seed-acme evaluate runs/') == ['runs/mine/', 'runs/pack.zip']
  assert _candidates('seed-acme unpack runs/p') == ['runs/pack.zip']
  assert _candidates('seed-acme evaluate --checkpoint=b') == ['--checkpoint=best']
  assert _candidates('seed-acme export runs/mine --checkpoint=runs/m') == [
    '--checkpoint=runs/mine/'
  ]
  (tmp_path / 'runs' / 'pack.zip').unlink()
  assert _candidates('seed-acme train --run_dir=runs/m') == ['--run_dir=runs/mine/']
  assert _candidates('seed-acme train --config=./m') == ['--config=./mine.py']
  assert _candidates('seed-acme train --config=./mine.py --config.agent.discou') == [
    '--config.agent.discount='
  ]
  assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('arguments', [[], ['fish'], ['bash', 'zsh']])
def test_another_shell_is_refused_with_the_line_to_install(arguments, capsys):
  assert cli.main(['completion', *arguments]) == 2
  assert 'source <(seed-acme completion bash)' in capsys.readouterr().err


class _Shell:
  """An interactive shell on a terminal, that has run the documented line."""

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
    """Types, and reads until `expected` has appeared."""
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


@pytest.mark.parametrize('name', [name for name in ('bash', 'zsh') if shutil.which(name)])
def test_a_real_shell_completes(name, tmp_path):
  (tmp_path / '.zshrc').touch()  # or zsh asks a newcomer to make one
  shell = _Shell(name, tmp_path)
  try:
    shell.type('seed-acme tra\t', 'seed-acme train ')
    shell.type('--config=catch_r\t', '2d2 ')
    shell.type('--config.age\t', 'nt.')
    shell.type('opt\t', 'imizer.')
    shell.type('sch\t', 'edule=')
    shell.type('con\t', 'stant ')
    shell.type('--config.environment.id=atari:Po\t', 'ng ')
  finally:
    shell.close()
